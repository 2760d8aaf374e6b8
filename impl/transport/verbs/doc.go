// Package verbs is the push fabric over RDMA: one-sided writes from registered source pages straight into granted destination
// pages, by libibverbs, which is opened at run time (build tag verbs; without it Open says that this build has no verbs).
//
// Decode dials and prefill listens, as with tcp: one authenticated stream for each link and epoch (impl/transport/tcp's challenge)
// carries the addresses of the queue pairs, the keys of leases and the word that an end is shut. It stays open as long as the epoch, and
// its end is the fastest sign of a killed peer. Bytes never travel on it.
//
// A link has one reliable queue pair for each epoch and rail. The bytes of one part of one page and, behind them, its tag travel on one
// rail, and so does, behind all of a lease's writes there, its notice, an ordered send. A reliable queue pair places in order, so a
// receive completion says that all before it on that rail is in host memory: that is decode's half of a drain. (Device memory needs
// the flush that its driver documents besides.)
//
// # Who may write what
//
// The pool's own registration grants a peer nothing. For each lease decode opens, on each rail, one right for each run of neighbouring pages and one for their tag
// slots, and tells prefill their keys. A right is a memory window of type 2B bound to that link's queue pair; or, where a device has none or its windows, tried
// at start, do not hold their bounds (soft RoCE's do not), a registration of those pages alone in a protection domain of that queue pair's own: keys
// can be guessed, and a registration opens to every queue pair of its domain, so a domain shared by links would let one peer write into another's lease. A byte outside of
// them is refused by the adapter, which breaks the connection: the link is fenced. A window is taken back by a local invalidate that
// completed with success; one that was flushed proves nothing, and is freed under its queue pair in error. With leases off, one key opens the pool to
// every link: the adapter enforces epochs, and leases rest on the writer.
//
// # What makes a target quiet
//
// Assumptions A1 to A9 of spec/verbs-fence.md stand here as steps. Each queue pair is put in error, and seen there by a query; then
// every request and receive posted on it is seen completed, flushed ones included; then the rights are freed and the queue pair is destroyed;
// with leases off it is kept in error so that its number does not come back before the peer has said that its end is shut. Then a flush read:
// a read by the adapter, on a queue pair of its own, of the memory that was written, behind which no older write of that adapter is
// still on its way. Only then Fenced. When a step fails FenceFailed is said instead, and no time makes it a success.
//
// # What makes a source quiet
//
// Its queue pairs are put in error, every posted request is seen completed, and they are destroyed. A local failure of a write ends nothing before that.
//
// The package decides nothing: no verdict, no hold, and the only time-outs are those of the adapter (retries) and of a stream that has not proved itself.
// impl/node drives it. Read next: options.go, handshake.go, source.go, target.go, fence.go.
package verbs
