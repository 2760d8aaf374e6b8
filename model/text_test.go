package model

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// definition is an operator of the TLA+ text: its parameters, its top conjuncts if it is a list of them, and its whole body.
type definition struct {
	params    []string
	conjuncts []string
	body      string
}

// tla is the text of the modules that Transfer.tla is made of, read as a reader does: definitions start at the left edge, the
// conjuncts of an action stand two blanks in.
type tla struct {
	defs      map[string]definition
	order     []string
	variables []string
}

func readTLA(t *testing.T) tla {
	x := tla{defs: map[string]definition{}}
	for _, module := range []string{"Ids", "Network", "Fabric", "Sharing", "Transfer"} {
		text, err := os.ReadFile("../TLA/" + module + ".tla")
		require.NoError(t, err)
		x.read(string(text))
	}
	return x
}

var (
	blockComment = regexp.MustCompile(`(?s)\(\*.*?\*\)`)
	lineComment  = regexp.MustCompile(`\\\*[^\n]*`)
	header       = regexp.MustCompile(`^(\w+)(?:\(([^)]*)\))?\s*==(.*)$`)
	outer        = regexp.MustCompile(`^(VARIABLES?|CONSTANTS?|ASSUME|EXTENDS|---|===)`)
	blanks       = regexp.MustCompile(`\s+`)
	names        = regexp.MustCompile(`\w+`)
)

func (x *tla) read(text string) {
	text = lineComment.ReplaceAllString(blockComment.ReplaceAllString(text, ""), "")
	name, inVariables := "", false
	for line := range strings.SplitSeq(text, "\n") {
		if h := header.FindStringSubmatch(line); h != nil {
			name, inVariables = h[1], false
			x.order = append(x.order, name)
			x.defs[name] = definition{params: names.FindAllString(h[2], -1), body: h[3]}
			continue
		}
		if outer.MatchString(line) {
			name, inVariables = "", strings.HasPrefix(line, "VARIABLE")
		}
		if inVariables {
			x.variables = append(x.variables, names.FindAllString(strings.TrimPrefix(strings.TrimPrefix(line, "VARIABLES"), "VARIABLE"), -1)...)
		}
		d := x.defs[name]
		if name == "" || strings.TrimSpace(line) == "" {
			continue
		}
		d.body += "\n" + line
		if rest, ok := strings.CutPrefix(line, `  /\ `); ok {
			d.conjuncts = append(d.conjuncts, squeeze(rest))
		} else if n := len(d.conjuncts); n > 0 {
			d.conjuncts[n-1] = squeeze(d.conjuncts[n-1] + " " + line)
		}
		x.defs[name] = d
	}
}

func squeeze(s string) string { return strings.TrimSpace(blanks.ReplaceAllString(s, " ")) }

func (x *tla) primed(name string) bool {
	d, ok := x.defs[name]
	if !ok {
		return false
	}
	return strings.ContainsAny(d.body, "'") || strings.Contains(d.body, "UNCHANGED")
}

// actions is the operators with primes that Next leads to, in the order of the text.
func (x *tla) actions() []string {
	found := map[string]bool{}
	var walk func(name string)
	walk = func(name string) {
		for _, word := range names.FindAllString(x.defs[name].body, -1) {
			if _, ok := x.defs[word]; !ok || found[word] {
				continue
			}
			if x.primed(word) {
				found[word] = true
			} else if strings.HasSuffix(word, "Next") {
				walk(word)
			}
		}
	}
	walk("Next")
	var in []string
	for _, name := range x.order {
		if found[name] {
			in = append(in, name)
		}
	}
	return in
}

var call = regexp.MustCompile(`^(\w+)(?:\((.*)\))?$`)

// flat is the conjuncts of an action; a conjunct that calls an operator with primes gives place to that operator's.
func (x *tla) flat(name string) []string {
	var out []string
	for _, c := range x.defs[name].conjuncts {
		h := call.FindStringSubmatch(c)
		if h == nil || !x.primed(h[1]) {
			out = append(out, c)
			continue
		}
		values := arguments(h[2])
		for _, inner := range x.flat(h[1]) {
			out = append(out, names.ReplaceAllStringFunc(inner, func(word string) string {
				if i := slices.Index(x.defs[h[1]].params, word); i >= 0 {
					return values[i]
				}
				return word
			}))
		}
	}
	return out
}

// arguments splits at the commas that stand in no bracket.
func arguments(text string) []string {
	depth, start := 0, 0
	var out []string
	for i, r := range text {
		switch {
		case strings.ContainsRune("([<{", r):
			depth++
		case strings.ContainsRune(")]>}", r):
			depth--
		case r == ',' && depth == 0:
			out, start = append(out, strings.TrimSpace(text[start:i])), i+1
		}
	}
	return append(out, strings.TrimSpace(text[start:]))
}

// unchanged is the variables of an UNCHANGED conjunct, tuples of variables taken apart.
func (x *tla) unchanged(conjunct string) []string {
	var out []string
	for _, word := range names.FindAllString(strings.TrimPrefix(conjunct, "UNCHANGED"), -1) {
		if slices.Contains(x.variables, word) {
			out = append(out, word)
		} else {
			out = append(out, x.unchanged(x.defs[word].body)...)
		}
	}
	return out
}

func TestActions_AreThoseOfTheText_InItsOrder(t *testing.T) {
	x := readTLA(t)
	var have []string
	for _, a := range Actions() {
		have = append(have, a.Name)
	}
	require.Equal(t, x.actions(), have)
}

func TestActions_Conjuncts_AreThoseOfTheText_OneByOne(t *testing.T) {
	x := readTLA(t)
	for _, a := range Actions() {
		var guards, updates, frame []string
		for _, c := range x.flat(a.Name) {
			switch {
			case strings.HasPrefix(c, "UNCHANGED"):
				frame = append(frame, x.unchanged(c)...)
			case strings.Contains(c, "'"):
				updates = append(updates, c)
			default:
				guards = append(guards, c)
			}
		}
		var haveGuards, haveUpdates, haveParams, vars []string
		for _, p := range a.Params {
			haveParams = append(haveParams, p.Name)
		}
		for _, g := range a.Guards {
			haveGuards = append(haveGuards, g.Text)
		}
		for _, u := range a.Updates {
			haveUpdates = append(haveUpdates, u.Text)
			vars = append(vars, u.Vars()...)
		}
		require.Equal(t, x.defs[a.Name].params, haveParams, a.Name)
		require.Equal(t, guards, haveGuards, a.Name)
		require.Equal(t, updates, haveUpdates, a.Name)
		all := slices.Sorted(slices.Values(append(frame, vars...)))
		require.Equal(t, slices.Sorted(slices.Values(x.variables)), all, "%s: each variable is set once or unchanged", a.Name)
	}
}

func TestVariables_AreThoseOfTheText_InItsOrder(t *testing.T) {
	x := readTLA(t)
	var have, fields []string
	for _, v := range Variables() {
		have = append(have, v.Name)
	}
	require.Equal(t, x.variables, have)
	for i := range reflect.TypeFor[State]().NumField() {
		name := reflect.TypeFor[State]().Field(i).Name
		fields = append(fields, strings.ToLower(name[:1])+name[1:])
	}
	require.ElementsMatch(t, x.variables, fields)
}

func TestProperties_AreThoseOfTheText(t *testing.T) {
	x := readTLA(t)
	m := readManifest(t).Modules["Transfer"]
	var have []string
	for _, p := range Properties() {
		have = append(have, p.Name)
		require.NotEqual(t, p.State == nil, p.Step == nil, p.Name)
		if p.Name == "Promised" {
			continue
		}
		require.Contains(t, x.defs, p.Name)
		require.Equal(t, p.State == nil, strings.Contains(x.defs[p.Name].body, "[]["), p.Name)
	}
	for _, name := range x.order {
		if strings.Contains(x.defs[name].body, "[][") && name != "Spec" {
			require.Contains(t, have, name)
		}
	}
	for _, name := range m.Properties["all"] {
		require.Contains(t, have, name)
	}
}

func TestPromise_LinesAreThoseOfIsolation(t *testing.T) {
	text, err := os.ReadFile("../TLA/Isolation.tla")
	require.NoError(t, err)
	x := tla{defs: map[string]definition{}}
	x.read(string(text))
	var want, have []string
	for _, name := range names.FindAllString(x.defs["Step"].body, -1) {
		if _, ok := x.defs[name]; ok {
			want = append(want, name)
		}
	}
	for _, p := range Promise() {
		have = append(have, p.Name)
	}
	require.Equal(t, want, have)
}

func TestSituations_AreThoseOfTheText(t *testing.T) {
	text, err := os.ReadFile("../TLA/MCTransfer.tla")
	require.NoError(t, err)
	x := tla{defs: map[string]definition{}}
	x.read(string(text))
	var want, have []string
	for _, name := range x.order {
		if strings.HasPrefix(name, "Never") {
			want = append(want, name)
		}
	}
	for _, p := range Situations() {
		have = append(have, p.Name)
	}
	require.Equal(t, want, have)
}
