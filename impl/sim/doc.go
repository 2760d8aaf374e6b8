// Package sim is a whole cluster in one goroutine: the real machines of impl/core on the real memory fabric of
// impl/transport/mem, with a simulated clock, network and computation. A seed is a run: the same seed takes the same steps and
// ends with the same hash. Between any two steps everything may be late, lost, doubled, reordered, cut, paused or killed.
//
// It shows that nobody reads another's bytes (every KV byte is a function of domain, tokens, position, layer and head, and every
// read compares them all), that every request gets one answer and no false success, and that every page comes back. It does
// not show anything about sockets, real memory or wall time: those are tested in impl/transport and impl/node.
//
// Tests, impl/plants and `kvfence simulate` call it. Read next: world.go and choice.go (the loop), prefill.go, decode.go and net.go
// (drivers), kinds.go and director.go (what a seed does), oracles.go and oracle.go (what is judged), run.go, script.go and shrink.go
// (scripts of runs), many.go and result.go (many seeds). docs/simulation.md is the page for people.
package sim
