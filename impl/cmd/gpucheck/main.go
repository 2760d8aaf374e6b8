// Command gpucheck runs the GPU check (impl/gpucheck) on the machine's first card and writes the page docs/gpu/CHIP-DATE.md. It builds nothing
// on a machine with a GPU; with -dry it builds a fake driver and runs every section against it, and the page goes nowhere but -out.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"kvfence/impl/device/cuda/driver/fake"
	"kvfence/impl/gpucheck"
	"kvfence/kernels/emulation"
)

func main() {
	is, err := gpucheck.Role(os.Stdout)
	if !is && err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = run(ctx, os.Args[1:])
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "gpucheck:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o := gpucheck.Options{Out: os.Stdout}
	f := flag.NewFlagSet("gpucheck", flag.ContinueOnError)
	out := f.String("out", "", "folder for the page; default docs/gpu, with -dry none")
	only := f.String("only", "", "sections, with spaces between: "+strings.Join(gpucheck.Names(), " "))
	f.StringVar(&o.Driver, "driver", "", "driver library, instead of the machine's")
	f.BoolVar(&o.Dry, "dry", false, "without a GPU: every section against a fake driver")
	f.DurationVar(&o.Limit, "limit", 7*time.Minute+30*time.Second, "limit of the whole check")
	f.StringVar(&o.Sanitizer, "sanitizer", "", "compute-sanitizer, instead of the one in PATH")
	if err := f.Parse(args); err != nil {
		return err
	}
	o.Only = strings.Fields(*only)
	switch {
	case o.Dry:
		dir, err := os.MkdirTemp("", "kvfence-gpucheck-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if o.Driver, err = fake.Build(dir, emulation.Source{Warp: 32}); err != nil {
			return err
		}
	case *out == "":
		*out = filepath.Join("docs", "gpu")
	}
	return finish(gpucheck.Run(ctx, o), o, *out)
}

// finish writes the page, if anywhere, and judges.
func finish(results []gpucheck.Result, o gpucheck.Options, out string) error {
	now := time.Now()
	page := gpucheck.Report(results, o.Dry, now, o.Limit)
	if out == "" || !gpucheck.Found(results) { // docs/gpu has pages of cards only
		fmt.Print(page)
	} else {
		if err := os.MkdirAll(out, 0o755); err != nil {
			return err
		}
		path := filepath.Join(out, gpucheck.FileName(results, now))
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			return err
		}
		fmt.Println(path)
	}
	if gpucheck.Failed(results) {
		return errors.New("a section failed")
	}
	return nil
}
