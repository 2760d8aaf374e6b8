// Package api is the private HTTP interface between a gateway and the leader of
// a decode side: its types, its client, and the handler that a node mounts.
//
//	POST /kvfence/v1/generate   Request as JSON; answer: newline-delimited JSON events
//	GET  /kvfence/v1/info       Info as JSON
//
// The events of one request are, in this order:
//
//	accepted?  ready  token*  done            or, at any point,  error
//
// ready means verified: it is the first moment at which a gateway may send a status
// line. A stream that ends without done or error has failed ([PeerLost]), whatever
// came before. Both ends check the order ([Checked]); garbage is an error.
//
// A client that goes away closes its connection; the node's context ends, the node
// aborts by its own rules, and no write in flight is cancelled by that.
//
// The package does not admit, schedule, retry or authenticate beyond the hook it
// is given. impl/gateway calls the client; impl/node implements [Service].
// Read types.go and event.go first, then server.go and client.go.
package api
