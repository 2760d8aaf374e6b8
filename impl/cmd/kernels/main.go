// Command kernels compiles the GPU kernels for every target, compares what they take with the record, and keeps the images where builds take
// them from (kernels/images).
//
//	go run ./impl/cmd/kernels            compile, compare figures and PTX with what is kept; cubins for the next build
//	go run ./impl/cmd/kernels -write     the same, and keep figures and PTX as they are now
//
// It runs no kernel: the tests of ./kernels do, on the CPU. It exits with 0 although a compiler is missing, and says so in its last line; with
// -require none may be missing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"kvfence/kernels"
	"kvfence/kernels/compile"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var w work
	f := flag.NewFlagSet("kernels", flag.ContinueOnError)
	f.BoolVar(&w.write, "write", false, "keep figures and PTX as they are now")
	f.BoolVar(&w.require, "require", false, "fail where a compiler is missing")
	f.StringVar(&w.root, "root", ".", "root of the repository")
	err := f.Parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = w.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

// work is one run; it counts what it compared.
type work struct {
	write, require  bool
	root            string
	passed, failed  int
	skipped         int
	record, measure compile.Record
}

// book counts one comparison and prints what is wrong with it.
func (w *work) book(what string, err error) {
	if err == nil {
		w.passed++
		return
	}
	w.failed++
	fmt.Printf("%s: %v\n", what, err)
}

func (w *work) run(ctx context.Context) error {
	began := time.Now()
	var err error
	path := filepath.Join(w.root, "kernels", "compile", "figures.json")
	if w.record, err = compile.LoadRecord(path); err != nil && !w.write {
		return err
	}
	var c compile.Compilers
	ways := []struct {
		name    string
		find    func() error
		targets []compile.Target
	}{
		{"nvcc", func() error {
			return c.FindNvcc(ctx, filepath.Join(w.root, "build", "cuda"), filepath.Join(w.root, ".ci", "cuda.txt"))
		}, compile.Nvidia()},
		{"hipcc", func() error { return c.FindHipcc(ctx) }, compile.AMD()},
	}
	for _, way := range ways {
		if err := way.find(); err != nil {
			if w.require || w.write || !errors.Is(err, compile.ErrNoCompiler) {
				return err
			}
			w.skipped += len(kernels.Names()) * len(way.targets)
			fmt.Println(err)
			continue
		}
		w.compile(ctx, c, way.targets)
	}
	w.measure.Nvcc, w.measure.Hipcc, w.measure.Spill = c.NvccVersion, c.HipccVersion, w.record.Spill
	w.table()
	if w.write && w.failed == 0 {
		text, err := w.measure.Text()
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("nvcc %s, hipcc with clang %s, %.1f s\n", orNone(c.NvccVersion), orNone(c.HipccVersion), time.Since(began).Seconds())
	fmt.Printf("%d passed, %d failed, %d skipped\n", w.passed, w.failed, w.skipped)
	if w.failed > 0 {
		return fmt.Errorf("%d failed", w.failed)
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
