package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// Tests of single guards that no scenario needs: what they refuse comes of a peer that is wrong.

func TestWithin_EachEdgeIsTested(t *testing.T) {
	s := spec.Shape{LayerLo: 2, LayerHi: 6, HeadLo: 4, HeadHi: 8}
	good := spec.Part{LayerLo: 2, LayerHi: 6, HeadLo: 4, HeadHi: 8}
	require.True(t, within(good, s))
	for _, change := range []func(*spec.Part){
		func(p *spec.Part) { p.LayerLo = 1 }, func(p *spec.Part) { p.LayerHi = 7 }, func(p *spec.Part) { p.HeadLo = 3 }, func(p *spec.Part) { p.HeadHi = 9 },
		func(p *spec.Part) { p.LayerLo, p.LayerHi = 4, 4 }, func(p *spec.Part) { p.HeadLo, p.HeadHi = 6, 6 },
	} {
		p := good
		change(&p)
		require.False(t, within(p, s), "%+v", p)
	}
}

func TestOverlap_NeedsAllThreeRangesToCross(t *testing.T) {
	a := spec.Part{LayerLo: 1, LayerHi: 3, HeadLo: 1, HeadHi: 3, TokenLo: 4, TokenHi: 8}
	require.True(t, overlap(a, a))
	for name, change := range map[string]func(*spec.Part){
		"tokens before": func(p *spec.Part) { p.TokenLo, p.TokenHi = 0, 4 }, "tokens behind": func(p *spec.Part) { p.TokenLo, p.TokenHi = 8, 9 },
		"layers before": func(p *spec.Part) { p.LayerLo, p.LayerHi = 0, 1 }, "layers behind": func(p *spec.Part) { p.LayerLo, p.LayerHi = 3, 4 },
		"heads before": func(p *spec.Part) { p.HeadLo, p.HeadHi = 0, 1 }, "heads behind": func(p *spec.Part) { p.HeadLo, p.HeadHi = 3, 4 },
	} {
		b := a
		change(&b)
		require.False(t, overlap(a, b), name)
		require.False(t, overlap(b, a), name)
	}
	record := spec.Part{LayerHi: 1, HeadHi: 1}
	require.True(t, overlap(record, record), "two records of a request, which have no token range")
	require.False(t, overlap(record, spec.Part{LayerHi: 1, HeadHi: 1, TokenHi: 4}), "a record and a range are of different pools")
	require.False(t, overlap(spec.Part{LayerHi: 1, HeadHi: 1, TokenHi: 4}, record))
}

func TestJudgePart_EachReasonByItself(t *testing.T) {
	kv := func(change func(*spec.Part)) spec.Part {
		p := spec.Part{Component: spec.KV, LayerHi: 2, HeadHi: 2, TokenHi: 6}
		change(&p)
		return p
	}
	same := func(*spec.Part) {}
	record := func(change func(*spec.Part)) spec.Part {
		p := spec.Part{Component: spec.Aux, LayerHi: 1, HeadHi: 1}
		change(&p)
		return p
	}
	for name, c := range map[string]struct {
		before []spec.Part
		part   spec.Part
		theirs func([]spec.Layout) []spec.Layout
		why    string
	}{
		"good":                     {part: kv(same)},
		"good record":              {part: record(same)},
		"another rank's":           {part: kv(func(p *spec.Part) { p.Rank = 3 }), why: "it is rank 3's"},
		"no pool here":             {part: kv(func(p *spec.Part) { p.Component = spec.State }), why: "no such pool"},
		"no pool there":            {part: kv(same), theirs: func(ls []spec.Layout) []spec.Layout { return ls[1:] }, why: "no such pool"},
		"layers outside of ours":   {part: kv(func(p *spec.Part) { p.LayerHi = 3 }), theirs: wider, why: "layers or heads"},
		"layers outside of theirs": {part: kv(same), theirs: narrower, why: "layers or heads"},
		"slot":                     {part: kv(func(p *spec.Part) { p.Index = 4 }), why: "its slot"},
		"tokens turned round":      {part: kv(func(p *spec.Part) { p.TokenLo, p.TokenHi = 5, 4 }), why: "tokens [5,4)"},
		"tokens beyond":            {part: kv(func(p *spec.Part) { p.TokenHi = 7 }), why: "tokens [0,7)"},
		"a record's first token":   {part: record(func(p *spec.Part) { p.TokenLo = 1 }), why: "token range"},
		"a record's last token":    {part: record(func(p *spec.Part) { p.TokenHi = 1 }), why: "token range"},
		"the slot of another part": {before: []spec.Part{kv(func(p *spec.Part) { p.TokenHi = 4 })}, part: kv(func(p *spec.Part) { p.TokenLo = 4 }), why: "shares a slot"},
		"the bytes of another part": {before: []spec.Part{kv(func(p *spec.Part) { p.TokenHi = 4 })},
			part: kv(func(p *spec.Part) { p.Index, p.TokenLo = 1, 3 }), why: "shares a slot or bytes"},
		"beside another part":  {before: []spec.Part{kv(func(p *spec.Part) { p.TokenHi = 4 })}, part: kv(func(p *spec.Part) { p.Index, p.TokenLo = 1, 4 })},
		"slot of another pool": {before: []spec.Part{record(same)}, part: kv(same)},
	} {
		t.Run(name, func(t *testing.T) {
			g := newPrefillRig(t, nil)
			g.open(1, 1, nil)
			k := g.r.links[1]
			if c.theirs != nil {
				k.layouts = c.theirs(rigLayouts(16))
			}
			grant := grantOf(1, 1, 1, 6)
			grant.Parts = append(c.before, c.part)
			why := g.r.judgePart(k, grant, len(c.before), c.part)
			if c.why == "" {
				require.Empty(t, why)
			} else {
				require.Contains(t, why, c.why)
			}
		})
	}
}

// wider and narrower are decode pools of three layers and of one.
func wider(ls []spec.Layout) []spec.Layout { return layersOf(ls, 3) }

func narrower(ls []spec.Layout) []spec.Layout { return layersOf(ls, 1) }

func layersOf(ls []spec.Layout, n uint32) []spec.Layout {
	m := rigMeaning(spec.KV)
	m.Layers = 3
	return append([]spec.Layout{spec.NewDense(spec.KV, m, 0, n, 0, 2, 16, 4)}, ls[1:]...)
}

func TestPrefillRank_GrantOfNoTokens_IsFailed(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, nil)
	grant := grantOf(1, 1, 1, 6)
	grant.Tokens, grant.Parts = 0, nil
	f := sent[spec.Failed](g.say(1, grant))
	require.NotNil(t, f)
	require.Contains(t, f.Detail, "no tokens")
}

func TestPrefillRank_WorkingLeasesAtTheirBound_AGrantIsRefused(t *testing.T) {
	g := newPrefillRig(t, func(c *PrefillRankConfig) { c.MaxLeases = 1 })
	g.open(1, 1, nil)
	g.started(1, 1, 1, 6)
	g.assign(1, 2, 6)
	r := sent[spec.Refused](g.say(1, grantOf(1, 2, 2, 6)))
	require.NotNil(t, r)
	require.Equal(t, spec.RefuseFull, r.Refusal)
	require.Nil(t, g.r.links[1].leases[2])
}

func TestPrefillRank_JobsAtTheirBound_AGrantIsRefused(t *testing.T) {
	g := newPrefillRig(t, func(c *PrefillRankConfig) { c.MaxJobs = 1 })
	g.open(1, 1, nil)
	g.say(1, grantOf(1, 1, 1, 6))
	r := sent[spec.Refused](g.say(1, grantOf(1, 2, 2, 6)))
	require.NotNil(t, r)
	require.Equal(t, spec.RefuseFull, r.Refusal)
}

func TestPrefillRank_ReadOnAPushLink_IsRefused(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, nil)
	g.started(1, 1, 1, 6)
	r := sent[spec.Refused](g.say(1, spec.Read{Transfer: xfer(1, 1), Lease: 1}))
	require.NotNil(t, r)
	require.Equal(t, spec.RefuseWrongState, r.Refusal)
	require.Equal(t, leaseWriting, g.r.links[1].leases[1].state)
}

func TestPrefillRank_DataPathThatDoesNotOpen_IsFenced(t *testing.T) {
	g := newPrefillRig(t, nil)
	e := g.connectEvent(1, 1, nil)
	g.step(e)
	require.NotNil(t, sent[spec.Accept](g.last))
	acts := g.step(DataUp{Peer: 1, Epoch: 1, Err: "nobody came"})
	require.NotNil(t, action1[Fence](acts))
	require.Nil(t, toLeader[PeerLink](acts))
	require.NotEqual(t, linkOpen, g.r.links[1].state)
}

// An early grant whose transfer is never announced ends by its bound.
func TestPrefillRank_GrantNeverAssigned_EndsByItsBound(t *testing.T) {
	g := newPrefillRig(t, func(c *PrefillRankConfig) { c.AssignBound = 50; c.Heartbeat, c.Liveness = 1000, 100000 })
	g.open(1, 1, nil)
	require.Nil(t, sent[spec.Failed](g.say(1, grantOf(1, 1, 1, 6))))
	require.Equal(t, g.now+50, g.r.Deadline())
	require.Nil(t, sent[spec.Failed](g.wait(49)))
	require.NotNil(t, sent[spec.Failed](g.wait(1)))
}

// What a Connect says of its own side must be whole: each part of the test by itself.
func TestPrefillRank_Connect_OfAnImpossibleSide_IsRefused(t *testing.T) {
	for name, change := range map[string]func(*spec.Connect){
		"no incarnation": func(c *spec.Connect) { c.Identity.Incarnation = spec.Incarnation{} },
		"no ranks":       func(c *spec.Connect) { c.Identity.Size, c.Identity.Side = 0, nil },
		"too many ranks": func(c *spec.Connect) {
			c.Identity.Size, c.Identity.Side = spec.MaxRanks+1, make([]spec.Incarnation, spec.MaxRanks+1)
		},
		"size is not the list's": func(c *spec.Connect) { c.Identity.Size = 2 },
		"rank beyond the list":   func(c *spec.Connect) { c.Identity.Rank = 1 },
		"another at its rank":    func(c *spec.Connect) { c.Identity.Side = []spec.Incarnation{incOf(77)} },
		"no name":                func(c *spec.Connect) { c.Identity.Name = "" },
		"epoch 0":                func(c *spec.Connect) { c.Epoch = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			g := newPrefillRig(t, nil)
			e := g.connectEvent(1, 1, func(c *spec.Connect) {
				change(c)
				if name == "too many ranks" {
					c.Identity.Side[0] = c.Identity.Incarnation
				}
			})
			acts := g.step(e)
			require.Nil(t, sent[spec.Accept](acts))
			require.NotNil(t, sent[spec.Refuse](acts))
			require.Nil(t, g.r.links[1])
		})
	}
}
