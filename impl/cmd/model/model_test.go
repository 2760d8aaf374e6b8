package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/tlc"
	"kvfence/model"
	"kvfence/proofs/dump"
)

const (
	specs   = "../../../TLA"
	example = "reach-waits" // a small configuration: one lease, one page
)

func openSpecs(t *testing.T) *tlc.Specs {
	t.Helper()
	s, err := tlc.Open(specs)
	require.NoError(t, err)
	return s
}

func exampleSetting(t *testing.T) setting {
	t.Helper()
	s, err := pin{Name: example}.setting(openSpecs(t).Manifest)
	require.NoError(t, err)
	return s
}

// fake writes the dump that TLC would write of a setting, from the model; it is how these tests do without java.
func fake(t *testing.T, s setting) string {
	t.Helper()
	r, err := s.walk(1, 0)
	require.NoError(t, err)
	names, _ := actionNames()
	twin := model.New(s.twin)
	first := r.Graph.Walker().Index(&twin.Init()[0])
	var b strings.Builder
	say := func(line string) { b.WriteString(line + "\n") }
	say("strict digraph DiskGraph {")
	w := r.Graph.Walker()
	num := func(i int) string { return strconv.Itoa(i + 1000) }
	for i := range r.Graph.Len() {
		end := `"];`
		if i == first {
			end = `",style = filled]`
		}
		say(num(i) + ` [label="` + label(twin.Text(w.State(i))) + end)
	}
	for i := range r.Graph.Len() {
		w.Steps(i, func(a, to int) {
			say(num(i) + " -> " + num(to) + ` [label="` + names[a] + `",color="black",fontcolor="black"];`)
		})
	}
	say("}")
	return b.String()
}

// changed is a dump with each line changed, or left out where the change is "".
func changed(text string, change func(line string) string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(change(line))
	}
	return b.String()
}

// differ compares the model's side of a setting with a dump.
func differ(t *testing.T, s setting, text string) string {
	t.Helper()
	r, err := s.walk(2, 0)
	require.NoError(t, err)
	twin, err := nameStates(s, r, newValues(), 2)
	require.NoError(t, err)
	g := newTLCGraph(twin)
	require.NoError(t, dump.Read(strings.NewReader(text), g.receiver()))
	require.NoError(t, g.finish())
	return g.difference(s, 2)
}

func TestDifference_SameGraphs_IsNone(t *testing.T) {
	s := exampleSetting(t)
	require.Empty(t, differ(t, s, fake(t, s)))
}

func mutantOf(t *testing.T, action, guard, update string) model.Mutant {
	t.Helper()
	m, err := pin{Name: "test", Action: action, Guard: guard, Update: update}.mutant()
	require.NoError(t, err)
	return m
}

// A step of the model is changed while the specification stays: states, or steps only, differ, and the report says where.
func TestDifference_ModelChanged_IsFound(t *testing.T) {
	whole := exampleSetting(t)
	text := fake(t, whole)
	for name, c := range map[string]struct {
		mutant model.Mutant
		says   []string
	}{
		"a guard dropped": {mutantOf(t, "Verify", "AllGot(l)", ""), []string{"the model has ", " states that TLC does not have", "the model has Verify", `dst: <<"filling">> -> <<"verified">>`}},
		"an update dropped": {mutantOf(t, "Take", "", "hold' = [hold EXCEPT ![l, k] = FALSE]"),
			[]string{"TLC has Take", "hold: (<<1, k1>> :> TRUE) -> (<<1, k1>> :> FALSE)"}},
		"steps only": {mutantOf(t, "NoticeIn", `<<l, k, c, i>> \notin nin`, ""), []string{"the steps from ", "only the model has NoticeIn", "changes nothing"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := whole
			s.mutants = []model.Mutant{c.mutant}
			got := differ(t, s, text)
			for _, want := range c.says {
				require.Contains(t, got, want)
			}
			require.Contains(t, got, "after Grant")
		})
	}
}

// The specification is changed while the model stays.
func TestDifference_SpecificationChanged_IsFound(t *testing.T) {
	s := exampleSetting(t)
	text := fake(t, s)
	got := differ(t, s, changed(text, func(line string) string { return strings.Replace(line, `"Abort"`, `"Revoke"`, 1) }))
	require.Contains(t, got, "the model has Abort", got)
	got = differ(t, s, changed(text, func(line string) string { return strings.Replace(line, `"AbortAck"`, `"Failed"`, 1) }))
	require.Contains(t, got, "only the model has AbortAck")
	dropped := false
	got = differ(t, s, changed(text, func(line string) string {
		if strings.Contains(line, `"Seal"`) && !dropped {
			dropped = true
			return ""
		}
		return line
	}))
	require.True(t, dropped)
	require.Contains(t, got, "the steps from 1 states differ")
	require.Contains(t, got, "only the model has Seal")
	got = differ(t, s, changed(text, func(line string) string {
		return strings.Replace(line, `nextL = 2`, `nextL = 3`, 1)
	}))
	require.Contains(t, got, "TLC has ")
	require.Contains(t, got, "nextL: 1 -> 3")
	got = differ(t, s, changed(text, func(line string) string {
		if strings.HasSuffix(line, "style = filled]\n") {
			line = strings.Replace(line, "dinc = 0", "dinc = 1", 1)
		}
		return line
	}))
	require.Contains(t, got, "TLC has an initial state that the model does not begin with")
}

func TestDump_StepWithoutItsState_IsRefused(t *testing.T) {
	s := exampleSetting(t)
	r, err := s.walk(1, 0)
	require.NoError(t, err)
	twin, err := nameStates(s, r, newValues(), 1)
	require.NoError(t, err)
	read := func(text string) error {
		g := newTLCGraph(twin)
		if err := dump.Read(strings.NewReader(text), g.receiver()); err != nil {
			return err
		}
		return g.finish()
	}
	text := fake(t, s)
	require.NoError(t, read(text))
	lines := strings.SplitAfter(text, "\n")
	require.ErrorIs(t, read(lines[0]+strings.Join(lines[2:], "")), dump.ErrDump)
	require.ErrorIs(t, read(lines[0]+lines[1]+strings.Join(lines[1:], "")), dump.ErrDump)
}

// copySpecs is a copy of the specifications that a test may change, with a list of settings of its own.
func copySpecs(t *testing.T, p pins) string {
	t.Helper()
	dir := t.TempDir()
	for _, pattern := range []string{"*.tla", "manifest.json"} {
		files, err := filepath.Glob(filepath.Join(specs, pattern))
		require.NoError(t, err)
		for _, f := range files {
			raw, err := os.ReadFile(f)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(f)), raw, 0o600))
		}
	}
	require.NoError(t, p.write(filepath.Join(dir, "equality.json")))
	return dir
}

// withTLC leaves a test out where java or the tools are not there, or tests have to be short.
func withTLC(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs TLC")
	}
	if _, err := tlc.FindTools(""); err != nil {
		t.Skip(err)
	}
}

func command(dir string, args ...string) (string, error) {
	var out bytes.Buffer
	err := run(context.Background(), append([]string{"-dir", dir}, args...), &out)
	return out.String(), err
}

func TestRun_GraphsEqual_PinsAreKept(t *testing.T) {
	withTLC(t)
	dir := copySpecs(t, pins{
		Settings: []pin{{Name: example}},
		Mutants:  []pin{{Name: "off-InOrder", Guard: "InOrder"}, {Name: "drop", Config: example, Action: "Take", Update: "hold' = [hold EXCEPT ![l, k] = FALSE]"}},
	})
	out, err := command(dir, "equal", "mutants")
	require.ErrorIs(t, err, errDiffers)
	require.Contains(t, out, "but 0 and 0 are recorded; run with -write")
	out, err = command(dir, "-write", "-only", example+",off-InOrder,drop", "equal", "mutants")
	require.NoError(t, err, out)
	require.Contains(t, out, "3 graphs equal, 0 not, 0 long ones left out")
	p, err := readPins(filepath.Join(dir, "equality.json"))
	require.NoError(t, err)
	require.NotZero(t, p.Settings[0].States)
	require.NotZero(t, p.Mutants[1].Edges)
	out, err = command(dir, "-only", "drop", "mutants")
	require.NoError(t, err, out)
	require.Contains(t, out, "model 0 settings, 0 states, 0 edges equal; 1 mutants equal; speed not taken")
}

func TestRun_ActionRenamedInTLA_Fails(t *testing.T) {
	withTLC(t)
	dir := copySpecs(t, pins{Settings: []pin{{Name: example}}})
	files, err := filepath.Glob(filepath.Join(dir, "*.tla"))
	require.NoError(t, err)
	for _, f := range files {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(f, []byte(strings.ReplaceAll(string(raw), "AbortAck(", "AbortDone(")), 0o600))
	}
	out, err := command(dir, "-only", example, "equal")
	require.ErrorIs(t, err, errDiffers)
	require.Contains(t, out, "FAIL "+example)
	require.Contains(t, out, "the model has AbortAck")
}

func TestRun_MutantThatChangesNothing_Fails(t *testing.T) {
	withTLC(t)
	dir := copySpecs(t, pins{Mutants: []pin{{Name: "m", Config: example, Action: "Grant", Guard: "l + 1 \\in Nat"}}})
	out, err := command(dir, "-only", "m", "mutants")
	require.ErrorIs(t, err, errDiffers)
	require.Contains(t, out, "the graph is that without the mutation")
}

func TestRun_SpecificationDoesNotParse_SaysSo(t *testing.T) {
	withTLC(t)
	dir := copySpecs(t, pins{Settings: []pin{{Name: example}}})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Transfer.tla"), []byte("---- MODULE Transfer ----\nx == (\n====\n"), 0o600))
	_, err := command(dir, "-only", example, "equal")
	require.ErrorIs(t, err, errTLC)
}

func TestRun_Speed_IsTakenOnBothSides(t *testing.T) {
	withTLC(t)
	dir := copySpecs(t, pins{Speed: pin{Name: example}})
	out, err := command(dir, "-times", "1", "-least", "0.001", "speed")
	require.NoError(t, err, out)
	require.Contains(t, out, "speed on "+example)
	require.Regexp(t, `model 0 settings, 0 states, 0 edges equal; 0 mutants equal; speed [\d.]+ times TLC`, out)
	out, err = command(dir, "-times", "1", "-least", "1e9", "speed")
	require.ErrorIs(t, err, errDiffers)
	require.Contains(t, out, "FAIL speed")
}

func TestJudge_FiguresThatDifferFromThoseRecorded_Fail(t *testing.T) {
	for name, c := range map[string]struct {
		p  pin
		ok bool
	}{
		"as recorded":            {pin{States: 3, Edges: 5}, true},
		"another count":          {pin{States: 3, Edges: 6}, false},
		"not recorded":           {pin{}, false},
		"long, another count":    {pin{Long: true, States: 4, Edges: 5}, false},
		"long, not recorded yet": {pin{Long: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s := &session{out: &out}
			require.Equal(t, c.ok, s.judge(outcome{p: &c.p, found: compared{states: 3, edges: 5}}))
			require.Equal(t, c.ok, s.total.bad == 0)
			require.Equal(t, c.p.Long && c.p.States == 0, strings.Contains(out.String(), "not recorded yet"))
			require.False(t, s.judge(outcome{p: &c.p, found: compared{states: 3, edges: 5, difference: "a step"}}))
			require.Contains(t, out.String(), "FAIL")
		})
	}
}

func TestWalk_VerdictsAreComparedWithTheManifest(t *testing.T) {
	dir := copySpecs(t, pins{})
	names := example + ",off-TakeDrained,off-FirstVerdict"
	out, err := command(dir, "-only", names, "walk")
	require.NoError(t, err, out)
	require.Contains(t, out, "walk 3 configurations as the manifest says, 0 not")
	onDisk, err := command(dir, "-only", names, "-disk", t.TempDir(), "-memory", "1", "walk")
	require.NoError(t, err, onDisk)
	require.Contains(t, onDisk, "walk 3 configurations as the manifest says, 0 not")
	path := filepath.Join(dir, "manifest.json")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"violated": "FailedIsFinalS"`)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(raw), `"violated": "FailedIsFinalS"`, `"violated": "FreshS"`, 1)), 0o600))
	out, err = command(dir, "-only", names, "walk")
	require.ErrorIs(t, err, errDiffers)
	require.Contains(t, out, "FAIL off-FirstVerdict: FailedIsFinalS broken after")
	_, err = command(dir, "-only", "none", "walk")
	require.ErrorIs(t, err, errPins)
	_, err = command(dir, "equal", "walk")
	require.ErrorContains(t, err, "nor walk alone")
}

func TestFollow_TimesAreBetweenItsLines(t *testing.T) {
	clock := time.Unix(0, 0)
	now := func() time.Time { clock = clock.Add(3 * time.Second); return clock }
	text := "Starting... (2026)\nComputing initial states...\nFinished computing initial states: 1 distinct state generated at 2026.\n" +
		"Model checking completed. No error has been found.\n75183 states generated, 14310 distinct states found, 0 states left on queue.\n"
	took, states, _, err := follow(strings.NewReader(text), now)
	require.NoError(t, err)
	require.Equal(t, 3*time.Second, took)
	require.Equal(t, 14310, states)
	_, _, _, err = follow(strings.NewReader(strings.Replace(text, "completed", "stopped", 1)), now)
	require.ErrorIs(t, err, errTLC)
}

func TestPins_Mistakes_AreRefused(t *testing.T) {
	m := openSpecs(t).Manifest
	_, err := pin{Name: example, Action: "Take", Guard: "FALSE"}.setting(m)
	require.ErrorIs(t, err, errPins)
	_, err = pin{Name: example, Guard: "AllHolds"}.unmutated(m)
	require.ErrorIs(t, err, errPins)
	_, err = pin{Name: "none"}.setting(m)
	require.ErrorIs(t, err, tlc.ErrNoConfiguration)
	_, err = pin{Name: "pull"}.setting(m)
	require.ErrorContains(t, err, "the model is the twin of Transfer only")
	path := filepath.Join(t.TempDir(), "equality.json")
	for _, text := range []string{`{"setings":[]}`, `{"settings":[{"name":"a"}],"mutants":[{"name":"a"}]}`, `{"settings":[{"name":""}]}`, `{`} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := readPins(path)
		require.ErrorIs(t, err, errPins)
	}
}

// Each entry of the list can be set up on both sides, and each conjunct is found in the TLA+ text.
func TestPins_TheListItself_IsGood(t *testing.T) {
	s := openSpecs(t)
	p, err := readPins(filepath.Join(specs, "equality.json"))
	require.NoError(t, err)
	_, err = p.Speed.setting(s.Manifest)
	require.NoError(t, err)
	all := append(append([]pin{}, p.Settings...), p.Mutants...)
	for _, x := range all {
		set, err := x.setting(s.Manifest)
		require.NoError(t, err)
		dir, err := checker{specs: s}.place(set)
		require.NoError(t, err)
		require.NoError(t, os.RemoveAll(dir))
	}
	for _, x := range p.Mutants {
		_, err := x.unmutated(s.Manifest)
		require.NoError(t, err)
	}
	short := 0
	for _, x := range p.Settings {
		if !x.Long {
			short++
		}
	}
	require.GreaterOrEqual(t, short, 6)
}

func TestDropConjunct_OnlyTheActionsOwn(t *testing.T) {
	text := "---- MODULE A ----\nEXTENDS B, Naturals\nTake(l) ==\n  /\\ l = 1   \\* one\n  /\\ \\/ x = 1\n     \\/ x = 2\n  /\\ x' = 3\n\nTakes(l) ==\n  /\\ l = 1\n====\n"
	files := map[string]string{"A.tla": text, "B.tla": "---- MODULE B ----\n====\n", "C.tla": text}
	require.NoError(t, dropConjunct(files, "A", pin{Name: "p", Action: "Take", Guard: "\\/ x = 1 \\/ x = 2"}))
	require.Contains(t, files["A.tla"], "  /\\ l = 1   \\* one\n  /\\ TRUE\n     \\* dropped\n  /\\ x' = 3\n\nTakes(l) ==\n  /\\ l = 1\n")
	require.Equal(t, text, files["C.tla"])
	require.ErrorIs(t, dropConjunct(files, "A", pin{Name: "p", Action: "Take", Guard: "l = 2"}), errPins)
}
