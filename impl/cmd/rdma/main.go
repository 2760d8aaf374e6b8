// Command rdma runs tests in a machine with RDMA that it makes itself (impl/rig): no adapter, no privilege and no network is needed.
//
//	go run ./impl/cmd/rdma                                       what make test-rdma runs
//	go run ./impl/cmd/rdma -run Fence ./impl/transport/verbs     some tests of one package
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"kvfence/impl/rig"
)

type options struct {
	run   string
	cache string
	limit time.Duration
	keep  string
	vars  []string
	pkgs  []string
}

func main() {
	var o options
	vars := flag.String("env", "", "variables for the tests, separated by commas")
	flag.StringVar(&o.run, "run", ".", "which tests, as go test's -run")
	flag.StringVar(&o.cache, "cache", "build/rdma", "where the kernel is kept")
	flag.DurationVar(&o.limit, "limit", 6*time.Minute, "limit of the machine's life")
	flag.StringVar(&o.keep, "keep", "", "folder for the job's files, which are otherwise removed")
	flag.Parse()
	o.pkgs = flag.Args()
	if len(o.pkgs) == 0 {
		o.pkgs = packages()
	}
	if *vars != "" {
		o.vars = strings.Split(*vars, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "rdma:", err)
		os.Exit(1)
	}
}

// packages are those with tests for the rig.
func packages() []string { return []string{"./impl/transport/verbs"} }

func run(ctx context.Context, o options) (err error) {
	began := time.Now()
	m, err := rig.Prepare(ctx, o.cache)
	if err != nil {
		return err
	}
	prepared := time.Since(began)
	job := o.keep
	if job == "" {
		if job, err = os.MkdirTemp("", "kvfence-rdma"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(job)) }()
	} else if err := os.MkdirAll(job, 0o755); err != nil {
		return err
	}
	bins, err := build(ctx, o, job)
	if err != nil {
		return err
	}
	if err := rig.WriteJob(job, bins); err != nil {
		return err
	}
	built := time.Since(began) - prepared
	limited, cancel := context.WithTimeoutCause(ctx, o.limit, fmt.Errorf("over its limit of %v", o.limit))
	defer cancel()
	status, err := m.Run(limited, job)
	res, readErr := results(job, bins)
	if err != nil {
		console, _ := os.ReadFile(filepath.Join(job, "console.log"))
		fmt.Printf("console:\n%s\n", console[max(0, len(console)-4000):])
		return errors.Join(err, readErr)
	}
	for _, t := range slices.Concat(res.Failed, res.Skipped) {
		top, _, _ := strings.Cut(t, "/")
		fmt.Print(res.Output[top])
	}
	for _, f := range res.Figures {
		fmt.Printf("%-44s %s %s\n", f.Name, f.Value, f.Unit)
	}
	judged := errors.Join(readErr, res.Judge())
	if judged == nil && status != 0 {
		judged = fmt.Errorf("every test passed, but a binary's status was %d", status)
	}
	fmt.Printf("kernel %s: ready in %.0f s, tests built in %.0f s, from boot to exit %.0f s\n", m.Package, prepared.Seconds(), built.Seconds(), (time.Since(began) - prepared - built).Seconds())
	fmt.Printf("%d passed, %d failed, %d skipped\n", len(res.Passed), len(res.Failed), len(res.Skipped))
	return judged
}

// build compiles the test binaries, and the binary that some of them start, into the job's folder.
func build(ctx context.Context, o options, job string) (bins []rig.Binary, err error) {
	for _, p := range o.pkgs {
		name := strings.ReplaceAll(strings.Trim(strings.TrimPrefix(p, "./"), "/"), "/", "-") + ".test"
		if err := command(ctx, "go", "test", "-c", "-tags", "verbs,rig", "-o", filepath.Join(job, name), p); err != nil {
			return nil, err
		}
		args := []string{"-test.v", "-test.run", o.run, "-test.timeout", (o.limit - 20*time.Second).String()}
		bins = append(bins, rig.Binary{Name: name, Args: args, Env: o.vars, Limit: o.limit})
	}
	return bins, nil
}

func command(ctx context.Context, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

func results(job string, bins []rig.Binary) (res rig.Results, err error) {
	for _, b := range bins {
		f, e := os.Open(filepath.Join(job, b.Name+".out"))
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		err = errors.Join(err, res.Read(strings.TrimSuffix(b.Name, ".test"), f), f.Close())
	}
	return res, err
}
