// Package fuzz is the list of everything that reads bytes from outside of the process, and the black-box fuzz targets: they see
// what a peer, a client or an operator sees. Targets that need the inside of a package stand in that package; the list (Parsers)
// names them all, and tests here refuse a parser without a target, a target that is not listed, and a fuzz engine that finds
// nothing (the canary).
//
// Inputs worth keeping stand in testdata/fuzz, one folder a target, none without a line of code that no smaller one reaches. A new one comes from a
// crash (the engine writes it there) or from impl/cmd/corpus after a long run.
//
// make test runs each target's corpus and ten seconds of new inputs, make test-long five minutes each. Read next: parsers.go, tape.go.
package fuzz
