package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kvfence/impl/rig"
)

const (
	selfPackage  = "./impl/rig/self"
	benchPackage = "./impl/rig/side"
	jobPackage   = "./impl/chaos" // the main job over processes
	tags         = "verbs,rig,chaos"
	native       = "kvfence-native"
	planted      = "^TestPlanted$"
	// margin is what a test binary's own limit leaves of the machine's, so that it can say where it hung.
	margin = 20 * time.Second
)

// suite is what a run does in its machine: packages' tests, and what is planted to be refused.
type suite struct {
	packages []string
	vars     []string
	plants   []string
}

// suiteOf follows the command line. Plants go with the whole suite only: a quick look at some tests shall be quick.
func suiteOf(o options) suite {
	s := suite{packages: o.pkgs, vars: o.vars}
	switch {
	case o.bench:
		s.packages = []string{benchPackage}
		s.vars = append(s.vars, "KVFENCE_RDMA_BENCH_ROUNDS="+fmt.Sprint(o.rounds))
	case len(o.pkgs) == 0:
		s.packages = []string{selfPackage, "./impl/transport/verbs", jobPackage}
		s.plants = []string{"fail", "skip", "hang", "exit"}
	}
	if !o.long && len(s.plants) > 0 {
		s.vars = append(s.vars, "KVFENCE_RDMA_ROUNDS=204") // 200 and more, for each of six kinds as many
	}
	if o.long {
		s.vars = append(s.vars, "KVFENCE_RDMA_ROUNDS=2000")
	}
	return s
}

// build compiles the suite's test binaries into the job's folder.
func (s suite) build(ctx context.Context, o options, job string) (bins []rig.Binary, err error) {
	for _, what := range s.plants {
		b := rig.Binary{Name: "planted-" + what, File: nameOf(selfPackage), Args: []string{"-test.v", "-test.run", planted}, Env: []string{"KVFENCE_RIG_PLANT=" + what}, Limit: 30 * time.Second, Planted: true}
		if what == "hang" {
			b.Limit = 2 * time.Second
		}
		bins = append(bins, b)
	}
	for _, p := range s.packages {
		name := nameOf(p)
		if err := command(ctx, "go", "test", "-c", "-tags", tags, "-o", filepath.Join(job, name), p); err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(job, name)); err != nil {
			return nil, fmt.Errorf("%s has no tests for the rig: %w", p, err)
		}
		b := rig.Binary{Name: name, Args: []string{"-test.v", "-test.run", o.run, "-test.timeout", (o.limit - margin).String()}, Env: s.vars, Limit: o.limit}
		if p == selfPackage {
			b.Args = append(b.Args, "-test.skip", planted) // they are run apart, and must be refused
		}
		if p == jobPackage {
			if err := command(ctx, "go", "build", "-tags", "verbs", "-o", filepath.Join(job, native), "./impl/cmd/kvfence"); err != nil {
				return nil, err
			}
			b.Files, b.Env = []string{native}, append(slices.Clip(b.Env), "KVFENCE_CHAOS_BINARY=/tmp/"+native)
			if o.run == "." {
				b.Args[2] = "^TestVerbs_" // its other tests need no RDMA
			}
		}
		bins = append(bins, b)
	}
	return bins, nil
}

func nameOf(pkg string) string {
	return strings.ReplaceAll(strings.Trim(strings.TrimPrefix(pkg, "./"), "/"), "/", "-") + ".test"
}

func command(ctx context.Context, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

// errAlive says that something planted was not refused: the green of the others means nothing.
var errAlive = errors.New("what was planted to be refused was accepted")

// results reads what each binary said. Planted ones are judged by themselves, and must be refused.
func results(job string, bins []rig.Binary) (res rig.Results, refused int, err error) {
	for _, b := range bins {
		f, e := os.Open(filepath.Join(job, b.Name+".out"))
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		if b.Planted {
			var own rig.Results
			if own.Read(b.Name, f) == nil && own.Judge() == nil {
				err = errors.Join(err, fmt.Errorf("%w: %s", errAlive, b.Name))
			} else {
				refused++
			}
			err = errors.Join(err, f.Close())
			continue
		}
		err = errors.Join(err, res.Read(strings.TrimSuffix(b.Name, ".test"), f), f.Close())
	}
	return res, refused, err
}
