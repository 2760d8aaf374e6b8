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
	Storm  *storm // runs of its own; nil: those of impl/sim
	Quiet  bool   // nothing in these runs damages memory or breaks the fabric's order: an alarm is a false one
}

// Mixes is every mix.
func Mixes() []Mix {
	return []Mix{
		{Name: "", What: "as drawn", Change: nil},
		{Name: "push", What: "pages are pushed", Change: func(c *sim.Config) { c.Pull = false }},
		{Name: "pull", What: "pages are pulled", Change: func(c *sim.Config) { c.Pull = true }},
		{Name: "sharing", What: "prefixes are shared at both ends", Change: sharing},
		{Name: "blind", What: "pages are pushed, and neither digests nor a step's tags are compared", Change: pushBlind},
		{Name: "aborts", What: "pages are pushed; writes are held at any stage while clients leave and deadlines pass", Change: push,
			Storm: &storm{leave: 35, held: 40, most: 100e6}},
		{Name: "fences", What: "pages are pushed; writes are held while data paths break and networks part", Change: push,
			Storm: &storm{leave: 5, cut: 12, part: 8, held: 40, most: 20e9}},
		{Name: "restarts", What: "pages are pushed; writes are held while processes end and are started anew", Change: push,
			Storm: &storm{leave: 5, kill: 20, held: 40, most: 2e9}},
		{Name: "bare-aborts", What: "as aborts; detection is off, and the fabric places what no table allows", Change: bare,
			Storm: &storm{leave: 35, held: 40, most: 100e6}},
		{Name: "bare-fences", What: "as fences; detection is off, and the fabric places what no table allows", Change: bare,
			Storm: &storm{leave: 5, cut: 12, part: 8, held: 40, most: 20e9}},
		{Name: "pull-aborts", What: "pages are pulled; copies are held while clients leave", Change: pull,
			Storm: &storm{leave: 35, held: 40, most: 100e6}},
		{Name: "pull-fences", What: "pages are pulled; copies are held while sockets break and networks part", Change: pull,
			Storm: &storm{leave: 5, cut: 12, part: 8, held: 40, most: 20e9}},
		{Name: "pull-restarts", What: "pages are pulled; copies are held while processes end and are started anew", Change: pull,
			Storm: &storm{leave: 5, kill: 20, held: 40, most: 2e9}},
		{Name: "pull-blind", What: "pages are pulled, and neither digests nor a step's tags are compared", Change: func(c *sim.Config) {
			c.Pull = true
			blind(c)
		}},
		{Name: "calm", What: "pages are pushed; writes are held for a while, and nothing else happens", Change: push, Storm: &storm{held: 40, most: 50e6}},
		{Name: "pull-calm", What: "pages are pulled; copies are held for a while, and nothing else happens", Change: pull, Storm: &storm{held: 40, most: 50e6}},
		{Name: "late", What: "pages are pushed; messages are doubled, and the second copy comes late", Storm: &storm{leave: 20, held: 20, most: 50e6}, Change: late},
		{Name: "forgetful", What: "as late; prefill remembers one answer, and messages are lost", Storm: &storm{leave: 20, held: 40, most: 2e9}, Change: forgetful},
		{Name: "small", What: "decode's pools are smaller than some requests", Storm: &storm{held: 10, most: 50e6}, Change: func(c *sim.Config) {
			push(c)
			c.DecodePages = 5
		}},
		{Name: "halves", What: "pages are pushed; prefill is asked first, and twice for what it has", Change: push, Storm: &storm{halves: 50, held: 10, most: 20e6}},
		{Name: "crowded", What: "decode's pools hold one or two requests", Storm: &storm{held: 60, most: 200e6}, Change: func(c *sim.Config) {
			push(c)
			c.DecodePages = 7
		}},
		{Name: "tight", What: "as blind; prefill's pools are smaller than some prompts", Storm: &storm{held: 10, most: 50e6}, Change: func(c *sim.Config) {
			bare(c)
			c.PrefillPages = 4
		}},
	}
}

func push(c *sim.Config) {
	c.Pull = false
	remember(c, 64)
}

func pull(c *sim.Config) {
	c.Pull = true
	remember(c, 64)
}

// remember bounds the answers that a prefill rank keeps. With few of them a link may be fenced that is as it should be.
func remember(c *sim.Config, answers int) {
	drawn := c.PrefillRank
	c.PrefillRank = func(p *core.PrefillRankConfig) {
		if drawn != nil {
			drawn(p)
		}
		p.MaxAnswers = answers
	}
}

func pushBlind(c *sim.Config) {
	push(c)
	blind(c)
}

func late(c *sim.Config) {
	push(c)
	c.Net = sim.NetFaults{Duplicate: 40}
}

func forgetful(c *sim.Config) {
	push(c)
	remember(c, 1)
	c.Net = sim.NetFaults{Duplicate: 20, Drop: 20}
}

func bare(c *sim.Config) {
	pushBlind(c)
	c.Fabric.Unchecked = true
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
