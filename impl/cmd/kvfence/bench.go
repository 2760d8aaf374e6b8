//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"kvfence/impl/bench"
)

// benchCommand measures transports and the whole path between two processes.
func benchCommand() *cobra.Command {
	o := bench.Defaults()
	var suite, shapes, file string
	var quick, source bool
	cmd := &cobra.Command{Use: "bench", Short: "Measure transports and the whole path between two processes, beside the machine's own limits", Args: cobra.NoArgs}
	f := cmd.Flags()
	f.StringVar(&suite, "suite", "all", "tcp, tls, shm with commas between, or all")
	f.StringVar(&shapes, "shapes", "", "page size x pages, like 256Kx16,1Mx256; default: 4K, 64K, 256K, 1M by 1, 16, 256")
	f.IntVar(&o.Repeats, "repeats", o.Repeats, "rounds at least")
	f.IntVar(&o.MaxPairs, "max-pairs", o.MaxPairs, "rounds at most")
	f.Float64Var(&o.Width, "width", o.Width, "half-width of the intervals of all ratios at which the rounds end")
	f.DurationVar(&o.Bound, "bound", o.Bound, "time for the rounds of one shape; the least number of rounds is made all the same")
	f.StringVar(&o.Congestion, "congestion-control", o.Congestion, "of all sockets that carry pages, theirs and ours")
	f.IntVar(&o.Streams, "streams", o.Streams, "data streams of our links; 0: as many as a node has without configuration")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "of page lists and of the order within rounds")
	f.StringVar(&file, "json", "", "write the report to this file, too")
	f.BoolVar(&quick, "quick", false, "only check that everything runs and verifies: small pools, two shapes, two rounds")
	f.BoolVar(&source, "source", false, "be the second process")
	_ = f.MarkHidden("source") // it exists
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if source {
			return withCode(exitFailed, bench.Source(ctx, os.Stdin, os.Stdout, os.Stderr))
		}
		var err, err2 error
		o.Suites, err = bench.ParseSuites(suite)
		if shapes != "" {
			o.Shapes, err2 = bench.ParseShapes(shapes)
		}
		if quick {
			o.Quicken()
		}
		if err := errors.Join(err, err2); err != nil {
			return withCode(exitUsage, err)
		}
		o.Version, o.Progress = buildVersion(), os.Stdout
		return runBench(ctx, o, file)
	}
	return cmd
}

func runBench(ctx context.Context, o bench.Options, file string) error {
	exe, err := bench.Executable()
	if err != nil {
		return withCode(exitFailed, err)
	}
	if file != "" { // before an hour of measuring, not after it
		f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return withCode(exitUsage, fmt.Errorf("--json: %w", err))
		}
		if err := f.Close(); err != nil {
			return withCode(exitFailed, err)
		}
	}
	r, err := bench.Run(ctx, o, os.Stderr, exe, "bench", "--source")
	if errors.Is(err, bench.ErrOptions) {
		return withCode(exitUsage, err)
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("interrupted: %w", ctx.Err())
	}
	if r != nil && file != "" {
		b, jerr := json.MarshalIndent(r, "", " ")
		if jerr == nil {
			jerr = os.WriteFile(file, append(b, '\n'), 0o644)
		}
		err = errors.Join(err, jerr)
	}
	return withCode(exitFailed, err)
}

// buildVersion is the commit that this program was built from, as far as it is known.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	v := map[string]string{}
	for _, s := range info.Settings {
		v[s.Key] = s.Value
	}
	rev := v["vcs.revision"]
	if len(rev) > 12 {
		rev = rev[:12]
	}
	if v["vcs.modified"] == "true" {
		rev += "+"
	}
	if rev == "" {
		rev = info.Main.Version
	}
	return rev
}
