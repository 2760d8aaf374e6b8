package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func testEnv(t *testing.T) (*env, *bytes.Buffer, *result) {
	var out bytes.Buffer
	r := &result{part: "p"}
	return &env{ctx: t.Context(), root: t.TempDir(), out: &serial{w: &out}, result: r}, &out, r
}

func TestParseOptions_SkipInCI_IsRefused(t *testing.T) {
	_, err := parseOptions([]string{"-skip", "tlc", "-ci", "true"})
	require.ErrorIs(t, err, errUsage)
	require.ErrorContains(t, err, "SKIP=tlc")
	o, err := parseOptions([]string{"-skip", "tlc,chaos", "-ci", ""})
	require.NoError(t, err)
	require.Equal(t, []string{"tlc", "chaos"}, o.skip)
	require.False(t, o.ci)
}

func TestParseOptions_UnknownNames_AreRefused(t *testing.T) {
	for _, args := range [][]string{{"-skip", "tcl"}, {"-set", "tests"}, {"bild"}, {"-nonsense"}, {"-set", "fast", "-skip", "tlc"}} {
		_, err := parseOptions(args)
		require.ErrorIs(t, err, errUsage, "%v", args)
	}
}

func TestParts_EachSet_HasNamesAndLimits(t *testing.T) {
	for _, set := range setNames() {
		seen := map[string]bool{}
		var all time.Duration
		for _, p := range partsOf(set) {
			require.False(t, seen[p.name])
			require.Positive(t, p.limit)
			require.NotEmpty(t, p.about)
			seen[p.name] = true
			all += p.limit
		}
		require.NotEmpty(t, seen, set)
		if set == "test" {
			require.LessOrEqual(t, all, 85*time.Minute, "all limits together fit CI's ninety minutes")
		}
	}
}

const events = `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestGood"}
{"Action":"output","Package":"m/a","Test":"TestGood","Output":"quiet\n"}
{"Action":"pass","Package":"m/a","Test":"TestGood"}
{"Action":"run","Package":"m/a","Test":"TestBad"}
{"Action":"output","Package":"m/a","Test":"TestBad","Output":"    a_test.go:9: broken\n"}
{"Action":"output","Package":"m/a","Test":"TestBad/sub","Output":"        a_test.go:12: deeper\n"}
{"Action":"fail","Package":"m/a","Test":"TestBad/sub"}
{"Action":"fail","Package":"m/a","Test":"TestBad"}
{"Action":"output","Package":"m/a","Test":"TestNot","Output":"    a_test.go:20: no nftables here\n"}
{"Action":"output","Package":"m/a","Test":"TestNot","Output":"--- SKIP: TestNot (0.00s)\n"}
{"Action":"skip","Package":"m/a","Test":"TestNot"}
{"Action":"fail","Package":"m/a","Elapsed":0.5}
{"Action":"pass","Package":"m/b","Test":"TestGood"}
{"Action":"pass","Package":"m/b","Elapsed":1.5}
{"Action":"output","Package":"m/c","Output":"panic in TestMain\n"}
{"Action":"fail","Package":"m/c","Elapsed":0.1}
{"ImportPath":"m/d [m/d.test]","Action":"build-output","Output":"d.go:1: undefined: x\n"}
{"ImportPath":"m/d [m/d.test]","Action":"build-fail"}
{"Action":"skip","Package":"m/e"}
`

func TestCountTests_RecordedRun_CountsAndNames(t *testing.T) {
	var out bytes.Buffer
	var r result
	require.NoError(t, countTests(strings.NewReader(events), &out, &r))
	require.Equal(t, 2, r.passed)
	require.Equal(t, []failure{{"m/a.TestBad", ""}, {"m/c", "failed outside of its tests"}, {"m/d [m/d.test]", "does not build"}}, r.failures)
	require.Equal(t, []skip{{"m/a.TestNot", "no nftables here"}}, r.skips)
	for _, s := range []string{"broken", "deeper", "panic in TestMain", "undefined: x", "ok   m/b 1.5s", "FAIL m/a 0.5s"} {
		require.Contains(t, out.String(), s)
	}
	require.NotContains(t, out.String(), "quiet")
}

func TestReport_Print_EndsWithPlainLine(t *testing.T) {
	var out bytes.Buffer
	var rep report
	rep.add(result{part: "build", passed: 3, seconds: 1})
	rep.add(result{part: "test", passed: 40, seconds: 3, failures: []failure{{"m/a.TestBad", "why"}}, skips: []skip{{"m/a.TestNot", "no nftables here"}}})
	rep.print(&out)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Equal(t, "43 passed, 1 failed, 1 skipped", lines[len(lines)-1])
	require.Contains(t, out.String(), "skipped m/a.TestNot: no nftables here")
	require.Contains(t, out.String(), "test               3.0    75%      40       1       1")
	require.Equal(t, []string{"test"}, rep.failedParts())
}

func TestCommand_FailureAndFindings_AreBooked(t *testing.T) {
	e, out, r := testEnv(t)
	e.command("true", nil, "true")
	e.command("false", []string{"X=1"}, "false")
	e.silent("clean", "true")
	e.silent("findings", "echo", "-file.go")
	require.Equal(t, 2, r.passed)
	require.Equal(t, []failure{{"false", "exit status 1"}, {"findings", "-file.go"}}, r.failures)
	require.Contains(t, out.String(), "$ X=1 false")
}

func TestCounted_ClosingLine_IsBooked(t *testing.T) {
	e, _, r := testEnv(t)
	say := func(script string) { e.counted("tlc", tlcClosing, "long ones", "sh", "-c", script) }
	say("echo 1 configurations, 1 as expected, 9 not, 0 long ones left out, an early line; echo '9 configurations, 9 as expected, 0 not, 3 long ones left out; 5 states'")
	require.Equal(t, 9, r.passed)
	require.Equal(t, []skip{{"tlc", "3 long ones"}}, r.skips)
	require.Empty(t, r.failures)
	say("echo '9 configurations, 7 as expected, 2 not, 0 long ones left out'")
	say("true")
	say("echo '9 configurations, 9 as expected, 0 not, 0 long ones left out'; exit 3")
	require.Equal(t, []failure{{"tlc", "2 failed"}, {"tlc", "it did not end with a line of counts"}, {"tlc", "exit status 3"}}, r.failures)
}

func TestNeeds_MissingCommand_SkipsWithReasonButFailsInCI(t *testing.T) {
	e, _, r := testEnv(t)
	require.True(t, e.needs("shell", "sh"))
	require.False(t, e.needs("tlc", "no-such-command"))
	require.Equal(t, []skip{{"tlc", "no-such-command is not installed (make setup, as root)"}}, r.skips)
	require.Empty(t, r.failures)
	e.ci = true
	require.False(t, e.needs("tlc", "no-such-command"))
	require.Len(t, r.failures, 1)
}

func TestCommand_PastItsLimit_EndsWithItsChildren(t *testing.T) {
	e, _, r := testEnv(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	e.ctx = ctx
	e.command("slow", nil, "sh", "-c", "sleep 60; true")
	require.Len(t, r.failures, 1)
}

func TestRunPart_OverItsLimit_Fails(t *testing.T) {
	var out bytes.Buffer
	p := part{name: "slow", limit: time.Millisecond, run: func(e *env) { <-e.ctx.Done() }}
	r := runPart(t.Context(), options{root: t.TempDir()}, p, &out)
	require.Equal(t, []failure{{"slow", "slow did not end within 1ms"}}, r.failures)
}

func TestCache_UnchangedInputs_RunOnceButNeverInCI(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "in", "a.tla")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	write := func(s string) { require.NoError(t, os.WriteFile(file, []byte(s), 0o644)) }
	ran := 0
	good := true
	p := part{name: "tlc", limit: time.Minute, inputs: []string{"in", "absent"}, run: func(e *env) {
		ran++
		e.book("check", map[bool]error{true: nil, false: errUsage}[good])
	}}
	var out bytes.Buffer
	do := func(ci bool) result { return runPart(t.Context(), options{root: root, ci: ci}, p, &out) }
	write("one")
	require.False(t, do(false).cached)
	again := do(false)
	require.True(t, again.cached)
	require.Equal(t, 1, again.passed)
	require.Equal(t, 1, ran)
	do(true)
	require.Equal(t, 2, ran, "CI does not look")
	write("two")
	good = false
	do(false)
	do(false)
	require.Equal(t, 4, ran, "a failure is not kept")
}

func TestFuzzTargets_Planted_AreFoundInOrder(t *testing.T) {
	got, err := fuzzTargets("testdata/fuzzed")
	require.NoError(t, err)
	require.Equal(t, []target{{"./a", "FuzzOne"}, {"./a", "FuzzTwo"}, {"./b", "FuzzThree"}}, got)
}

func TestFuzz_NoTarget_Fails(t *testing.T) {
	e, _, r := testEnv(t)
	e.fuzz(time.Second, time.Second)
	require.Equal(t, []failure{{"fuzz", "no fuzz target found"}}, r.failures)
}

func TestFuzz_ShareOfTime_IsWhatTheTargetsLeave(t *testing.T) {
	require.Equal(t, 10*time.Second, share(10*time.Second, 3*time.Minute, 26), "two lanes of thirteen seconds each")
	require.Equal(t, 9*time.Second, share(10*time.Second, 3*time.Minute, 28))
	require.Equal(t, 5*time.Minute, share(5*time.Minute, 2*time.Hour, 27))
	require.Equal(t, time.Second, share(10*time.Second, time.Second, 5))
}

// The planted targets fuzz nothing, which go test refuses: each is booked, in order, whichever ended first.
func TestFuzz_TargetsThatFail_AreBookedInOrder(t *testing.T) {
	e, out, r := testEnv(t)
	e.root = "testdata/fuzzed"
	e.fuzz(time.Second, time.Second)
	var names []string
	for _, f := range r.failures {
		names = append(names, f.name)
	}
	require.Equal(t, []string{"./a.FuzzOne", "./a.FuzzTwo", "./b.FuzzThree"}, names)
	require.Zero(t, r.passed)
	require.Contains(t, out.String(), "-fuzz=^FuzzThree$")
	require.Contains(t, out.String(), "returned without calling F.Fuzz")
}

func TestClosing_LastLineWithText_IsKept(t *testing.T) {
	var c closing
	for _, b := range []string{"one\ntw", "o 2\n", "\n", "  \n"} {
		_, err := c.Write([]byte(b))
		require.NoError(t, err)
	}
	require.Equal(t, "two 2", c.String())
	_, err := c.Write([]byte("unfinished"))
	require.NoError(t, err)
	require.Equal(t, "unfinished", c.String())
}

func TestRecordLong_PartsOneByOne_ReplaceTheirLastRun(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "docs"), 0o755))
	require.NoError(t, recordLong(root, result{part: "tlc", passed: 3, seconds: 1.26, figures: []string{"tlc: 3 as expected"}}))
	require.NoError(t, recordLong(root, result{part: "build", passed: 1}))
	require.NoError(t, recordLong(root, result{part: "tlc", passed: 2, failures: []failure{{"x", "y"}}}))
	runs, err := readLong(root)
	require.NoError(t, err)
	require.Len(t, runs, 2)
	require.Equal(t, []string{"build", "tlc"}, []string{runs[0].Part, runs[1].Part})
	require.Equal(t, 1, runs[1].Failed)
	require.Empty(t, runs[1].Figures)
}

func TestCutOff_OnlyTheEndOfTime_IsNoFinding(t *testing.T) {
	head := "fuzz: elapsed: 1s, gathering baseline coverage: 38/38 completed, now fuzzing with 1 workers\nfuzz: elapsed: 10s, execs: 4814 (420/sec), new interesting: 0 (total: 38)\n"
	require.Regexp(t, cutOff, head+"--- FAIL: FuzzReceiver (10.40s)\n    context deadline exceeded\nFAIL\nexit status 1\n")
	for _, said := range []string{
		head + "--- FAIL: FuzzReceiver (4.40s)\n    --- FAIL: FuzzReceiver (0.00s)\n        x_test.go:7: context deadline exceeded\n    \n    Failing input written to testdata/fuzz/FuzzReceiver/0123\nFAIL\n",
		"--- FAIL: FuzzReceiver (10.40s)\n    context deadline exceeded\nFAIL\n", // it never came to fuzz
		head + "panic: test timed out after 10s\n",
	} {
		require.NotRegexp(t, cutOff, said)
	}
}
