// Package histories records what concurrent callers of the engine are answered, for the sequential specifications of model/history: the
// clients of a gateway over HTTP (client.go), and the ledger of pages (ledger.go).
//
// It is used by tests alone, of impl/node and impl/chaos, and by fuzz. It decides nothing and judges nothing but the shape of an
// answer: what is no answer at all becomes one that no specification takes. Read next: client.go; model/history.
package histories
