// Package mutants drops every guard and every update of the core, of the model and of the specification, one at a time, and asks
// who notices. It finds the places, builds the core once with a switch at each, runs its tests with one of them off, explores the
// model without a conjunct, asks the solver about an action without a conjunct, and keeps what it saw in a record. It changes no
// source: the switches live in a `go build -overlay` under the build tag "mutants" only. impl/cmd/mutants calls it.
// Read next: sites.go and visit.go (what is a mutant of the core), run.go, then record.go.
package mutants
