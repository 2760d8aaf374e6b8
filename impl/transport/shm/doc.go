//go:build linux

// Package shm pulls: decode copies from a read-only mapping of prefill's pool, in another process on the same host.
//
//	Exporter  prefill's end: owns the Unix socket, hands descriptors to readers that hold a link's key, watches their processes
//	Reader    decode's end: maps the pools, copies jobs in one worker, checks the source tag after each copy
//
// What makes a target quiet. Nobody writes the destination pool but the Reader's own worker: it is never shared. Fence sets a
// flag that the worker reads before each step of a copy (at most 256 KiB) and before each destination tag; only the worker reports
// Fenced, after the copy in hand has stopped and every queued job has ended. So when Fenced is called nobody is left who could
// place a byte. Shown by TestFence_CopyPausedHalfWay_NotOneByteLands and TestFence_ReaderStoppedHalfWay_SourceReusedIsFound
// (another process, SIGSTOP).
//
// What makes a source quiet. Prefill's hold ends by the reader's word (Read, or its mark), or by the end of the reader's process:
// the exporter holds a pidfd of it and reports ReaderEnded once. The loss of the socket proves nothing: the copy may go on.
// Shown by TestExporter_ReaderKilled_EndsOnce and TestExporter_SocketLost_ProvesNothing.
//
// What the reader trusts. Nothing that it reads twice: bytes are hashed as they are stored (device.Mover), the source tag is
// compared with the manifest after the copy, then the link's epoch (its own fence and the word in the source's control page),
// and only then the destination tag is written. A source reused under a sleeping reader is found by its tag; if the owner could
// write without taking the tag away first, only digests would find it, so owners void tags at hand-out.
//
// Memory. Our own pools are memfds sealed against other writers and against shrinking (device.NewSharedPool); the reader insists
// on the seals where the exporter claims them. Adopted engine memory cannot be sealed: it is passed as a read-only descriptor,
// which a process of the same user could open again for writing, and if it shrinks, the fault ends the job with an error and
// loses the link (TestReader_UnsealedSourceShrinks_JobFails). Nothing here is encrypted.
//
// Order of memory. The owner voids a tag before it stores new bytes, the reader loads the tag after the bytes. On amd64 loads and
// ordinary stores keep their order; elsewhere loadFence orders the loads, and that the owner's stores are ordered by its own
// hand-out (which passes through locks) is assumed.
//
// It knows no transfer, hold or verdict. impl/node drives it. Read next: export.go, reader.go, wire.go.
package shm
