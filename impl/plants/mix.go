package plants

import (
	"fmt"

	"kvfence/impl/core"
	"kvfence/impl/sim"
)

// Mix is a kind of runs of the simulation: what is changed in the cluster that a seed draws. The zero name is the cluster as drawn.
type Mix struct {
	Name   string
	What   string
	Change func(*sim.Config)
	Quiet  bool // nothing in these runs damages memory or breaks the fabric's order: an alarm is a false one
}

// Mixes is every mix.
func Mixes() []Mix {
	return []Mix{
		{"", "as drawn", nil, false},
		{"push", "pages are pushed", func(c *sim.Config) { c.Pull = false }, false},
		{"pull", "pages are pulled", func(c *sim.Config) { c.Pull = true }, false},
		{"sharing", "prefixes are shared at both ends", sharing, false},
		{"blind", "pages are pushed, and neither digests nor a step's tags are compared", func(c *sim.Config) {
			c.Pull = false
			blind(c)
		}, false},
		{"bare", "pages are pushed, detection is off, and the fabric places what no table allows", func(c *sim.Config) {
			c.Pull, c.Fabric.Unchecked = false, true
			blind(c)
		}, false},
		{"tight", "pools of prefill are smaller than some prompts", func(c *sim.Config) { c.Pull, c.PrefillPages = false, 4 }, false},
	}
}

func sharing(c *sim.Config) { c.Sharing, c.Sources, c.NoState = 16, 16, c.Seed%2 == 0 }

// blind takes both detectors off that an operator may take off.
func blind(c *sim.Config) {
	prefill := c.PrefillRank
	c.PrefillRank = func(p *core.PrefillRankConfig) {
		if prefill != nil {
			prefill(p)
		}
		p.Digests = false
	}
	decode := c.DecodeRank
	c.DecodeRank = func(d *core.DecodeRankConfig) {
		if decode != nil {
			decode(d)
		}
		d.Digests, d.NoStepChecks = false, true
	}
}

// FindMix is a mix by its name.
func FindMix(name string) (Mix, error) {
	for _, m := range Mixes() {
		if m.Name == name {
			return m, nil
		}
	}
	return Mix{}, fmt.Errorf("%w: there is no mix %q", ErrPlant, name)
}
