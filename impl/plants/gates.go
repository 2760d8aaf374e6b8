package plants

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"kvfence/impl/overlay"
)

// suite is a package whose tests are a gate.
type suite struct {
	name, dir string
	tests     string   // which of them, as a regular expression: those that are not searches for long
	runs      []string // packages with plants whose code they run
	seconds   int      // processor time of all of these, with room
}

// suites are the gates beside seeded runs. Of impl/sim's own tests the seeds are left out: the search runs them as well.
func suites() []suite {
	return []suite{
		{"pages", "impl/pages", "Test.*", []string{"pages"}, 60},
		{"transport", "impl/transport", "Test.*", []string{"transport"}, 60},
		{"tcp", "impl/transport/tcp", "Test(Fence_PlacerStands|Receiver_StreamBreaks|Receiver_DeviceFails).*", []string{"transport", "tcp"}, 20},
		{"node", "impl/node", "Test(Step|Fence|Verify|FirstToken|Stray|FenceDone|Landing|Ends).*", []string{"node"}, 90},
		{"core", "impl/core", "Test.*", []string{"pages", "core"}, 90},
		{"sim", "impl/sim", "Test(Case|World).*", []string{"pages", "core", "transport", "mem", "sim"}, 60},
	}
}

// concerns reports whether a suite runs anything that one of these plants changes.
func (s suite) concerns(all []Plant, on []int) bool {
	return slices.ContainsFunc(on, func(n int) bool {
		return slices.ContainsFunc(all[n].Edits, func(e Edit) bool {
			pkg, _, _ := strings.Cut(e.In, ".")
			return slices.Contains(s.runs, pkg)
		})
	})
}

// Suites builds the test binaries of the gates that are asked for.
func (l *Lab) Suites(ctx context.Context, wanted func(name string) bool, say func(string, ...any)) error {
	for _, s := range suites() {
		if !wanted(s.name) {
			continue
		}
		say("building the tests of %s", s.name)
		if err := l.build(ctx, l.testBin(s), "test", "-c", "./"+s.dir); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) testBin(s suite) string { return filepath.Join(l.dir, s.name+".test") }

// Tests are the first failing test of each suite with a plant.
func (l *Lab) Tests(ctx context.Context, n int) (out []Test, err error) {
	on, err := Numbers(l.All, l.All[n].Name)
	if err != nil {
		return nil, err
	}
	for _, s := range suites() {
		if !s.concerns(l.All, on) {
			continue
		}
		t, err := l.test(ctx, s, s.tests, on)
		if err != nil {
			return nil, err
		}
		if t != nil {
			out = append(out, *t)
		}
	}
	return out, nil
}

// test runs tests of a suite with some plants on, until one fails; nil: none does.
func (l *Lab) test(ctx context.Context, s suite, tests string, on []int) (*Test, error) {
	bin, err := filepath.Abs(l.testBin(s))
	if err != nil {
		return nil, err
	}
	rapid, err := overlay.UsesRapid(filepath.Join(l.root, s.dir))
	if err != nil {
		return nil, err
	}
	c := overlay.Limited(ctx, s.seconds, bin, overlay.TestArgs([]string{tests}, rapid)...)
	c.Dir = filepath.Join(l.root, s.dir)
	c.Env = environment(on)
	out, err := c.CombinedOutput()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err == nil {
		return nil, nil
	}
	t := Test{Suite: s.name, Seconds: round(cpu(c))}
	t.Test, t.How = overlay.FirstFailure(string(out))
	return &t, nil
}

// Base runs every suite without a plant: where one fails nothing can be learned from it.
func (l *Lab) Base(ctx context.Context) error {
	var failed []string
	for _, s := range suites() {
		t, err := l.test(ctx, s, s.tests, nil)
		if err != nil {
			return err
		}
		if t != nil {
			failed = append(failed, s.name+"."+t.Test+" "+t.How)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%w: without a plant %s", ErrPlant, strings.Join(failed, ", "))
	}
	return nil
}

// cpu is the processor time of a command that has ended, in seconds.
func cpu(c *exec.Cmd) float64 {
	if c.ProcessState == nil {
		return 0
	}
	return (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
}

// round keeps two digits behind the point.
func round(seconds float64) float64 { return math.Round(seconds*100) / 100 }
