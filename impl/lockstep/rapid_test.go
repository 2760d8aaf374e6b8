package lockstep

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kvfence/impl/core"
	"kvfence/model"
	"kvfence/spec"
)

// large are settings that no graph is explored of, up to what a State has room for.
func large() []Setting {
	c := func(more ...string) map[string]string {
		m := map[string]string{"NL": "4", "NT": "3", "Breaking": "TRUE", "Views": `{"same", "other"}`}
		for i := 0; i+1 < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	return []Setting{
		{Name: "wide", KV: 2, Aux: 1, Source: 1, Prompt: 1, Constants: c("Rank", "{r1, r2}", "Chan", "{c1, c2}", "NQ", "2", "NE", "3", "PFencing", "TRUE", "Losing", "TRUE", "Marking", "TRUE")},
		{Name: "lives", KV: 3, Source: 1, Prompt: 1, Constants: c("Chan", "{c1, c2}", "NE", "3", "NI", "2", "ND", "2", "PFencing", "TRUE", "Losing", "TRUE", "Marking", "TRUE")},
		{Name: "prefixes", KV: 3, Source: 2, Prompt: 3, Published: 3, Constants: c("NQ", "2", "NE", "2", "ND", "1", "PFencing", "TRUE", "Publishing", "TRUE",
			"Tenant", "{t1, t2}", "Adapter", "{a1, a2}", "Prefix", "{f1, f2}")},
		{Name: "answers", KV: 3, Source: 1, Prompt: 1, Answers: 1, Constants: c("Chan", "{c1, c2}", "OwnMarking", "TRUE")},
		{Name: "growing", KV: 3, Source: 1, Prompt: 1, Constants: c("NE", "2", "PFencing", "TRUE", "Growing", "TRUE", "Appending", "TRUE")},
		{Name: "torn", KV: 3, Source: 1, Prompt: 1, Constants: c("NE", "3", "NI", "1", "PFencing", "TRUE", "PlantTorn", "TRUE")},
		{Name: "requests", KV: 1, Source: 1, Prompt: 1, Leaders: true, OneRequest: true, Constants: map[string]string{"NL": "3", "NT": "2", "NE": "3", "PFencing": "TRUE", "Asking": "TRUE", "Running": "TRUE",
			"Retrying": "TRUE", "PlantStray": "TRUE", "Causes": `{"derived", "original"}`}},
	}
}

// echoes are things that come again, late, or from a life that is over: none may change anything.
func (w *World) echoes(emit func(name string, do func())) {
	v := view{d: w.d.Inspect()}
	for _, r := range sortedKeys(w.answers) {
		x := &w.lease[r.l]
		if x.dinc == w.dinc && v.holds(x, r.k) && x.ginc[r.k] == r.i {
			continue // it may come for the first time
		}
		emit(fmt.Sprint("receipt ", r), func() { w.hear(r) })
	}
	for _, a := range sortedKeys(w.accepts) {
		if l := &w.links[a.k]; a.d != w.dinc || a.e != w.ep(a.k) || v.d.Links[a.k].Open || l.connect == nil {
			m := w.accepts[a]
			emit(fmt.Sprint("answer to a connect ", a), func() { w.stepD(core.Recv{Peer: core.PeerID(a.k + 1), Conn: m.Conn, Env: m.Env}) })
		}
	}
	for _, n := range sortedKeys(w.arrived) {
		if w.arrived[n] {
			emit(fmt.Sprint("notice ", n), func() { w.tellNotice(n) })
		}
	}
	for l := uint8(1); l < w.next; l++ {
		for k := range ranks(w.tw) {
			w.echoLease(l, k, emit)
		}
		x := &w.lease[l]
		if x.dinc == w.dinc && x.parent == 0 && x.verify == nil {
			emit("a check that is over", func() { w.stepD(core.Verified{Lease: x.id}) })
		}
	}
	for k := range ranks(w.tw) {
		emit("a fence that is back", func() { w.stepD(core.FenceDone{Peer: core.PeerID(k + 1), Old: 0, OK: true}) })
		emit("a data path of an older epoch", func() { w.stepD(core.DataLost{Peer: core.PeerID(k + 1), Epoch: w.links[k].table - 1}) })
	}
}

// echoLease is the messages of decode about one lease, said again where they were heard, or to another life.
func (w *World) echoLease(l, k uint8, emit func(name string, do func())) {
	x := &w.lease[l]
	s := &x.at[k]
	conn := w.links[k].peers[x.dinc].conn
	say := func(m *core.Send) func() {
		return func() {
			env := m.Env
			env.Mark = 0
			w.stepP(k, core.Recv{Peer: pid(x.dinc), Conn: conn, Env: env})
		}
	}
	old := x.ginc[k] != w.pinc[k] || s.killed
	if m := x.grant[k]; m != nil && conn != 0 && (old || s.pst != model.PstNone && !s.aborting) {
		emit(fmt.Sprintf("grant of lease %d to rank %d", l, k), say(m))
	}
	if m := x.abort[k]; m != nil && conn != 0 && (old || s.pst == model.PstClosed) {
		emit(fmt.Sprintf("abort of lease %d to rank %d", l, k), say(m))
	}
	if m := x.grant[k]; m != nil && conn != 0 {
		emit("a message to another life", func() {
			env := m.Env
			env.To, env.Mark = spec.Incarnation{9}, 0
			w.stepP(k, core.Recv{Peer: pid(x.dinc), Conn: conn, Env: env})
		})
	}
}

func TestLockstep_RandomActionsInLargeSettings_EngineAndSpecificationAgree(t *testing.T) {
	for _, set := range large() {
		t.Run(set.Name, func(t *testing.T) {
			full, err := set.fill()
			if err != nil {
				t.Fatal(err)
			}
			rapid.Check(t, func(t *rapid.T) { randomWalk(t, &full) })
		})
	}
}

// randomWalk draws among the steps that the specification allows, and among echoes.
func randomWalk(t *rapid.T, set *Setting) {
	w, err := New(set, rapid.Bool().Draw(t, "lazy"))
	if err != nil {
		t.Fatal(err)
	}
	v := newFollower(set)
	var path []string
	check := func(d *Difference) {
		if d != nil {
			d.Path = path
			t.Fatal(d)
		}
	}
	for range rapid.IntRange(100, 200).Draw(t, "steps") {
		if rapid.IntRange(0, 9).Draw(t, "echo") == 9 {
			var names []string
			var dos []func()
			w.echoes(func(name string, do func()) { names, dos = append(names, name), append(dos, do) })
			if len(dos) > 0 {
				i := rapid.IntRange(0, len(dos)-1).Draw(t, "which")
				path = append(path, "echo: "+names[i])
				dos[i]()
				w.note()
				check(v.compare(w))
			}
			continue
		}
		all := v.steps()
		if len(all) == 0 {
			return
		}
		e := pick(t, all)
		path = append(path, show(e))
		if err := w.Do(e.name, &e.args); err != nil {
			check(&Difference{What: err.Error()})
		}
		check(v.follow(w, e))
	}
}

// pick draws an action first and then one of its steps, so that rare actions are as likely as frequent ones. What breaks or ends something
// is drawn seldom, or where nothing else is left: a request must live long enough to be answered.
func pick(t *rapid.T, all []edge) edge {
	byName := map[string][]edge{}
	var goes, breaks []string
	for _, e := range all {
		if byName[e.name] == nil {
			if slices.Contains(strings.Fields("Abort Fence DecodeCrash PrefillCrash PrefillFence Break Failure Lose Stray Torn Release RaiseMark RecvMark Gone"), e.name) {
				breaks = append(breaks, e.name)
			} else {
				goes = append(goes, e.name)
			}
		}
		byName[e.name] = append(byName[e.name], e)
	}
	names := goes
	if len(goes) == 0 || len(breaks) > 0 && rapid.IntRange(0, 29).Draw(t, "break") == 29 {
		names = breaks
	}
	of := byName[rapid.SampledFrom(names).Draw(t, "action")]
	return rapid.SampledFrom(of).Draw(t, "step")
}

func sortedKeys[K comparable, V any](m map[K]V) []K {
	type keyed struct {
		text string
		k    K
	}
	var all []keyed
	for k := range m {
		all = append(all, keyed{fmt.Sprint(k), k})
	}
	for i := range all { // few
		for j := i; j > 0 && all[j].text < all[j-1].text; j-- {
			all[j], all[j-1] = all[j-1], all[j]
		}
	}
	out := make([]K, len(all))
	for i, x := range all {
		out[i] = x.k
	}
	return out
}
