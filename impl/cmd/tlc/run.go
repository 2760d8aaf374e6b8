package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// outcome is what TLC did.
type outcome struct {
	exit     int
	violated string
	trace    int // states in the counterexample
	seen     int // distinct states
	depth    int
	took     time.Duration
}

// runTLC runs one configuration in a temporary folder. A non-zero exit of TLC, or -1 for a run cut off by o.limit,
// is an outcome, not an error. TLC gets one worker,
// so that a counterexample is always the same; configurations run beside each other instead.
func runTLC(o options, model string, c *configuration, text string) (outcome, string, error) {
	tmp, err := os.MkdirTemp("", "tlc")
	if err != nil {
		return outcome{}, "", err
	}
	defer os.RemoveAll(tmp)
	specs, err := filepath.Glob(filepath.Join(o.dir, "*.tla"))
	if err != nil {
		return outcome{}, "", err
	}
	for _, s := range specs {
		raw, err := os.ReadFile(s)
		if err != nil {
			return outcome{}, "", err
		}
		if err := os.WriteFile(filepath.Join(tmp, filepath.Base(s)), raw, 0o644); err != nil {
			return outcome{}, "", err
		}
	}
	if err := os.WriteFile(filepath.Join(tmp, "run.cfg"), []byte(text), 0o644); err != nil {
		return outcome{}, "", err
	}
	args := []string{"-XX:+UseSerialGC", "-XX:CICompilerCount=2", "-cp", o.jar, "tlc2.TLC", "-workers", "1", "-metadir", filepath.Join(tmp, "states"), "-config", "run.cfg"}
	if c.Simulate != "" {
		args = append(args, "-simulate", c.Simulate, "-depth", strconv.Itoa(c.Depth), "-seed", "1")
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "java", append(args, model+".tla")...)
	cmd.Dir = tmp
	began := time.Now()
	raw, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return outcome{exit: -1, took: time.Since(began)}, string(raw), nil
	}
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return outcome{}, "", err
	}
	got := parse(string(raw))
	got.exit = cmd.ProcessState.ExitCode()
	got.took = time.Since(began)
	return got, string(raw), nil
}

var (
	violatedLine = regexp.MustCompile(`(?m)^Error: (?:Invariant|Action property|Temporal property) (\w+)? ?(?:line .*)?(?:is|was|of module \w+ is) violated`)
	distinctLine = regexp.MustCompile(`(?m)^\d+ states generated, (\d+) distinct states found`)
	depthLine    = regexp.MustCompile(`(?m)^The depth of the complete state graph search is (\d+)`)
	stateLine    = regexp.MustCompile(`(?m)^State \d+: <`)
)

func parse(output string) outcome {
	var got outcome
	if f := violatedLine.FindStringSubmatch(output); f != nil {
		got.violated = f[1]
		got.trace = len(stateLine.FindAllString(output, -1))
	}
	if f := distinctLine.FindAllStringSubmatch(output, -1); f != nil {
		got.seen = atoi(f[len(f)-1][1])
	}
	if f := depthLine.FindStringSubmatch(output); f != nil {
		got.depth = atoi(f[1])
	}
	return got
}

func atoi(s string) int { // the patterns let digits through only
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// expectation is got as the manifest keeps it.
func (got outcome) expectation(c *configuration) expectation {
	e := expectation{Result: "error", Exit: got.exit}
	switch {
	case got.exit == 0:
		e.Result = "pass"
		if c.Simulate == "" {
			e.Distinct, e.Depth = got.seen, got.depth
		}
	case got.violated != "":
		e.Result, e.Violated, e.Trace = "violated", got.violated, got.trace
	}
	return e
}

// compare lists how got differs from what c expects.
func compare(c *configuration, got outcome) []string {
	want, have := c.Expect, got.expectation(c)
	if want == have {
		return nil
	}
	return []string{
		strings.TrimSpace(fmt.Sprintf("expected %+v", want)),
		strings.TrimSpace(fmt.Sprintf("found    %+v", have)),
	}
}
