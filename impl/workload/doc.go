// Package workload is the reference model of the project: a small decoder-only
// transformer (and a cheaper rolling hash) with a paged KV cache, deterministic
// from a seed on every machine, over byte-level tokens.
//
// It is test equipment. Every output token depends on every KV byte of its
// request, so a foreign, stale or flipped byte changes the text, and a request
// that went through prefill, transfer and decode can be compared token for token
// with [Generate], which runs the whole request in one process over private
// memory.
//
// It does not own pages, know requests or tenants, schedule, or talk to a peer:
// a caller hands it the bytes of one request through [KV]. It is not for serving.
//
// impl/node calls it for prefill and decode, impl/sim and the tests as oracle.
// Read model.go first, then transformer.go or rolling.go, then sampler.go.
package workload
