// Package mem moves pages within one process, for simulation and for tests of a driver: nothing happens until somebody steps it.
// It has no goroutine, lock, clock or chance; each operation on the Fabric is a value with a number, and each of its steps is the
// test's to release, hold or spoil.
//
//	push  write:  queued -> launched (source read) -> checked (grant table) -> half the bytes -> all bytes -> tag, visible
//	      batch:  Posted, once its writes are launched, whatever became of them
//	      notice: one for each channel: queued -> launched -> delivered when all before it on its channel is over
//	pull  job:    for each copy: half the bytes -> all bytes -> source tag, digest and epoch checked -> destination tag; then Copied
//	both  fences, losses, opening, the end of a reader
//	verbs push over RDMA verbs (NewVerbs): launched -> taken in by a queue pair that works, nobody else checks -> ...; see verbs.go
//
// What can be said: Advance takes the next step; not stepping holds; Lose lets a write, notice or loss die where it is, also torn
// half-way; Duplicate doubles what is under way; Fail fails a write at its post, a batch or a notice at its completion while its
// writes are still under way, a job at its source; Overtake delivers a notice before what it stands behind; Flip changes a
// bit of a write's bytes on their way; Tear leaves out their second half and puts the tag all the same. Stepping in another order
// reorders. A crashed source takes with it what it had not launched, and nothing else.
//
// What makes a target quiet: Target.Fence is done when no write stands between its check and its tag; one that was not checked
// by then dies at its check. A Reader's is done when each of its jobs has ended, the running one at a page border. Shown by
// TestTargetFence_WritePausedHalfWay_NotOneByteLands and TestReaderFence_CopyPausedHalfWay_NotOneByteLands.
//
// Sinks are called by Step and Drain only, never within a call that an end's owner makes. Not safe for concurrent use.
// impl/sim and tests use it. Read next: fabric.go, push.go, pull.go, verbs.go, verbs_fence.go.
package mem
