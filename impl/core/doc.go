// Package core is the protocol: four pure, deterministic state machines. DecodeLeader admits requests, mints transfers and
// holds the one verdict of each; DecodeRank owns one pool, its leases, holds, marks and link epochs; PrefillLeader answers asks
// and orders computation; PrefillRank owns a source pool, seals, posts, drains and answers. It imports spec and impl/pages and
// no clock, chance, socket, log or lock.
//
// Duties of the driver (impl/node for real, impl/sim in simulation), in this order:
//
//  1. Call Step with one event at a time; times never go back. Carry out the returned actions in their order: an earlier
//     action is done, or queued where order is kept, before a later one starts. (VoidTags before the Send of its Grant; Allow
//     before it; Revoke before pages are said to be free.)
//  2. Every started piece of work (OpenData, Fence, Verify, Seal, Post, Notice, PullCopy, RunStep, Compute, ...) ends in exactly
//     one event that names it: done, failed or fenced. An error from Step means that the driver broke this contract.
//  3. Deliver Side messages between a leader and its ranks in order; report a lost rank or leader.
//  4. Call Step(Tick) no later than Deadline.
//  5. After a Stop action serve nothing; carry out the fences that come with it, then end the process.
//
// Nothing that a peer sends makes Step fail: it is refused with a reason, which is counted and traced (Did, Count).
// The names in Did are the action names of TLA/Transfer.tla. Invariants 2 to 18 are assertions here, by number (invariant.go).
// Read next: event.go, action.go, then decode_rank.go and prefill_rank.go.
package core
