// Package follow is the transition relation of TLA/Transfer.tla, with what Pull.tla says of pulled links, at any size, and a follower
// that holds a recorded run to it: each line of a trace (spec/trace.go) is taken as the actions that its machine says it took, with the
// hidden ones of the fabric where they are not recorded, and what the machine put out is compared with what it said and with the state.
//
// state.go, words.go, leader.go, lease.go, read.go, link.go, prefill.go and fabric.go are the relation: each guard stands there by the
// text of its conjunct. That they are the specification's is shown against package model, whose texts are compared with the TLA+ text
// themselves: TestRelation_PinnedSettings_StepsAsTheTwin. follower.go and the files it names read lines.
//
// It has no clock, file or lock. `kvfence check` and impl/sim call it. Not safe for concurrent use.
package follow
