// Package overlay builds changed copies of packages of this module: texts put into source files at offsets, a file for
// `go build -overlay`, and test binaries of the copies, run with bounds on processor time and memory. It changes no source and knows
// nothing of what the changes are for: impl/mutants drops guards with it, impl/plants plants bugs. Read next: edit.go, write.go, run.go.
package overlay
