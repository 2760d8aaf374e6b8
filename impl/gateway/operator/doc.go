// Package operator is the listener for operators of any role: /metrics, /healthz,
// /readyz, /status, POST /drain, and a plain page at /. It is handed what it shows.
//
// It has no identities of its own: it belongs on loopback, or behind mutual TLS that
// the caller sets up. A web page in the operator's browser can neither read nor drain
// it: requests of other origins are refused, and, on loopback, requests under any
// name that is not loopback's.
//
// impl/cmd/kvfence and impl/node start it. It knows nothing of gateways or nodes; see
// Gateway.Status for a section.
package operator
