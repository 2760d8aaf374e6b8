// Package tcp is the push fabric over TCP streams, with one-sided semantics: the source names a page and its bytes go from the
// source page straight into the destination page, once the destination's grant table has agreed to that very page.
//
// Prefill listens (Listen), is told which links to expect (Listener.Expect) and gets a transport.Source for each; decode dials
// (Dial) and gets a transport.Target. Data flows from prefill to decode only. Both ends of each stream prove by HMAC that they
// hold the link's key before any data byte (auth.go); the key itself is never sent. With a TLS configuration the streams are
// encrypted, and the copy out of the TLS record is the one copy beside that into the page. The kernel always copies out of
// the source page: there is no zero-copy send and no splice, whose queues would still refer to a page that was given up.
//
// # What makes a target quiet
//
// A byte lands only in a readv (or a copy out of a TLS record) that a stream's reader goroutine makes between Grants.Begin and
// Grants.End. Target.Fence relies on its caller having raised the epoch first (Grants.Raise): no placement of the old epoch can
// begin any more, on any stream. Then it closes the streams, which wakes a reader that waits in the middle of a page; waits
// until each reader goroutine has ended; and waits for Grants.Wait. Only then it reports Fenced. What still lies in a socket
// buffer or comes later has no reader: it cannot land. That close has returned proves nothing by itself: a reader may be in the copy. The test is
// TestFence_WritePausedHalfWay_NothingLands, with and without TLS.
//
// # What makes a source quiet
//
// A source page is read only inside writev on a sender goroutine (or while it is sealed into TLS records there). Source.Fence
// closes the streams, waits for all sender goroutines, and only then reports Fenced. The test is TestSource_FenceWhileSending_ReadsNoPageAfterwards.
//
// The package decides nothing: no verdict, no hold, no time-out but that of an unauthenticated connection. impl/node drives it.
// Read next: frame.go (the bytes on a stream), receiver.go, sender.go, then source.go and target.go.
package tcp
