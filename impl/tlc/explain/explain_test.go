package explain

import (
	"encoding/xml"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the expected diagrams")

// golden compares with a file, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func parsed(t *testing.T, name string) *Trace {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	require.NoError(t, err)
	trace, err := Parse(strings.NewReader(string(raw)))
	require.NoError(t, err)
	return trace
}

// What TLC 2.18 printed for the push direction, for pull, for the incident's script, for two ranks, for properties of steps and of
// behaviours, and for specifications of which nothing is known.
func TestDraw_CounterexamplesOfTLC_AreTheExpectedDiagrams(t *testing.T) {
	for _, name := range []string{"push", "pull", "script", "two-ranks", "steps", "cycle", "stutter", "initial"} {
		t.Run(name, func(t *testing.T) {
			d := Draw(parsed(t, name), "Example "+name, os.DirFS("testdata"))
			golden(t, name+".golden", d.Text())
			golden(t, name+".svg", d.SVG())
			again := Draw(parsed(t, name), "Example "+name, os.DirFS("testdata"))
			require.Equal(t, d.Text(), again.Text())
			require.Equal(t, d.SVG(), again.SVG())
		})
	}
}

func TestSVG_IsWellFormedAndNeedsNothingElse(t *testing.T) {
	for _, name := range []string{"push", "two-ranks", "cycle"} {
		text := Draw(parsed(t, name), `a <title> & "more"`, nil).SVG()
		dec := xml.NewDecoder(strings.NewReader(text))
		for {
			if _, err := dec.Token(); err == io.EOF {
				break
			} else if err != nil {
				require.NoError(t, err)
			}
		}
		require.NotRegexp(t, regexp.MustCompile(`href|url\([^#]|@import|<script|<image`), text)
		require.Equal(t, 1, strings.Count(text, "http"), "the name space alone")
	}
}

func TestDraw_Script_WithoutItsModule_StillTellsWhatHappens(t *testing.T) {
	text := Draw(parsed(t, "script"), "", nil).Text()
	require.Contains(t, text, "Grant(t=2, l=2, n=n2, p=p1, k=k1)\n")
	require.Contains(t, text, "a token of tenant n1's bytes")
	require.Contains(t, text, "NoLeak is broken.")
}

func TestDraw_EveryStepHasItsActionAndAReason(t *testing.T) {
	for _, name := range []string{"push", "pull", "two-ranks", "steps"} {
		trace := parsed(t, name)
		d := Draw(trace, "", nil)
		require.Len(t, d.rows, trace.Len()-1)
		for _, r := range d.rows {
			require.NotEmpty(t, r.says, r.action)
			require.NotEmpty(t, r.told, r.action)
			require.NotEmpty(t, r.at, r.action)
		}
	}
}

// Where TLC names no action, as in the liveness specification, the changes tell nearly all of them; prefill's own failure looks like an
// abort that arrives, its own mark like one that it hears.
func TestBySign_NamesOfTLC_AreFoundAgain(t *testing.T) {
	for _, name := range []string{"push", "two-ranks", "steps"} {
		trace := parsed(t, name)
		b := &builder{trace: trace, variables: transferVariables(), actions: transferActions()}
		for i := 1; i < len(trace.states); i++ {
			want := trace.states[i].action
			a := b.bySign(changes(&trace.states[i-1], &trace.states[i]))
			require.NotNil(t, a, want)
			require.Equal(t, want, a.name)
		}
	}
	for _, s := range signs() {
		b := &builder{variables: transferVariables(), actions: transferActions()}
		require.NotNil(t, b.variableOf(s.variable), s.action)
		require.NotEqual(t, nowhere, b.actionOf(s.action).from, s.action)
	}
}

func TestParse_Mistakes_AreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		err  error
	}{
		"nothing":          {"", ErrNoTrace},
		"no error":         {"Model checking completed. No error has been found.\n131584 states generated\n", ErrNoTrace},
		"no value":         {"State 1: <Initial predicate>\n/\\ x = \n\n", ErrValue},
		"string open":      {"State 1: <Initial predicate>\n/\\ x = \"a\n\n", ErrValue},
		"set open":         {"State 1: <Initial predicate>\n/\\ x = {1, 2\n\n", ErrValue},
		"tuple broken":     {"State 1: <Initial predicate>\n/\\ x = <<1 2>>\n\n", ErrValue},
		"function broken":  {"State 1: <Initial predicate>\n/\\ x = (1 : 2)\n\n", ErrValue},
		"more behind it":   {"State 1: <Initial predicate>\n/\\ x = 1 2\n\n", ErrValue},
		"text for a state": {"State 1: <Initial predicate>\nhello\n\n", ErrValue},
		"nested too deep":  {"State 1: <Initial predicate>\n/\\ x = " + strings.Repeat("<<", 200) + "\n\n", ErrValue},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(strings.NewReader(c.text))
			require.ErrorIs(t, err, c.err)
		})
	}
}

func TestParse_ValueOverSeveralLines_IsOne(t *testing.T) {
	trace, err := Parse(strings.NewReader("State 1: <Initial predicate>\n/\\ x = [ a |-> 1,\n  b |-> {2..4, \"s\"} ]\n/\\ y = -3\n\n"))
	require.NoError(t, err)
	x, ok := trace.states[0].get("x")
	require.True(t, ok)
	require.Equal(t, "(a :> 1 @@ b :> {{2, 3, 4}, s})", x.String())
	y, _ := trace.states[0].get("y")
	require.Equal(t, "-3", y.String())
}

// The variables and actions of the specifications are known here by name: a new one, or one renamed, must get its words.
func TestWords_VariablesAndActionsOfTheSpecification_AreKnown(t *testing.T) {
	for _, spec := range []struct {
		main, modules string
		variables     []variable
		actions       []action
	}{
		{"Transfer.tla", "Transfer.tla Network.tla Fabric.tla Sharing.tla", transferVariables(), transferActions()},
		{"Pull.tla", "Pull.tla", pullVariables(), pullActions()},
	} {
		var known, there []string
		for _, v := range spec.variables {
			known = append(known, v.name)
			require.Contains(t, "sbmvztliegdnafqOBT", v.value)
			require.NotZero(t, v.place, v.name)
		}
		for _, m := range strings.Fields(spec.modules) {
			there = append(there, declared(t, m)...)
		}
		require.ElementsMatch(t, there, known, spec.main)
		known = nil
		for _, a := range spec.actions {
			known = append(known, a.name)
		}
		require.ElementsMatch(t, taken(t, spec.main), known, spec.main)
	}
}

func source(t *testing.T, module string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "TLA", module))
	require.NoError(t, err)
	text := regexp.MustCompile(`(?s)\(\*.*?\*\)`).ReplaceAllString(string(raw), "")
	return regexp.MustCompile(`\\\*[^\n]*`).ReplaceAllString(text, "")
}

// declared is the variables of a module.
func declared(t *testing.T, module string) (names []string) {
	block := regexp.MustCompile(`(?m)^VARIABLES?\s+((?:\w+\s*,\s*)*\w+)`).FindAllStringSubmatch(source(t, module), -1)
	require.NotEmpty(t, block, module)
	for _, b := range block {
		names = append(names, regexp.MustCompile(`\w+`).FindAllString(b[1], -1)...)
	}
	return names
}

// taken is the actions of a module: the definitions, of those that its Next is made of, which are no parts of Next themselves.
func taken(t *testing.T, module string) (names []string) {
	text := source(t, module)
	bodies := map[string]string{}
	starts := regexp.MustCompile(`(?m)^(\w+)(?:\([^)]*\))?\s*==`).FindAllStringSubmatchIndex(text, -1)
	for i, s := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		bodies[text[s[2]:s[3]]] = text[s[1]:end]
	}
	for name := range bodies {
		if !strings.HasSuffix(name, "Next") {
			continue
		}
		for _, called := range regexp.MustCompile(`\b[A-Z]\w*\b`).FindAllString(bodies[name], -1) {
			if body, ok := bodies[called]; ok && !strings.HasSuffix(called, "Next") && strings.Contains(body, "/\\") && !contains(names, called) {
				names = append(names, called)
			}
		}
	}
	return names
}
