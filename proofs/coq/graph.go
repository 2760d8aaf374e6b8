package coq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kvfence/proofs/edges"
)

// ErrGraph is what is said of a graph that cannot be read.
var ErrGraph = errors.New("bad graph")

// Setting bounds an instance: how many names of each sort (1 or 2), and the last epoch and restarts of prefill and decode.
type Setting struct {
	Name                        string
	Leases, Pages, Ranks, Chans int
	Epochs, Prefill, Decode     int
}

// Settings are compared always; together they have every action.
func Settings() []Setting {
	return []Setting{
		{"decode restarts", 1, 1, 1, 1, 0, 0, 1},
		{"prefill restarts", 1, 1, 1, 1, 0, 1, 0},
		{"a fence", 1, 1, 1, 1, 1, 0, 0},
	}
}

// Long are compared where there is time for minutes.
func Long() []Setting {
	return []Setting{
		{"two channels, a fence", 1, 1, 1, 2, 1, 0, 0},
		{"prefill restarts, a fence", 1, 1, 1, 1, 1, 1, 0},
		{"two leases", 2, 1, 1, 1, 0, 0, 0},
		{"two pages, a fence", 1, 2, 1, 1, 1, 0, 0},
	}
}

// actions are in the order of Instance.v's list.
func actions() []string {
	return strings.Fields(`Grant Abort NoticeIn Take Ready Read ReadEnd Release Fence FenceEnd DecodeCrash
		Post Notice Complete AbortAck PrefillFence PrefillCrash Launch Check Drop Copy Visible`)
}

// graph is states by number, and edges as "number action number".
type graph struct {
	states map[string]string // number -> TLC's text, or nothing
	edges  map[string]bool
}

// Coq computes the graph of a setting.
func (c Checker) coqGraph(ctx context.Context, s Setting) (graph, error) {
	sort := func(n int) string { return map[int]string{1: "unit", 2: "bool"}[n] }
	out, err := c.text(ctx, "Graph.v", fmt.Sprintf(`From Heart Require Import Statement Instance.
Require Import NArith List.
Import ListNotations.
Open Scope N_scope.
Open Scope list_scope.
Set Printing Width 1000. Set Printing Depth 100000000.
Eval vm_compute in graph (Lease := %s) (Page := %s) (Rank := %s) (Chan := %s) (fun _ => true) %d %d %d.
`, sort(s.Leases), sort(s.Pages), sort(s.Ranks), sort(s.Chans), s.Epochs, s.Prefill, s.Decode))
	if err != nil {
		return graph{}, err
	}
	return readCoq(out)
}

var row = regexp.MustCompile(`\[(\d[^\[\]]*)\]`)

// readCoq reads lists of a state's number and its edges, each 32 times the place of its end plus its action.
func readCoq(out string) (graph, error) {
	g := graph{map[string]string{}, map[string]bool{}}
	var rows [][]string
	for _, m := range row.FindAllStringSubmatch(strings.ReplaceAll(out, "%N", ""), -1) {
		fields := strings.FieldsFunc(m[1], func(r rune) bool { return r == ';' || r == ' ' || r == '\n' })
		rows = append(rows, fields)
		g.states[fields[0]] = ""
	}
	if len(rows) == 0 || len(rows) != len(g.states) {
		return g, fmt.Errorf("%w: %d rows, %d states", ErrGraph, len(rows), len(g.states))
	}
	names := actions()
	for _, r := range rows {
		for _, e := range r[1:] {
			n, err := strconv.Atoi(e)
			if err != nil || n/32 >= len(rows) || n%32 >= len(names) {
				return g, fmt.Errorf("%w: edge %q", ErrGraph, e)
			}
			g.edges[r[0]+" "+names[n%32]+" "+rows[n/32][0]] = true
		}
	}
	return g, nil
}

// names are the members of a sort as TLC prints them.
func names(prefix string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, prefix+strconv.Itoa(i+1))
	}
	return out
}

func (s Setting) config() string {
	set := func(prefix string, n int) string { return "{" + strings.Join(names(prefix, n), ", ") + "}" }
	return fmt.Sprintf(`SPECIFICATION Spec
CHECK_DEADLOCK FALSE
CONSTANTS
  Page = %s
  Rank = %s
  Chan = %s
  NL = %d
  NE = %d
  NI = %d
  ND = %d
  Part <- MCPart
  Lease <- MCLease
  Epoch <- MCEpoch
  Inc <- MCInc
  DInc <- MCDInc
  Gen <- MCGen
INVARIANTS TypeOK NoForeignRead NoReuseWhileInFlight NoEarlyRead FenceHolds
`, set("p", s.Pages), set("k", s.Ranks), set("c", s.Chans), s.Leases, s.Epochs, s.Prefill, s.Decode)
}

// tlcGraph has TLC explore MCHeart of a folder within the same bounds.
func (s Setting) tlcGraph(ctx context.Context, specs, jar string) (graph, error) {
	dump, err := edges.Setting{Folder: specs, Root: "MCHeart", Config: s.Name}.Dump(ctx, jar, s.config())
	if err != nil {
		return graph{}, err
	}
	g := graph{map[string]string{}, map[string]bool{}}
	number := map[string]string{}
	for node, text := range dump.Texts {
		n, err := s.number(text)
		if err != nil {
			return g, err
		}
		number[node] = n
		g.states[n] = text
	}
	if len(g.states) != len(dump.Texts) {
		return g, fmt.Errorf("%w: two of TLC's states have one number", ErrGraph)
	}
	for _, e := range dump.Edges {
		g.edges[number[e.From]+" "+e.Action+" "+number[e.To]] = true
	}
	return g, nil
}

// Compare computes both graphs and lists what is not in both.
func (c Checker) Compare(ctx context.Context, s Setting, specs, jar string) (Result, error) {
	ours, err := c.coqGraph(ctx, s)
	if err != nil {
		return Result{}, err
	}
	theirs, err := s.tlcGraph(ctx, specs, jar)
	if err != nil {
		return Result{}, err
	}
	r := Result{Setting: s, States: len(theirs.states), Edges: len(theirs.edges), Actions: map[string]int{}}
	for e := range theirs.edges {
		r.Actions[strings.Fields(e)[1]]++
	}
	r.OnlyCoq = append(missing(ours.states, theirs.states), missing(ours.edges, theirs.edges)...)
	r.OnlyTLC = append(missing(theirs.states, ours.states), missing(theirs.edges, ours.edges)...)
	return r, nil
}

func missing[V any](a, b map[string]V) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(a)) {
		if _, ok := b[k]; !ok {
			out = append(out, k)
		}
	}
	return out
}

// number is a state of TLC's dump as Instance.v's code has it: a one, then the values of each variable in order of its domain.
func (s Setting) number(label string) (string, error) {
	state, err := parse(label)
	if err != nil {
		return "", err
	}
	bits := big.NewInt(1)
	push := func(n, width int) { bits.Or(bits.Lsh(bits, uint(width)), big.NewInt(int64(n))) }
	for _, v := range s.variables() {
		vals, ok := state[v.name]
		if !ok {
			return "", fmt.Errorf("%w: no variable %s in %s", ErrGraph, v.name, label)
		}
		for _, key := range product(v.domain) {
			x := vals[key]
			switch {
			case v.member:
				push(map[string]int{"TRUE": 1, "in": 1}[x], 1)
			case v.name == "dst":
				push(slices.Index(strings.Fields("new filling revoking ready failed done dead"), strings.Trim(x, `"`)), 3)
			default:
				n, err := strconv.Atoi(x)
				if err != nil || n < 0 || n > 7 {
					return "", fmt.Errorf("%w: %s[%s] = %q", ErrGraph, v.name, key, x)
				}
				push(n, 3)
			}
		}
	}
	return bits.String(), nil
}
