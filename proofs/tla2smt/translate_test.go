package tla2smt_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/proofs/edges"
	"kvfence/proofs/sany"
	"kvfence/proofs/solve"
	"kvfence/proofs/tla2smt"
)

// tools returns the jar, or skips.
func tools(t *testing.T, commands ...string) string {
	t.Helper()
	for _, c := range append(commands, "java") {
		if _, err := exec.LookPath(c); err != nil {
			t.Skipf("no %s here", c)
		}
	}
	jar, err := sany.FindJar("")
	if err != nil {
		t.Skip(err)
	}
	return jar
}

func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("many runs of java and z3: not with -short")
	}
}

func options() tla2smt.Options {
	return tla2smt.Options{Types: "TypeOK", Init: "Init", Next: "Next", Invariant: "IndInv"}
}

func core(t *testing.T) *tla2smt.Spec {
	t.Helper()
	spec, err := sany.Read(t.Context(), tools(t), filepath.Join("..", "testdata", "Core.tla"))
	require.NoError(t, err)
	return spec
}

func TestObligations_Core_AreOnePerActionAndConjunct(t *testing.T) {
	l, err := tla2smt.NewLower(core(t), options())
	require.NoError(t, err)
	obligations, err := l.Obligations()
	require.NoError(t, err)
	asked, frame, vacuity := 0, 0, 0
	for _, o := range obligations {
		switch {
		case o.Class == tla2smt.Vacuity:
			vacuity++
		case o.Frame:
			frame++
		default:
			asked++
		}
	}
	require.Equal(t, []int{319, 1189, 28}, []int{asked, frame, vacuity})
	require.Empty(t, l.IllIndexed)
}

// answers asks z3 about the obligations of the actions named, and counts.
func answers(t *testing.T, opt tla2smt.Options, spec *tla2smt.Spec, actions ...string) map[solve.Answer]int {
	t.Helper()
	long(t)
	z3, err := solve.Find("z3")
	if err != nil {
		t.Skip(err)
	}
	l, err := tla2smt.NewLower(spec, opt)
	require.NoError(t, err)
	obligations, err := l.Obligations()
	require.NoError(t, err)
	out := map[solve.Answer]int{}
	for _, o := range obligations {
		if o.Frame || o.Class == tla2smt.Vacuity || !strings.Contains(strings.Join(actions, " ")+" ", o.Action+" ") {
			continue
		}
		r, err := z3.Ask(t.Context(), o.Script(), 20e9)
		require.NoError(t, err)
		out[r.Answer]++
	}
	return out
}

func TestProof_Core_GuardOff_IsRefuted(t *testing.T) {
	spec := core(t)
	on := answers(t, options(), spec, "Abort")
	require.Positive(t, on[solve.Unsat])
	require.Len(t, on, 1, "%v", on)
	off := options()
	off.Off = []string{"DeferRelease"}
	require.Positive(t, answers(t, off, spec, "Abort")[solve.Sat])
}

func TestProof_Core_TranslatorBug_IsNotProved(t *testing.T) {
	bug := options()
	bug.Bug = "minus"
	require.Positive(t, answers(t, bug, core(t), "Copy", "Check")[solve.Sat])
}

// The translation has TLC's edges; with a bug planted in it, it does not.
func TestEdges_Core_AreTLCs_AndBugsDiffer(t *testing.T) {
	long(t)
	jar := tools(t, "z3")
	dir := filepath.Join("..", "testdata")
	s := edges.Setting{Folder: dir, Root: "MCCore", Config: filepath.Join(dir, "cfg", "MCCore.cfg"),
		Bounds: map[string]string{"Lease": "1..NL", "Epoch": "0..NE", "Inc": "0..NI", "Gen": "0..NL", "Nat": "0..NL+1"}}
	text, f, bounds, err := s.Load()
	require.NoError(t, err)
	spec, err := sany.Read(t.Context(), jar, filepath.Join(dir, "Core.tla"))
	require.NoError(t, err)
	g, err := s.Dump(t.Context(), jar, text)
	require.NoError(t, err)
	require.Len(t, g.Texts, 11745)
	const seed = 7
	t.Logf("seed %d", seed)
	for _, bug := range []string{"", "minus", "less"} {
		opt := options()
		opt.Bounds, opt.Bug = bounds, bug
		l, err := tla2smt.NewLower(spec, opt)
		require.NoError(t, err)
		r, err := edges.Compare(t.Context(), l, f, g, 5, seed)
		require.NoError(t, err)
		require.Len(t, r.Actions, 28, "an action without an edge: %v", r.Actions)
		require.Greater(t, r.Edges, 100)
		differ := append(r.OnlyTLC, r.OnlySMT...)
		if bug == "" {
			require.Empty(t, differ)
		} else {
			require.NotEmpty(t, differ, bug)
		}
	}
}

// module translates a small specification with the action's body given.
func module(t *testing.T, body string) (*tla2smt.Lower, error) {
	t.Helper()
	long(t)
	jar := tools(t)
	file := filepath.Join(t.TempDir(), "Small.tla")
	text := "---- MODULE Small ----\nEXTENDS Naturals\nCONSTANTS S, NoS\nVARIABLES a, b, c, f\n" +
		"TypeOK == /\\ a \\in Nat /\\ b \\in BOOLEAN /\\ c \\in S /\\ f \\in [S -> Nat]\n" +
		"Init == /\\ a = 0 /\\ b = FALSE /\\ c = NoS /\\ f = [s \\in S |-> 0]\n" +
		"Act(s) == " + body + "\nNext == \\E s \\in S : Act(s)\nIndInv == a >= 0\n====\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	spec, err := sany.Read(t.Context(), jar, file)
	require.NoError(t, err)
	l, err := tla2smt.NewLower(spec, options())
	require.NoError(t, err)
	_, err = l.Obligations()
	return l, err
}

func TestAction_FrameOrSubsetWrong_IsRefused(t *testing.T) {
	for _, c := range [][2]string{
		{"/\\ a' = 1 /\\ UNCHANGED <<b, c>>", "neither assigns f"},
		{"/\\ a' = 1 /\\ UNCHANGED <<a, b, c, f>>", "assigned or unchanged twice"},
		{"/\\ (IF b THEN a' = 1 ELSE b' = b) /\\ UNCHANGED <<c, f>>", "one branch of IF assigns"},
		{"/\\ (a' = 1 \\/ a' = 2) /\\ UNCHANGED <<b, c, f>>", "the step"},
		{"/\\ a' = (CHOOSE x \\in Nat : x = 1) /\\ UNCHANGED <<b, c, f>>", "as a value"},
		{"/\\ a' = 1 /\\ b' = (a' = 1) /\\ UNCHANGED <<c, f>>", "the step"},
		{"/\\ f' = [x \\in {y \\in S : b} |-> 0] /\\ UNCHANGED <<a, b, c>>", "a function on"},
	} {
		_, err := module(t, c[0])
		require.ErrorIs(t, err, tla2smt.ErrUnsupported, c[0])
		require.ErrorContains(t, err, c[1], c[0])
	}
}

func TestAction_IndexThatIsNoBoundName_IsReported(t *testing.T) {
	l, err := module(t, "/\\ a' = f[c] /\\ UNCHANGED <<b, c, f>>")
	require.NoError(t, err)
	require.Equal(t, []string{"f[.. c ..]"}, l.IllIndexed)
	l, err = module(t, "/\\ a' = f[s] /\\ UNCHANGED <<b, c, f>>")
	require.NoError(t, err)
	require.Empty(t, l.IllIndexed)
}
