package mutants

import (
	"go/parser"
	"go/token"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/overlay"
)

const sample = `package p

type m struct{ n, k int; on bool }

func (x *m) step(a, b bool) bool {
	if a || b && x.on {
		return false
	}
	if x.n > 3 {
		x.n++
		x.k, x.n = 1, x.k
	}
	switch {
	case a:
		return x.n == 2
	}
	x.tell(func() bool { return !b })
	did("x")
	return true
}
`

func TestReadFile_FindsEachGuardOperandAndUpdateOnce(t *testing.T) {
	f, err := readFile("p/p.go", "p", []byte(sample), 100, map[string]int{})
	require.NoError(t, err)
	var names []string
	for _, s := range f.sites {
		names = append(names, strings.TrimPrefix(s.Name, "p.m.step/"))
	}
	require.ElementsMatch(t, []string{
		"operand: a", "operand: b && x.on", "operand: b", "operand: x.on",
		"guard: x.n > 3", "update: x.n++", "update: x.k = 1", "update: x.n = x.k",
		"guard: a", "guard: x.n == 2", "update: x.tell(func() bool { return !b })", "guard: !b",
	}, names)
}

func TestRewritten_IsGoAndKeepsItsLines(t *testing.T) {
	f, err := readFile("p/p.go", "p", []byte(sample), 0, map[string]int{})
	require.NoError(t, err)
	out := string(f.rewritten())
	_, err = parser.ParseFile(token.NewFileSet(), "p.go", out, parser.ParseComments)
	require.NoError(t, err, out)
	require.Equal(t, strings.Count(sample, "\n")+3, strings.Count(out, "\n"))
	require.Contains(t, out, "if (a && !mutant(")
	require.True(t, strings.HasPrefix(out, "//go:build mutants\n"))
}

func TestReadFile_CommentsAndOtherFunctions_ChangeNoHash(t *testing.T) {
	a, err := readFile("p/p.go", "p", []byte(sample), 0, map[string]int{})
	require.NoError(t, err)
	text := strings.Replace(sample, "func (x *m) step", "func other() {}\n\n// step is one.\nfunc (x *m) step", 1)
	b, err := readFile("p/q.go", "p", []byte(text), 0, map[string]int{})
	require.NoError(t, err)
	require.Equal(t, a.sites[0].Hash, b.sites[0].Hash)
	require.Equal(t, a.sites[0].Name, b.sites[0].Name)
	c, err := readFile("p/p.go", "p", []byte(strings.Replace(sample, "x.n > 3", "x.n > 4", 1)), 0, map[string]int{})
	require.NoError(t, err)
	require.NotEqual(t, a.sites[0].Hash, c.sites[0].Hash)
}

// The switches are in an overlay under a tag: what is built without it has none.
func TestSources_HaveNoSwitches(t *testing.T) {
	for _, tags := range []string{"", Tag} {
		out, err := exec.Command("go", "list", "-tags="+tags, "-f", "{{.GoFiles}}", "kvfence/impl/core", "kvfence/impl/pages").CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NotContains(t, string(out), "mutants_switch.go")
	}
	files, err := readAll("../..")
	require.NoError(t, err)
	for _, f := range files {
		require.NotContains(t, string(f.src), "mutant(", f.path)
	}
}

func TestNames_AreUnique(t *testing.T) {
	sites, err := Sites("../..")
	require.NoError(t, err)
	require.Greater(t, len(sites), 2000)
	seen := map[string]bool{}
	for _, s := range sites {
		require.False(t, seen[s.Name], s.Name)
		seen[s.Name] = true
		require.Equal(t, s.Kind, KindOf(s.Name))
		require.Equal(t, s.Func, Group(s.Name))
	}
}

func TestFirstFailure_ReadsTheOutputOfATestBinary(t *testing.T) {
	for _, c := range []struct{ out, test, how string }{
		{"=== RUN   TestA\n--- PASS: TestA (0.0s)\n=== RUN   TestB\n=== RUN   TestB/x\n--- FAIL: TestB (0.1s)\n    --- FAIL: TestB/x\n", "TestB", "fails"},
		{"=== RUN   TestB\n--- FAIL: TestB (0.1s)\npanic: boom\n", "TestB", "panics"},
		{"=== RUN   TestC\n", "TestC", "time limit"},
		{"=== RUN   TestC\nfatal error: out of memory\n", "TestC", "panics"},
	} {
		test, how := overlay.FirstFailure(c.out)
		require.Equal(t, []string{c.test, c.how}, []string{test, how})
	}
}

func TestIdentity_LeavesAVariableAsItIs(t *testing.T) {
	v, same, err := identity("(define-fun hold! ((a!0 Int) (a!1 Rank)) Bool (ite (= a!0 l) false (hold a!0 a!1)))")
	require.NoError(t, err)
	require.Equal(t, "hold", v)
	require.Equal(t, "(define-fun hold! ((a!0 Int) (a!1 Rank)) Bool (hold a!0 a!1))", same)
	_, same, err = identity("(define-fun nextL! () Int (+ l 1))")
	require.NoError(t, err)
	require.Equal(t, "(define-fun nextL! () Int nextL)", same)
	_, _, err = identity("(assert true)")
	require.ErrorIs(t, err, ErrProof)
}

func TestRecord_IsReadAsWritten(t *testing.T) {
	path := t.TempDir() + "/record.json"
	r, err := ReadRecord(path)
	require.NoError(t, err)
	r.Keep("core", Entry{"a.f/guard: x", "1", Verdict{"core.TestX", "", true, "h"}})
	r.Keep("core", Entry{"a.f/guard: y", "1", Verdict{"", "", true, ""}})
	r.Keep("core", Entry{"a.g/guard: z", "0", Verdict{"", "", false, ""}})
	r.Keep("model", Entry{"Take/guard: a = b", "2", Verdict{"property P", "f, 3 states", true, ""}})
	require.NoError(t, r.Write(path, map[string]map[string]string{"core": {"a.g": "9"}}))
	got, err := ReadRecord(path)
	require.NoError(t, err)
	delete(r.Entries["core"], "a.g/guard: z") // of another text than the one that stands
	require.Equal(t, r.Entries, got.Entries)
	task := func(name, hash string) Task { return Task{Name: name, Hash: hash} }
	tasks := []Task{task("a.f/guard: x", "1"), task("a.f/guard: y", "2"), task("a.f/guard: new", "1")}
	require.Len(t, got.Stale("core", tasks, map[string]string{"core.TestX": "h"}), 2)
	require.Len(t, got.Stale("core", tasks, map[string]string{"core.TestX": "changed"}), 3)
	require.Equal(t, 0, got.Prune("core", tasks[:2]))
	require.Equal(t, 1, got.Prune("core", tasks[1:]))
}

func TestExplain_RefusesReasonsThatDoNotFit(t *testing.T) {
	r, err := ReadRecord(t.TempDir() + "/none")
	require.NoError(t, err)
	r.Keep("core", Entry{"a.f/guard: x", "1", Verdict{"core.TestX", "", true, ""}})
	r.Keep("core", Entry{"a.f/guard: y", "1", Verdict{Seen: true}})
	r.Keep("model", Entry{"Take/guard: a", "1", Verdict{Seen: true}})
	r.Keep("proof", Entry{"Take/guard: a", "1", Verdict{Killed: "proof Take.P", Seen: true}})
	why, err := Explain(r, []Reason{{Layer: "core", Reason: "never", Mutants: []string{"a.f/guard: y"}}})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a.f/guard: y": "never"}, why)
	require.Equal(t, "mutants 2 killed of 3 (property 0, graph 0, proof 1, test 1), 1 survivors with reasons", r.Closing(why))
	require.Equal(t, "mutants 2 killed of 3 (property 0, graph 0, proof 1, test 1), 0 survivors with reasons, 1 without", r.Closing(nil))
	for _, bad := range []Reason{
		{Layer: "core", Reason: "killed", Mutants: []string{"a.f/guard: x"}}, {Layer: "core", Mutants: []string{"a.f/guard: y"}},
		{Layer: "core", Reason: "no such group", Groups: []string{"a.g"}}, {Layer: "model", Reason: "the proof needs it", Mutants: []string{"Take/guard: a"}},
		{Layer: "tlc", Reason: "no such layer"},
	} {
		_, err := Explain(r, []Reason{bad})
		require.ErrorIs(t, err, ErrReasons, bad.Reason)
	}
}
