package sim

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
	return []PlantInfo{
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
}
