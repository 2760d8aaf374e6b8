// Command rdma runs tests in a machine with RDMA that it makes itself (impl/rig): no adapter and no privilege is needed; the network only for
// Debian's kernel, once.
//
//	go run ./impl/cmd/rdma                                       what make test-rdma runs
//	go run ./impl/cmd/rdma -run Fence ./impl/transport/verbs     some tests of one package
//	go run ./impl/cmd/rdma -bench                                throughput beside ib_write_bw and ucx_perftest
//
// A test binary is built with the tags verbs and rig. It finds the rails' devices in KVFENCE_RDMA_DEVICES, their interfaces in
// KVFENCE_RDMA_NETDEVS, and a device with a smaller MTU in KVFENCE_RDMA_SMALL; a line `figure: name value unit` is collected. It is root in the machine, with the host's files to read.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"kvfence/impl/rig"
)

type options struct {
	run    string
	cache  string
	limit  time.Duration
	keep   string
	vars   []string
	pkgs   []string
	bench  bool
	rounds int
	long   bool
}

func parseOptions(args []string) (o options, err error) {
	f := flag.NewFlagSet("rdma", flag.ContinueOnError)
	vars := f.String("env", "", "variables for the tests, separated by commas")
	f.StringVar(&o.run, "run", ".", "which tests, as go test's -run")
	f.StringVar(&o.cache, "cache", "build/rdma", "where the kernel is kept")
	f.DurationVar(&o.limit, "limit", 6*time.Minute, "limit of the machine's life")
	f.StringVar(&o.keep, "keep", "", "folder for the job's files (console, output of each binary), which are otherwise removed")
	f.BoolVar(&o.bench, "bench", false, "throughput beside ib_write_bw and ucx_perftest, in rounds that take turns")
	f.IntVar(&o.rounds, "rounds", 7, "rounds of -bench")
	f.BoolVar(&o.long, "long", false, "ten times the random points")
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: rdma [flags] [package ...]    tests in a machine with soft RoCE; without packages: all of make test-rdma")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.pkgs = f.Args()
	if *vars != "" {
		o.vars = strings.Split(*vars, ",")
	}
	switch {
	case o.limit <= margin:
		return o, fmt.Errorf("-limit %v: more than %v is needed", o.limit, margin)
	case o.bench && len(o.pkgs) > 0:
		return o, errors.New("-bench has a package of its own")
	case o.rounds < 1:
		return o, fmt.Errorf("-rounds %d", o.rounds)
	}
	return o, nil
}

func main() {
	o, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err == nil {
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rdma:", err)
		os.Exit(1)
	}
}

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
	bins, err := suiteOf(o).build(ctx, o, job)
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
	res, refused, readErr := results(job, bins)
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
		fmt.Printf("%-48s %s %s\n", f.Name, f.Value, f.Unit)
	}
	judged := errors.Join(readErr, res.Judge())
	if judged == nil && status != 0 {
		judged = fmt.Errorf("every test passed, but a binary's status was %d", status)
	}
	fmt.Printf("kernel %s: ready in %.0f s, tests built in %.0f s, from boot to exit %.0f s; %d planted, %d refused\n", m.Package, prepared.Seconds(), built.Seconds(),
		(time.Since(began) - prepared - built).Seconds(), len(suiteOf(o).plants), refused)
	fmt.Printf("%d passed, %d failed, %d skipped\n", len(res.Passed), len(res.Failed), len(res.Skipped))
	return judged
}
