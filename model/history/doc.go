// Package history holds sequential specifications of what the engine's callers see, for the linearizability checker porcupine:
// of the ledger of pages (ledger.go), of the leases of a pair of nodes (lease.go), and of the gateway's client API (client.go).
//
// A history is what concurrent clients asked and were answered, with the times of both. It is accepted if some order of the
// calls, each at one moment between its ask and its answer, is a run of the sequential specification. Where the engine may choose
// (which free page, which of several failures), the specification takes what the answer says and checks that it was one of the
// choices; it never takes an answer that no choice gives.
//
// It records with the clock that the caller hands in, and has no clock, lock or goroutine of its own. It knows nothing of the engine:
// tests of impl/node, impl/gateway and impl/chaos record there and judge here. Read next: record.go, ledger.go.
package history
