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
//
// Where a rule lives (protocol step: decode | prefill):
//
//	ask, admission           decode_leader_admit.go, _ask.go | prefill_leader_ask.go
//	grant, order of pages    decode_leader_take.go, decode_rank_take.go | prefill_rank_grant.go, prefill_leader_job.go
//	parts and tags           decode_rank_plan.go | prefill_rank_grant.go
//	fill, seal, post         - | prefill_rank_job.go, prefill_rank_fill.go
//	drain and receipts       decode_rank_receipt.go | prefill_rank_end.go
//	verify, read, append     decode_rank_ready.go, decode_leader_run.go | -
//	release, holds           decode_rank_take.go (ledgerEnd), impl/pages | prefill_rank_job.go
//	aborts and failures      decode_rank_take.go (fail), decode_leader_end.go | prefill_rank_lease.go, prefill_rank_end.go
//	one verdict, retry       decode_leader_end.go | -
//	connect, epochs, fence   decode_rank_link.go, decode_rank_fence.go | prefill_rank_hello.go, _twin.go, prefill_rank_link.go
//	quarantine               decode_rank_fence.go | -
//	marks                    decode_rank_link.go (mark, say) | prefill_rank_lease.go
//	message tests, in order  decode_rank_recv.go | prefill_rank_lease.go
//	pull                     decode_rank_pull.go | prefill_rank_pull.go
//	growth, preemption       decode_rank_take.go (grow), decode_leader_run.go | -
//	sharing: publish, share  decode_rank_share.go, impl/pages/share.go | prefill_rank_share.go, prefill_rank_grant.go (void pages)
//	copy on append, fork     decode_rank_share.go (store, copyFirst), decode_rank_fork.go | -
//	a finding's other holders decode_rank_share.go (spoil), decode_rank_fence.go (quarantine) | -
//	invariants by number     invariant.go
//
// Read next: event.go, action.go, then decode_rank.go and prefill_rank.go.
package core
