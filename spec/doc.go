// Package spec is the vocabulary of kvfence: identities, layouts, plans, tags, reasons and messages, with their codec.
// The normative words stand beside it in this folder (glossary.md, protocol.md, wire.md, invariants.md); this package is
// those words as Go types. TLA+ modules, the model and the engine use the same names.
//
// It does nothing: no state machine, no clock, no socket, no lock, and it imports the standard library only. Everyone
// imports it. Read next: ids.go, then layout.go and plan.go (what is moved), then message.go (what is said).
package spec
