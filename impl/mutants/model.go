package mutants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"kvfence/impl/tlc"
	"kvfence/model"
	"kvfence/model/explore"
)

// ErrModel says that the model does not do what the manifest says, so that its mutants mean nothing.
var ErrModel = errors.New("the model is not as the manifest says")

// Field is a configuration of the manifest in which the model's mutants are explored, prevention guards on and detection off, so that
// no detection hides what prevention lets through; the planted ones have detection on.
type Field struct {
	Name      string
	Constants map[string]string // differences from the manifest's
	Planted   bool
}

// Fields are small, and every action but GiveUp (which exists without FenceFirst only) happens in one of them.
func Fields() []Field {
	with := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	return []Field{
		{Name: "decode-restart"}, {Name: "prefill-restart"}, {Name: "prefill-restart", Constants: with("PFencing", "TRUE")},
		{Name: "prefill-restart", Constants: with("NE", "0", "PFencing", "TRUE", "Marking", "TRUE")}, {Name: "prefill-restart", Constants: with("NE", "0", "Losing", "TRUE")},
		{Name: "gone", Constants: with("PFencing", "TRUE")}, {Name: "channels", Constants: with("Page", "{p1}")},
		{Name: "channels", Constants: with("Chan", "{c1}")}, {Name: "channels", Constants: with("Page", "{p1}", "NQ", "2")},
		{Name: "channels", Constants: with("Page", "{p1}", "PFencing", "TRUE", "Breaking", "TRUE")}, {Name: "reuse-read"}, {Name: "fence-2"},
		{Name: "share", Constants: with("Tenant", "{n1}")}, {Name: "share", Constants: with("Tenant", "{n1}", "ND", "1", "NL", "1")},
		{Name: "share", Constants: with("Tenant", "{n1}", "NL", "1", "Aux", "{p1}")}, {Name: "share"},
		{Name: "share-domains", Constants: with("Prefix", "{f1}")}, {Name: "share-domains", Constants: with("Adapter", "{a1}")},
		{Name: "retry", Constants: with("NT", "1", "Retrying", "FALSE")}, {Name: "retry", Constants: with("Causes", `{"original"}`)},
		{Name: "retry", Constants: with("Big", "{1}", "Causes", `{"original"}`)},
		{Name: "plant-torn", Planted: true}, {Name: "plant-flip", Planted: true}, {Name: "plant-stray", Planted: true},
		{Name: "plant-stray", Constants: with("NE", "0", "Publishing", "TRUE"), Planted: true},
		{Name: "ask"}, {Name: "record"}, {Name: "grow-1", Constants: with("Page", "{p1}", "Appending", "FALSE", "EmptyPlans", "TRUE")},
		{Name: "off-FenceFirst"},
	}
}

// field is one that is ready: the model's settings, what must hold, and its graph without a mutant.
type field struct {
	Field
	settings model.Settings
	checks   []model.Property
	base     explore.Result[model.State]
	sum      uint64 // of the base's states
}

// ModelLab explores the model's mutants. Safe for concurrent use once it is made.
type ModelLab struct {
	Broken []error // fields that break a property without a mutant; nothing is explored there

	fields []field
	specs  *tlc.Specs
	seed   maphash.Seed
}

// largeField is a number of states above which a field is asked only while nothing has differed.
const largeField = 30_000

// mostStates ends a walk that has no bound of its own.
const mostStates = 500_000

// OpenModel explores the fields without a mutant.
func OpenModel(dir string, say func(string, ...any)) (*ModelLab, error) {
	specs, err := tlc.Open(dir)
	if err != nil {
		return nil, err
	}
	l := &ModelLab{specs: specs, seed: maphash.MakeSeed()}
	for _, f := range Fields() {
		x, err := l.ready(f)
		if errors.Is(err, ErrModel) {
			l.Broken = append(l.Broken, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		say("model: %s has %d states, %d edges", f.Name, x.base.States, x.base.Edges)
		l.fields = append(l.fields, x)
	}
	slices.SortStableFunc(l.fields, func(a, b field) int { return cmp.Compare(a.base.States, b.base.States) })
	return l, nil
}

// settings are those of a configuration with some constants changed.
func (l *ModelLab) settings(name string, change map[string]string) (model.Settings, error) {
	c, err := l.specs.Find(name)
	if err != nil {
		return model.Settings{}, err
	}
	k := maps.Clone(l.specs.Resolve(c.Module).Constants)
	maps.Copy(k, c.Constants)
	maps.Copy(k, change)
	return model.FromConstants(k)
}

func (l *ModelLab) ready(f Field) (field, error) {
	change, list := map[string]string{}, "all"
	if f.Planted {
		list = "planted"
	} else {
		maps.Copy(change, map[string]string{"DigestVerify": "FALSE", "TagBefore": "FALSE", "TagAfter": "FALSE"})
	}
	maps.Copy(change, f.Constants)
	w, err := l.settings(f.Name, change)
	if err != nil {
		return field{}, err
	}
	x := field{Field: f, settings: w}
	if !strings.HasPrefix(f.Name, "off-") { // there the guard that is off breaks a property by itself: only the graph is compared
		for _, name := range l.specs.Resolve("Transfer").Properties[list] {
			x.checks = append(x.checks, model.Find(name))
		}
		for _, p := range model.Properties() {
			if p.Step != nil && p.Name != "StepsHold" && !f.Planted {
				x.checks = append(x.checks, p)
			}
		}
	}
	if x.base, err = x.walk(mostStates); err != nil {
		return x, fmt.Errorf("%s: %w", f.Name, err)
	}
	if x.base.Violation != nil {
		return x, fmt.Errorf("%w: %s breaks %s", ErrModel, f.Name, x.base.Violation.Property)
	}
	x.sum = l.sum(x.base)
	x.base.Graph = nil // its states are compared by their sum
	return x, nil
}

// walk explores a field with some mutants.
func (f *field) walk(limit int, mutants ...model.Mutant) (explore.Result[model.State], error) {
	w := f.settings
	o := explore.Options[model.State]{Workers: 1, Limit: limit}
	o.Check = func(s *model.State) string {
		for _, p := range f.checks {
			if p.State != nil && !p.State(&w, s) {
				return p.Name
			}
		}
		return ""
	}
	o.Step = func(from *model.State, _ int, to *model.State) string {
		for _, p := range f.checks {
			if p.Step != nil && !p.Step(&w, from, to) {
				return p.Name
			}
		}
		return ""
	}
	return explore.Run(func() explore.System[model.State] { return model.New(w, mutants...) }, o)
}

// sum is one number for a set of states, whatever their order.
func (l *ModelLab) sum(r explore.Result[model.State]) (sum uint64) {
	w := r.Graph.Walker()
	for i := range r.Graph.Len() {
		sum += maphash.Comparable(l.seed, *w.State(i))
	}
	return sum
}

// same reports whether two walks have the same counts: states, steps by action, depth.
func same(a, b explore.Result[model.State]) bool {
	return a.States == b.States && a.Edges == b.Edges && a.Depth == b.Depth && a.Generated == b.Generated && slices.Equal(trimmed(a.Actions), trimmed(b.Actions))
}

// trimmed is without the actions at the end that never happen.
func trimmed(n []int) []int {
	for len(n) > 0 && n[len(n)-1] == 0 {
		n = n[:len(n)-1]
	}
	return n
}

// try explores the fields where a mutant can show: those where its action happens, and for a guard those where it does not, as long as
// nothing has differed. A broken property ends it; else a graph that differs counts.
func (l *ModelLab) try(ctx context.Context, m model.Mutant, action int) (Verdict, error) {
	v := Verdict{}
	for i := range l.fields {
		f := &l.fields[i]
		if err := ctx.Err(); err != nil {
			return v, err
		}
		happens := action < len(f.base.Actions) && f.base.Actions[action] > 0
		if !happens && (m.Guard < 0 || v.Killed != "") || v.Killed != "" && f.base.States > largeField {
			continue
		}
		v.Seen = v.Seen || happens
		r, err := f.walk(2*f.base.States+1000, m)
		switch {
		case errors.Is(err, explore.ErrTooMany):
			v.differs(f.Name, "more states")
		case err != nil:
			return v, fmt.Errorf("%v in %s: %w", m, f.Name, err)
		case r.Violation != nil:
			return Verdict{Killed: "property " + r.Violation.Property, How: fmt.Sprintf("%s, %d states", f.Name, len(r.Violation.Path)), Seen: true}, nil
		case !same(r, f.base) || l.sum(r) != f.sum:
			v.differs(f.Name, fmt.Sprintf("%d states of %d, %d edges of %d", r.States, f.base.States, r.Edges, f.base.Edges))
		}
	}
	return v, nil
}

func (v *Verdict) differs(field, how string) {
	if v.Killed == "" {
		v.Killed, v.How = "graph", field+": "+how
	}
}

// ModelTasks are the mutants of the model: each guard and each update of each action.
func ModelTasks(l *ModelLab) []Task {
	var out []Task
	names := map[string]int{}
	for at, a := range model.Actions() {
		hash := modelHash(a)
		add := func(kind Kind, text string, m model.Mutant) {
			out = append(out, Task{unique(names, a.Name, kind, text), hash, func(ctx context.Context) (Verdict, error) { return l.try(ctx, m, at) }})
		}
		for i, g := range a.Guards {
			add(Guard, g.Text, model.Mutant{Action: a.Name, Guard: i, Update: -1})
		}
		for i, u := range a.Updates {
			add(Update, u.Text, model.Mutant{Action: a.Name, Guard: -1, Update: i})
		}
	}
	return out
}

// modelHash is over an action's conjuncts as the TLA+ text has them; a test of the model compares the two.
func modelHash(a model.Action) string {
	var b strings.Builder
	fmt.Fprint(&b, a.Name, a.Params)
	for _, g := range a.Guards {
		b.WriteString("\n" + g.Text)
	}
	for _, u := range a.Updates {
		b.WriteString("\n" + u.Text)
	}
	return shortHash(b.String())
}
