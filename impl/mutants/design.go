package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"kvfence/impl/tlc"
	"kvfence/model"
	"kvfence/model/explore"
)

// ErrGuards is what is said of the list of the design page's guards.
var ErrGuards = errors.New("guards of the design page")

// DesignGuard is a guard of the design page: the switches that it has in the specification, and the places of the core where it lives.
// A guard whose place is outside of the core (the fabric, a transport) says so in Elsewhere.
type DesignGuard struct {
	Guard     string   `json:"guard"`
	Switches  []string `json:"switches"`
	Core      []string `json:"core,omitempty"`
	Elsewhere string   `json:"elsewhere,omitempty"`
}

// GuardRow is a guard of the design page in every form, for the page.
type GuardRow struct{ Guard, Switch, TLC, Model, Proof, Core string }

// ReadGuards reads the list of the design page's guards.
func ReadGuards(path string) ([]DesignGuard, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []DesignGuard
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&out); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, g := range out {
		if g.Guard == "" || len(g.Core) == 0 && g.Elsewhere == "" {
			return nil, fmt.Errorf("%w: %q has no place in the core and says no other", ErrGuards, g.Guard)
		}
	}
	return out, nil
}

// switchOf is the switch that a configuration of TLC drops, by its name: off-Switch, off-Switch-case, off-pull-Switch.
func switchOf(c *tlc.Configuration) string {
	name, ok := strings.CutPrefix(c.Name, "off-")
	if !ok || strings.HasPrefix(name, "live-") { // those drop an assumption of liveness
		return ""
	}
	if c.Module == "VerbsFence" { // a module of its own, whose guards and assumptions are listed in spec/verbs-fence.md
		return ""
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "pull-"), "-")
	return name
}

// Unlisted is the configurations that drop a guard which no row has.
func Unlisted(specs *tlc.Specs, guards []DesignGuard) (out []string) {
	for i := range specs.Configurations {
		c := &specs.Configurations[i]
		if s := switchOf(c); s != "" && !slices.ContainsFunc(guards, func(g DesignGuard) bool { return slices.Contains(g.Switches, s) }) {
			out = append(out, c.Name)
		}
	}
	return out
}

// mostGuardStates bounds a search for the broken property; the breadth-first search ends at the level where it finds it.
const mostGuardStates = 4_000_000

// Rows has every guard dropped in the model, and takes the other forms from the manifest (kvfence spec check compares it), the settings of
// the proofs (impl/cmd/prove -guards does) and the record. The error joins whatever is not killed as it should be.
func Rows(ctx context.Context, guards []DesignGuard, specs *tlc.Specs, refuted map[string]string, core map[string]Entry, say func(string, ...any)) ([]GuardRow, error) {
	var rows []GuardRow
	var bad []error
	for _, name := range Unlisted(specs, guards) {
		bad = append(bad, fmt.Errorf("%w: %s drops a guard that is not on the list", ErrGuards, name))
	}
	for _, g := range guards {
		row := GuardRow{Guard: g.Guard}
		for _, s := range g.Switches {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			tla, twin, err := forms(specs, s)
			bad = append(bad, err)
			row.Switch = add(row.Switch, "`"+s+"`")
			row.TLC = add(row.TLC, tla)
			row.Model = add(row.Model, twin)
			if p := refuted[s]; p != "" {
				row.Proof = add(row.Proof, p)
			}
		}
		row.Core = g.Elsewhere
		for _, name := range g.Core {
			e, ok := core[name]
			switch {
			case !ok:
				bad = append(bad, fmt.Errorf("%w: %s: the core has no mutant %s", ErrGuards, g.Guard, name))
			case e.Killed == "" || strings.HasPrefix(e.Killed, "difference "):
				bad = append(bad, fmt.Errorf("%w: %s: no test kills %s", ErrGuards, g.Guard, name))
			}
			row.Core = add(row.Core, fmt.Sprintf("`%s`: %s", cell(name), e.Killed))
		}
		rows = append(rows, row)
		say("guard: %s", g.Guard)
	}
	return rows, errors.Join(bad...)
}

func add(to, more string) string {
	switch {
	case more == "":
		return to
	case to == "":
		return more
	}
	return to + "; " + more
}

// forms are the configurations that drop a switch: what TLC must find, and what the model finds.
func forms(specs *tlc.Specs, s string) (tla, twin string, bad error) {
	found := false
	for i := range specs.Configurations {
		c := &specs.Configurations[i]
		if switchOf(c) != s {
			continue
		}
		found = true
		tla = add(tla, fmt.Sprintf("`%s`: %s", c.Name, c.Expect.Violated))
		if c.Module != "Transfer" {
			continue
		}
		got, states, err := breaks(specs, c)
		switch {
		case err != nil:
			bad = errors.Join(bad, fmt.Errorf("%s: %w", c.Name, err))
		case got != c.Expect.Violated:
			bad = errors.Join(bad, fmt.Errorf("%w: %s: the model breaks %q, TLC %q", ErrGuards, c.Name, got, c.Expect.Violated))
		}
		twin = add(twin, fmt.Sprintf("%s in %d states", got, states))
	}
	if !found {
		bad = errors.Join(bad, fmt.Errorf("%w: no configuration drops %s", ErrGuards, s))
	}
	return tla, twin, bad
}

// breaks explores the model in a configuration of TLC with its properties.
func breaks(specs *tlc.Specs, c *tlc.Configuration) (property string, states int, err error) {
	l := ModelLab{specs: specs}
	w, err := l.settings(c.Name, nil)
	if err != nil {
		return "", 0, err
	}
	f := field{settings: w}
	for _, name := range slices.Concat(c.Check, c.Steps) {
		list, isList := strings.CutPrefix(name, "@")
		if !isList {
			f.checks = append(f.checks, model.Find(name))
			continue
		}
		for _, p := range specs.Resolve(c.Module).Properties[list] {
			f.checks = append(f.checks, model.Find(p))
		}
	}
	r, err := f.walk(mostGuardStates)
	if err != nil && !errors.Is(err, explore.ErrTooMany) {
		return "", 0, err
	}
	if r.Violation == nil {
		return "", 0, nil
	}
	return r.Violation.Property, len(r.Violation.Path), nil
}
