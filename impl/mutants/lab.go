package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvfence/impl/overlay"
)

// ErrBase says that the tests do not pass with every mutant off: nothing can be learned from them.
var ErrBase = errors.New("the tests fail without a mutant")

// suite is one compiled test binary.
type suite struct {
	name  string // core, pages, sim
	dir   string // its folder
	bin   string
	rapid bool // takes the options of rapid
}

// ran is what one test of a suite does without a mutant.
type ran struct {
	Suite, Test string
	CPU         time.Duration
	Seen        []int  // sites that it comes by
	Hash        string // of a difference
}

// Lab is one build of the core with its switches, and what each test comes by. Not safe for concurrent use while it is made;
// Try is.
type Lab struct {
	Sites []Site
	Tests []ran

	root   string
	suites []suite
	byTest map[string]string // hash of each test function, by suite.Test
	want   map[string]string // hashes of the differences, by suite
}

// suitesOf are the packages whose tests may kill a mutant of the core.
func suitesOf() []suite {
	return []suite{{name: "pages", dir: "impl/pages"}, {name: "core", dir: "impl/core"}, {name: "sim", dir: "impl/sim"}}
}

// Build compiles the suites with their switches in dir and learns what each test comes by. What was built of the same sources before
// is used again.
func Build(ctx context.Context, root, dir string, say func(string, ...any)) (*Lab, error) {
	key, err := overlay.TreeHash(root, "impl/pages", "impl/core", "impl/sim", "spec", "model")
	if err != nil {
		return nil, err
	}
	if root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	l := &Lab{root: root}
	changes, sites, sum, err := WriteOverlay(root, filepath.Join(dir, key))
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(filepath.Join(dir, key, sum)); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	l.Sites = sites
	if l.byTest, err = testHashes(root); err != nil {
		return nil, err
	}
	for _, s := range suitesOf() {
		s.bin = filepath.Join(dir, s.name+".test")
		if s.rapid, err = overlay.UsesRapid(filepath.Join(root, s.dir)); err != nil {
			return nil, err
		}
		if _, err := os.Stat(s.bin); err != nil {
			say("building %s", s.name)
			c := exec.CommandContext(ctx, "go", "test", "-c", "-tags", Tag, "-overlay", changes, "-o", s.bin, "./"+s.dir)
			c.Dir, c.Env = root, append(os.Environ(), "CGO_ENABLED=0")
			if out, err := c.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("build of %s: %w\n%s", s.name, err, out)
			}
		}
		l.suites = append(l.suites, s)
	}
	kept := filepath.Join(dir, "seen.json")
	if b, err := os.ReadFile(kept); err == nil && json.Unmarshal(b, &l.Tests) == nil {
		l.wants()
		return l, nil
	}
	if err := l.learn(ctx, dir, say); err != nil {
		return nil, err
	}
	l.wants()
	b, err := json.Marshal(l.Tests)
	if err != nil {
		return nil, err
	}
	return l, os.WriteFile(kept, b, 0o644)
}

func (l *Lab) wants() {
	l.want = map[string]string{}
	for _, t := range l.Tests {
		l.want[t.Suite] += t.Hash
	}
}

// learn runs each test by itself, without a mutant, and keeps which sites it came by.
func (l *Lab) learn(ctx context.Context, dir string, say func(string, ...any)) error {
	for _, s := range l.suites {
		out, err := exec.CommandContext(ctx, s.bin, "-test.list", "^Test").Output()
		if err != nil {
			return fmt.Errorf("tests of %s: %w", s.name, err)
		}
		names := strings.Fields(string(out))
		say("%s: %d tests without a mutant", s.name, len(names))
		for _, t := range names {
			seen := filepath.Join(dir, "seen")
			if err := os.RemoveAll(seen); err != nil {
				return err
			}
			r := l.exec(ctx, s, []string{t}, -1, 120, seen)
			if r.failed && isDifference(t) {
				say("%s.%s ends early and is not asked", s.name, t)
				continue
			}
			if r.failed {
				return fmt.Errorf("%w: %s.%s\n%s", ErrBase, s.name, t, r.out)
			}
			got, err := numbers(seen)
			if err != nil {
				return err
			}
			hash := ""
			if m := differenceLine.FindStringSubmatch(r.out); m != nil {
				hash = m[1]
			}
			l.Tests = append(l.Tests, ran{s.name, t, r.cpu, got, hash})
		}
	}
	return nil
}

func numbers(path string) (out []int, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range bytes.Fields(b) {
		n, err := strconv.Atoi(string(f))
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return out, err
}

// outcome is one run of a test binary.
type outcome struct {
	failed bool
	test   string // the first that failed, or was running when the process ended
	how    string // "fails", "panics", "time limit"
	out    string
	cpu    time.Duration
}

// exec runs some tests of a suite with a mutant on (-1: none), in a process of its own with a bound on processor time and memory.
func (l *Lab) exec(ctx context.Context, s suite, tests []string, mutant, seconds int, seen string) outcome {
	c := overlay.Limited(ctx, seconds, s.bin, overlay.TestArgs(tests, s.rapid)...)
	c.Dir = filepath.Join(l.root, s.dir)
	c.Env = append(os.Environ(), "KVFENCE_MUTANT="+strconv.Itoa(mutant), "KVFENCE_MUTANTS_SEEN="+seen, "KVFENCE_MUTANTS_WANT="+l.want[s.name], "GOTRACEBACK=none", "GOMAXPROCS=1")
	out, err := c.CombinedOutput()
	r := outcome{failed: err != nil, out: string(out)}
	if c.ProcessState != nil {
		r.cpu = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	if r.failed {
		r.test, r.how = overlay.FirstFailure(r.out)
	}
	return r
}
