// Package model is the executable twin of TLA/Transfer.tla: the same variables, the same actions with the same guards and
// updates one by one, the same properties, in plain Go that is meant to be read beside the TLA+ text.
//
// A configuration of TLA/manifest.json gives its Settings (FromConstants). New makes a Twin of them, Init gives the first state,
// Next the successors of a state, Text and Value what a state looks like in the one normal form that Normal brings TLC's
// output into, too. Each guard and each update can be dropped by a Mutant. Actions is the declarative table of the actions:
// the conjuncts stand there as they stand in the TLA+ text, and a test compares them.
//
// The package explores nothing and compares nothing with TLC: that is model/explore and impl/cmd/model. It is naive on purpose
// and knows nothing of the engine; it imports spec and the pure part of the standard library only.
//
// Read next: action.go (what an action is), state.go (the variables), leader.go (the first actions), twin.go (the successors).
package model
