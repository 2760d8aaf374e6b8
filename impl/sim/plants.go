package sim

import "kvfence/impl/transport/mem"

// PlantInfo is a bug of fabric, memory or driver that breaks the promise although the engine does all it can: an oracle must find it.
type PlantInfo struct {
	Name   string
	About  string
	Found  Oracle // the oracle that finds it first in most seeds
	Change func(*Config)
}

// Plants is every such bug. Those of the engine itself are in impl/plants.
func Plants() []PlantInfo {
	shared := func(c *Config) { c.Sharing, c.Sources, c.NoState = 16, 16, c.Seed%2 == 0 }
	verbs := func(v mem.Verbs) func(*Config) {
		return func(c *Config) {
			c.Pull, c.Lax, c.Channels, c.Verbs = false, false, max(c.Channels, 2), v
			c.Verbs.On = true
		}
	}
	checked := func(change func(*Config)) func(*Config) { // the fault is one of a fabric whose placers check
		return func(c *Config) { c.Verbs = mem.Verbs{}; change(c) }
	}
	plants := []PlantInfo{
		{"posted-early", "a batch is said to be over while its sources are still read", I6, func(c *Config) { c.Pull, c.Plant.PostedEarly = false, true }},
		{"fence-early", "decode's fence does not fence", I2, func(c *Config) { c.Pull, c.Plant.FenceEarly = false, true }},
		{"fence-waits-for-none", "decode's fence does not wait for placers", I16, func(c *Config) { c.Pull, c.Fabric.FenceAtOnce = false, true }},
		{"reader-waits-for-none", "a reader's fence does not wait for its copies", I16, func(c *Config) { c.Pull, c.Fabric.FenceAtOnce = true, true }},
		{"seal-early", "pages are said to be computed while they still are", I3, func(c *Config) { c.Plant.SealEarly = true }},
		{"notices-first", "every notice overtakes the writes of its channel", I2, func(c *Config) { c.Pull, c.Lax, c.Fabric.NoticesFirst = false, false, true }},
		{"flip-landed", "a bit flips in decode's memory after its digest was taken: only error-correcting memory helps", I3, func(c *Config) { c.Plant.FlipLanded = true }},
		{"append-over", "a step stores into a page that others share (no copy before append)", I3, func(c *Config) { shared(c); c.Plant.AppendOver = true }},
		{"no-copy", "a further sample's tail is not copied", I3, func(c *Config) { shared(c); c.Plant.NoCopy = true }},
		{"short-ids", "content ids leave out the tokens before the page", I3, func(c *Config) { shared(c); c.Plant.ShortIDs = true }},
	}
	for i := range plants {
		plants[i].Change = checked(plants[i].Change)
	}
	return append(plants, []PlantInfo{
		{"verbs-socket-only", "a fence over verbs ends the stream; the pool's key is good in the next epoch, too", I16, verbs(mem.Verbs{SocketOnly: true})},
		{"verbs-unseen", "a fence over verbs is back before the queue pair is seen in error", I16, verbs(mem.Verbs{Unseen: true})},
		{"verbs-no-flush-read", "a fence over verbs without its flush read", I16, verbs(mem.Verbs{NoFlushRead: true})},
		{"verbs-number-free", "a queue pair's number is used again before its peer's end is shut", I16, verbs(mem.Verbs{NumberFree: true})},
		{"verbs-local-error", "a completion in error is taken as proof that nothing lands", I16, verbs(mem.Verbs{LocalError: true})},
		{"verbs-one-completion", "the completions of one rail are taken for both", I6, verbs(mem.Verbs{OneCompletion: true})},
		{"verbs-one-notice", "the notice of one rail is taken for both", I2, verbs(mem.Verbs{OneNotice: true})},
	}...)
}
