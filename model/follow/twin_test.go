package follow

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/model"
)

var (
	twinStates = flag.Int("follow.states", 400, "states of each setting at which the relation is compared with the twin")
	twinSeed   = flag.Uint64("follow.seed", 1, "seed of the walks")
)

// pinned are the settings of TLA/manifest.json at which the relation is compared: each action is enabled in one of them.
var pinned = []string{"all-1", "gone", "decode-restart", "prefill-restart", "grow-1", "share", "links", "channels", "components", "record", "reuse-read", "fence-2",
	"fence-reuse", "ask", "retry", "reach-retried", "grow", "reach-refusal", "reach-recaused", "plant-stray", "plant-torn", "plant-flip", "share-domains"}

func settingOf(t *testing.T, name string) (model.Settings, bool) {
	text, err := os.ReadFile("../../TLA/manifest.json")
	require.NoError(t, err)
	var m struct {
		Modules        map[string]struct{ Constants map[string]string }
		Configurations []struct {
			Name, Module string
			Constants    map[string]string
		}
	}
	require.NoError(t, json.Unmarshal(text, &m))
	for _, c := range m.Configurations {
		if c.Name == name {
			all := maps.Clone(m.Modules[c.Module].Constants)
			maps.Copy(all, c.Constants)
			w, err := model.FromConstants(all)
			require.NoError(t, err, name)
			return w, true
		}
	}
	return model.Settings{}, false
}

// initial is Init for a setting.
func initial(w *model.Settings) *State {
	s := NewState()
	s.asking = w.Asking
	n := s.addNode(1)
	for range w.Rank {
		k := s.addLink(n)
		s.links[k].up = true
		s.links[k].acc[accepted{}] = true
	}
	for t := uint8(1); t <= w.NT; t++ {
		x := s.transfer(Transfer(t))
		x.big = w.Big>>t&1 == 1
		if !w.Asking {
			x.lead, x.pask = leadOpen, true
		}
	}
	return s
}

// twinOf is the twin's state with the same values.
func twinOf(w *model.Settings, set map[string]model.Variable, s *State) model.State {
	var out model.State
	put := func(name string, v uint64, at ...uint64) {
		var i model.Index
		for j, x := range at {
			i[j] = uint8(x)
		}
		set[name].Set(&out, i, uint8(v))
	}
	flag := func(name string, v bool, at ...uint64) {
		if v {
			put(name, 1, at...)
		}
	}
	put("dinc", uint64(s.nodes[0].dinc))
	put("nextL", uint64(s.nodes[0].nextL))
	for id, t := range s.transfers {
		if id == 0 {
			continue
		}
		put("lead", uint64(t.lead), uint64(id))
		put("cause", uint64(t.cause), uint64(id))
		put("http", uint64(t.http), uint64(id))
		put("root", uint64(t.root), uint64(id))
		put("succ", uint64(t.succ), uint64(id))
		flag("pask", t.pask, uint64(id))
	}
	for l := uint64(1); l <= uint64(w.NL); l++ {
		put("ten", uint64(w.NoTenant), l)
		put("ada", uint64(w.NoAdapter), l)
		put("pre", uint64(w.NoPrefix), l)
	}
	for p, x := range s.pages {
		q := uint64(p) - 1
		put("own", uint64(x.own), q)
		put("gen", uint64(x.gen), q)
		flag("app", x.app, q)
		for _, y := range x.slots {
			put("mem", uint64(y.mem), q, uint64(y.k))
			put("tagl", uint64(y.tag), q, uint64(y.k))
		}
		for _, y := range x.pubs {
			put("pubs", 1, q, uint64(y.gen), uint64(y.filler))
		}
	}
	for k, x := range s.links {
		putLink(put, flag, uint64(k), x)
	}
	for _, l := range s.leases {
		putLease(put, flag, l)
	}
	return out
}

func putLink(put func(string, uint64, ...uint64), flag func(string, bool, ...uint64), k uint64, x *link) {
	put("ep", uint64(x.ep), k)
	put("linc", uint64(x.linc), k)
	put("pinc", uint64(x.pinc), k)
	flag("up", x.up, k)
	flag("fencing", x.fencing, k)
	put("dmark", uint64(x.dmark), k)
	put("pmark", uint64(x.pmark), k)
	for f := range x.pfenced {
		put("pfenced", 1, k, uint64(f.d), uint64(f.e))
	}
	for a := range x.acc {
		put("acc", 1, k, uint64(a.i), uint64(a.d), uint64(a.e))
	}
	for q, y := range x.src {
		put("sown", uint64(y.own), k, uint64(q))
		put("sdat", uint64(y.dat), k, uint64(q))
		put("sst", uint64(y.st), k, uint64(q))
	}
}

func putLease(put func(string, uint64, ...uint64), flag func(string, bool, ...uint64), l *lease) {
	id := uint64(l.id)
	put("dst", uint64(l.dst), id)
	put("dof", uint64(l.dof), id)
	put("tof", uint64(l.tof), id)
	put("ten", l.ten, id)
	put("ada", l.ada, id)
	put("pre", l.pre, id)
	for _, p := range l.plan {
		put("gpage", uint64(p.gen), id, uint64(p.page)-1)
	}
	for _, y := range l.shr {
		put("shr", 1, id, uint64(y.page)-1, uint64(y.filler))
	}
	for y := range l.krn {
		put("krn", 1, id, uint64(y.page)-1, uint64(y.gen), uint64(y.filler))
	}
	for y := range l.tok {
		put("tok", 1, id, uint64(y.filler), uint64(y.mem))
	}
	for _, o := range l.owes {
		k, i := uint64(o.k), uint64(o.ginc)
		flag("owes", o.owes, id, k)
		flag("hold", o.hold, id, k)
		flag("got", o.got, id, k)
		put("gep", uint64(o.gep), id, k)
		put("ginc", i, id, k)
		put("qep", uint64(o.qep), id, k)
		put("pst", uint64(o.pst), id, k)
		put("pview", uint64(o.pview), id, k)
		for kind := range uint64(5) {
			flag("rec", o.rec>>kind&1 == 1, kind, id, k, i)
			flag("ans", o.ans>>kind&1 == 1, kind, id, k, i)
		}
		for _, c := range o.nin {
			put("nin", 1, id, k, uint64(c), i)
		}
		for _, c := range o.nsent {
			put("nsent", 1, id, k, uint64(c), i)
		}
		for a, w := range o.sent {
			p, c := uint64(a.p)-1, uint64(a.c)
			put("sent", 1, id, k, p, c, i)
			flag("queued", w.queued, id, k, p, c, i)
			flag("flying", w.flying, id, k, p, c, i)
			flag("placing", w.placing, id, k, p, c, i)
			flag("unseen", w.unseen, id, k, p, c, i)
			flag("lost", w.lost, id, k, p, c, i)
			put("src", uint64(w.src), id, k, p, c)
			put("pay", uint64(w.pay), id, k, p, c)
		}
	}
}

// actsOf is every action of the text with every value of its parameters that the setting has room for.
func actsOf(w *model.Settings) (all []Act) {
	for _, a := range model.Actions() {
		if a.Name == "GiveUp" {
			continue // never with its guard
		}
		acts := []Act{{Name: a.Name}}
		for _, p := range a.Params {
			var next []Act
			low, high := w.Domain(p.Domain)
			for _, x := range acts {
				for v := low; v <= high; v++ {
					y := x
					bindParam(w, &y, p.Name, a.Name, v)
					next = append(next, y)
				}
			}
			acts = next
		}
		all = append(all, acts...)
	}
	for i := range all {
		if x := &all[i]; x.Name == "Grant" {
			for _, k := range x.Ks {
				for _, p := range x.S {
					if has(w, uint8(k), uint8(p)-1) {
						x.Parts = append(x.Parts, Part{k, p})
					}
				}
			}
		}
	}
	return all
}

func has(w *model.Settings, k, p uint8) bool {
	return (w.Aux>>p&1 == 0 || k == w.AuxWriter) && (w.State>>p&1 == 0 || w.StateRank>>k&1 == 1)
}

func bindParam(w *model.Settings, a *Act, name, action string, v uint8) {
	switch name {
	case "t":
		a.T = Transfer(v)
	case "u":
		a.U = Transfer(v)
	case "r":
		a.R = Transfer(v)
	case "n":
		a.N = uint64(v)
	case "a":
		a.A = uint64(v)
	case "f":
		a.F = uint64(v)
	case "l":
		a.L = Lease(v)
	case "x":
		a.X = Lease(v)
	case "p":
		a.P = Page(v) + 1
	case "k":
		a.K = Link(v)
	case "i":
		a.I = Inc(v)
	case "q":
		a.Q = SPage(v)
	case "v":
		a.View = v
	case "g":
		a.G = Gen(v)
	case "m":
		a.M = Lease(v)
	case "d":
		a.D = Inc(v)
	case "e":
		a.E = Epoch(v)
	case "S":
		for p := range len(w.Page) {
			if v>>p&1 == 1 {
				a.S = append(slices.Clip(a.S), Page(p)+1)
			}
		}
	case "K":
		for k := range len(w.Rank) {
			if v>>k&1 == 1 {
				a.Ks = append(slices.Clip(a.Ks), Link(k))
			}
		}
	case "c":
		switch action {
		case "Failure", "Recause":
			a.Cause = v
		case "RecvComplete", "RecvReceipt", "Take":
			a.Kind = v
		default:
			a.C = Chan(v)
		}
	}
}

// outside says that a setting does not have an action for a reason that is no guard of the protocol: a feature that is off, a bound.
func outside(w *model.Settings, spent bool, s *State, a *Act) bool {
	feature := map[string]bool{"Run": w.Running, "Failure": w.Running && w.Causes>>a.Cause&1 == 1, "Recause": w.Causes>>a.Cause&1 == 1, "Retry": w.Retrying, "RaiseMark": w.Marking,
		"Publish": w.Publishing, "Append": w.Appending && !aux(w, a.P), "Grow": w.Growing && !aux(w, a.P), "Lose": w.Losing, "Break": w.Breaking, "OwnMark": w.OwnMarking,
		"PrefillFence": w.PFencing, "Grant": (w.EmptyPlans || len(a.S) > 0) && a.L <= Lease(w.NL), "Stray": w.PlantStray && !spent, "Torn": w.PlantTorn && !spent,
		"Flip": w.PlantFlip && !spent, "Start": s.transfer(a.T).big || w.Views>>a.View&1 == 1, "Fence": s.links[a.K].ep < Epoch(w.NE), "DecodeCrash": s.nodes[0].dinc < Inc(w.ND),
		"PrefillCrash": s.links[a.K].pinc < Inc(w.NI)}
	on, named := feature[a.Name]
	if a.Name == "Publish" && aux(w, a.P) || a.Name == "Grow" && a.X > Lease(w.NL) {
		return true
	}
	return named && !on
}

func aux(w *model.Settings, p Page) bool { return p > 0 && w.Aux>>(p-1)&1 == 1 }

// wishes lead to a lease that is ready and read, published and shared, damaged and found.
var wishes = []string{"Submit", "Ask", "RecvAsk", "RecvAsked", "Grant", "Start", "TakeSource", "Compute", "Seal", "Post", "Launch", "Check", "Copy", "Visible", "Notice", "NoticeIn", "Complete",
	"RecvComplete", "Take", "Verify", "Ready", "Publish", "Grant", "Share", "Run", "Read", "ReadEnd", "Append", "Grow", "Stray", "BadRead", "Fence", "FenceEnd",
	"QuarantineEnd", "Success", "Failure", "Retry", "Recause", "Answer", "Accept", "Connect", "PrefillFence", "RaiseMark", "RecvMark", "Forget", "Gone"}

// edge is a step out of a state.
type edge struct {
	action string
	to     model.State
}

// compareAt compares all steps out of one state, and gives those that follow takes with their states.
func compareAt(t *testing.T, tw *model.Twin, names []string, set map[string]model.Variable, acts []Act, s *State, spent bool, count map[string]int) (steps []edge, next []*State) {
	w := &tw.Settings
	now := twinOf(w, set, s)
	now.Spent = spent
	want := map[edge]bool{}
	tw.Next(&now, func(i int, n *model.State) { want[edge{names[i], *n}] = true })
	got := map[edge]bool{}
	work := s.clone()
	for i := range acts {
		a := &acts[i]
		if outside(w, spent, s, a) {
			continue
		}
		if r := work.Do(a); r != nil {
			continue
		}
		e := edge{a.Name, twinOf(w, set, work)}
		e.to.Spent = spent || a.Name == "Stray" || a.Name == "Torn" || a.Name == "Flip"
		if !want[e] {
			require.Fail(t, "one step too many", "the follower takes %+v, the twin does not, out of\n%s", *a, tw.Text(&now))
		}
		if !got[e] {
			got[e] = true
			count[a.Name]++
			steps, next = append(steps, e), append(next, work)
		}
		work = s.clone()
	}
	for e := range want {
		if !got[e] {
			require.Fail(t, "a step is missing", "the twin takes %s, the follower does not, out of\n%s", e.action, tw.Text(&now))
		}
	}
	return steps, next
}

// At states of pinned settings that random walks come to, the steps of the relation are those of the twin: the same actions are enabled,
// with the same successors, and no other. The twin is the specification, state for state (impl/cmd/model); so is this.
func TestRelation_PinnedSettings_StepsAsTheTwin(t *testing.T) {
	count := map[string]int{}
	var names []string
	for _, a := range model.Actions() {
		names = append(names, a.Name)
	}
	for _, name := range pinned {
		w, ok := settingOf(t, name)
		if !ok {
			t.Logf("no configuration %s", name)
			continue
		}
		states, edges := compareSetting(t, w, *twinStates, strings.HasPrefix(name, "plant-") || strings.HasPrefix(name, "share"), names, count)
		t.Logf("%-16s %d states, %d edges", name, states, edges)
	}
	for _, n := range names {
		if n != "GiveUp" {
			require.Positive(t, count[n], "%s was never taken", n)
		}
	}
	t.Logf("seed %d, edges by action %v", *twinSeed, count)
}

func compareSetting(t *testing.T, w model.Settings, most int, deep bool, names []string, count map[string]int) (states, edges int) {
	tw, acts, set := model.New(w), actsOf(&w), map[string]model.Variable{}
	for _, v := range model.Variables() {
		set[v.Name] = v
	}
	type place struct {
		s     *State
		spent bool
		key   model.State
		by    string
	}
	first := place{s: initial(&w)}
	first.key = twinOf(&w, set, first.s)
	seen, open := map[model.State]bool{first.key: true}, []place{first}
	rng := rand.New(rand.NewPCG(*twinSeed, uint64(len(acts))))
	for at, i := first, 0; i < len(wishes); i++ { // to where what lies deep begins; a wish that is not enabled is passed over
		steps, next := compareAt(t, tw, names, set, acts, at.s, at.spent, count)
		edges += len(steps)
		for j, e := range steps {
			if !seen[e.to] {
				seen[e.to] = true
				open = append(open, place{next[j], e.to.Spent, e.to, e.action})
			}
		}
		for j := len(steps) - 1; j >= 0; j-- { // the last one has the most pages
			if steps[j].action != wishes[i] {
				continue
			}
			at = place{next[j], steps[j].to.Spent, steps[j].to, wishes[i]}
			break
		}
	}
	for ; len(open) > 0 && states < most; states++ {
		i := len(open) - 1 // deep as well as broad, and behind what was seldom taken
		for range rng.IntN(12) {
			if j := rng.IntN(len(open)); count[open[j].by] < count[open[i].by] {
				i = j
			}
		}
		switch {
		case states%3 == 0:
			i = 0
		case deep && states%3 == 1: // or where the most has been done
			for range 20 {
				if j := rng.IntN(len(open)); score(open[j].s, open[j].spent) > score(open[i].s, open[i].spent) {
					i = j
				}
			}
		}
		at := open[i]
		open = slices.Delete(open, i, i+1)
		steps, next := compareAt(t, tw, names, set, acts, at.s, at.spent, count)
		edges += len(steps)
		rng.Shuffle(len(steps), func(i, j int) { steps[i], steps[j], next[i], next[j] = steps[j], steps[i], next[j], next[i] })
		for i, e := range steps {
			if !seen[e.to] {
				seen[e.to] = true
				open = append(open, place{next[i], e.to.Spent, e.to, e.action})
			}
		}
	}
	return states, edges
}

// score is how far a state's leases and transfers have come.
func score(s *State, spent bool) (n int) {
	for _, t := range s.transfers {
		if t.lead == leadRun || t.lead == leadOk {
			n += 3
		}
	}
	known := 0
	for _, p := range s.pages {
		known += len(p.pubs)
		n += 9*len(p.pubs) + 20*len(p.sharers)
	}
	for _, l := range s.leases {
		switch l.dst {
		case dstReady:
			n += 8
			if spent {
				n += 20
			}
		case dstVerified:
			n += 6
		case dstFilling:
			n += 2 + 12*known
		}
		for _, o := range l.owes {
			n += int(o.pst) + len(o.sent) + len(o.nsent)
			for _, w := range o.sent {
				if !w.queued && !w.flying && !w.placing && !w.unseen {
					n += 2
				}
			}
		}
	}
	return n
}

// Every conjunct by which the relation refuses stands in the twin's table for that action, so in the TLA+ text.
func TestRelation_Conjuncts_AreTheTextOfTheSpecification(t *testing.T) {
	texts := map[string]bool{}
	for _, a := range model.Actions() {
		for _, g := range a.Guards {
			texts[g.Text] = true
		}
	}
	found := 0
	for _, f := range []string{"leader.go", "lease.go", "read.go", "link.go", "prefill.go", "fabric.go"} {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		for i, part := range strings.Split(string(text), "`") {
			if i%2 == 1 {
				found++
				require.True(t, texts[part], "%s: %s", f, part)
			}
		}
	}
	require.Greater(t, found, 120)
	t.Log(fmt.Sprint(found, " conjuncts"))
}
