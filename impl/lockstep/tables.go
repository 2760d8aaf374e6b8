package lockstep

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"kvfence/model"
)

// ErrTable is wrapped by what is wrong with the tables: a cut that nobody explains, an explanation that nothing needs.
var ErrTable = errors.New("lockstep: table")

// Kinds is every kind by which a step is cut, with the reason.
func Kinds() map[string]string {
	all := map[string]string{
		KindInside: "What comes between two steps of the specification that are one step of the engine (see Chains).",
		KindBound:  "The engine follows it up within its step by a fence, and the setting has no epoch for that.",
	}
	for _, c := range Cuts() {
		all[c.Kind] = c.Why
	}
	return all
}

// Unused is the actions that no pinned setting takes, with the reason.
func Unused() map[string]string {
	return map[string]string{"GiveUp": "It exists only without the guard FenceFirst: the engine has no such step."}
}

// CheckTables refuses a replay of all pinned settings in which an action was never taken and that is not explained, a cut has no
// reason, or a reason is not needed.
func CheckTables(all []*Report) error {
	var wrong []string
	cut, taken := map[string]bool{}, map[string]bool{}
	for _, r := range all {
		for k := range r.Cut {
			cut[k] = true
		}
		for a := range r.Taken {
			taken[a] = true
		}
	}
	for k := range Kinds() {
		if !cut[k] && !beyond(k) {
			wrong = append(wrong, "no edge needs the explanation "+k)
		}
	}
	for k := range cut {
		if Kinds()[k] == "" {
			wrong = append(wrong, "cut without explanation: "+k)
		}
	}
	for _, a := range model.Actions() {
		switch _, explained := Unused()[a.Name]; {
		case taken[a.Name] && explained:
			wrong = append(wrong, "action is taken and explained as unused: "+a.Name)
		case !taken[a.Name] && !explained:
			wrong = append(wrong, "no pinned setting takes the action "+a.Name)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return fmt.Errorf("%w: %s", ErrTable, strings.Join(wrong, "; "))
}

// beyond reports a kind that shows only in settings larger than the pinned ones.
func beyond(kind string) bool {
	return slices.ContainsFunc(Cuts(), func(c Cut) bool { return c.Kind == kind && c.beyond })
}

// WriteCuts lists the kinds of cuts that replays met, with their numbers and reasons.
func WriteCuts(out io.Writer, all []*Report) error {
	sum := map[string]int{}
	for _, r := range all {
		for k, n := range r.Cut {
			sum[k] += n
		}
	}
	kinds := Kinds()
	for _, k := range slices.Sorted(maps.Keys(sum)) {
		if _, err := fmt.Fprintf(out, "cut %-18s %8d  %s\n", k, sum[k], kinds[k]); err != nil {
			return err
		}
	}
	return nil
}

// WriteNever lists what a simulation never took: how many edges of each action and why, and the shortest ways to some.
func (c *Coverage) WriteNever(out io.Writer) {
	for _, a := range slices.Sorted(maps.Keys(c.Never)) {
		_, _ = fmt.Fprintf(out, "    never: %d of %s\n", c.Never[a], a)
	}
	for _, x := range c.Examples {
		_, _ = fmt.Fprintf(out, "    such as %s\n", x)
	}
}

// WriteTables writes the refinement mapping for people.
func WriteTables(out io.Writer) error {
	var b strings.Builder
	b.WriteString("Stimuli: what each action of the specification is to the engine.\n")
	for _, s := range Stimuli() {
		fmt.Fprintf(&b, "  %-14s %s\n", s.Action, s.What)
		if s.Until != "" {
			fmt.Fprintf(&b, "  %-14s   deferred %s: %s\n", "", s.Until, s.Why)
		}
	}
	b.WriteString("Chains: steps of the specification that are one step of the engine.\n")
	for _, c := range Chains() {
		fmt.Fprintf(&b, "  %-32s %s\n", c.Steps, c.Why)
	}
	b.WriteString("Cuts: steps that the specification allows and the engine never takes.\n")
	for _, k := range slices.Sorted(maps.Keys(Kinds())) {
		fmt.Fprintf(&b, "  %-18s %s\n", k, Kinds()[k])
	}
	b.WriteString("Sources: where each variable of the projection comes from.\n")
	for _, s := range Sources() {
		fmt.Fprintf(&b, "  %-28s %s\n", s.Variables, s.From)
	}
	b.WriteString("Known: what the engine does and the specification does not have.\n")
	for _, k := range Knowns() {
		fmt.Fprintf(&b, "  %s %s\n", k.What, k.Why)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
