package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"kvfence/kernels"
	"kvfence/kernels/compile"
	"kvfence/kernels/images"
)

// errPTX says that the repository's PTX is not of its sources.
var errPTX = errors.New("the PTX in kernels/images is not what these sources give: go run ./impl/cmd/kernels -write")

// compile makes all images of a compiler's targets and books each, its figures and its comparison with the record.
func (w *work) compile(ctx context.Context, c compile.Compilers, targets []compile.Target) {
	job := compile.Job{Compilers: c, Cache: filepath.Join(w.root, "build", "kernels", "compiled"), Kernels: kernels.Names(), Targets: targets}
	made, err := job.All(ctx)
	if err != nil {
		w.book("compile", err)
		return
	}
	w.passed += len(made)
	var arch []string
	for _, t := range targets {
		arch = append(arch, t.Arch)
	}
	var now []compile.Figure
	for _, m := range made {
		if m.Target.Kind != compile.PTX {
			now = append(now, m.Figure)
		}
	}
	w.measure.Figures = append(w.measure.Figures, now...)
	w.book("spills", w.record.Spilling(now))
	if !w.write {
		w.drift(c, targets, now, arch)
	}
	if targets[0].Kind == compile.PTX {
		w.book("images", w.keep(made))
	}
}

// drift compares with the record, where it is of the same compiler.
func (w *work) drift(c compile.Compilers, targets []compile.Target, now []compile.Figure, arch []string) {
	was, is := w.record.Nvcc, c.NvccVersion
	if targets[0].Kind == compile.Hsaco {
		was, is = w.record.Hipcc, c.HipccVersion
	}
	if was != is {
		fmt.Printf("figures not compared: recorded with %s, compiled with %s\n", was, is)
		w.skipped++
		return
	}
	w.book("drift", w.record.Drift(now, arch))
}

// keep compares the PTX with the repository's, or writes it, and puts the cubins where the next build finds them.
func (w *work) keep(made []compile.Image) error {
	dir := filepath.Join(w.root, "kernels", "images")
	sum, err := images.SourceSum()
	if err != nil {
		return err
	}
	// Whoever builds while cubins are exchanged must not take old ones for new.
	if err := os.Remove(filepath.Join(dir, "cubin", "sources")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var stale error
	for _, m := range made {
		base := strings.TrimPrefix(m.Kernel, "kvf_")
		switch m.Target.Kind {
		case compile.PTX:
			path := filepath.Join(dir, "ptx", base+".ptx")
			if w.write {
				err = os.WriteFile(path, m.Bytes, 0o644)
			} else if old, readErr := os.ReadFile(path); readErr != nil || !bytes.Equal(old, m.Bytes) {
				stale = errors.Join(stale, fmt.Errorf("%s: %w", path, errPTX))
			}
		case compile.Cubin:
			err = os.WriteFile(filepath.Join(dir, "cubin", base+"."+m.Target.Arch+".cubin"), m.Bytes, 0o644)
		}
		if err != nil {
			return err
		}
	}
	if stale != nil {
		return stale
	}
	return os.WriteFile(filepath.Join(dir, "cubin", "sources"), []byte(sum+"\n"), 0o644)
}

// table prints the figures: registers of a thread and shared bytes of a block by architecture.
func (w *work) table() {
	byKernel := map[string][]string{}
	for _, f := range w.measure.Figures {
		byKernel[f.Kernel] = append(byKernel[f.Kernel], fmt.Sprintf("%s %3d regs %5d shared %d spills", f.Arch, f.Registers, f.Shared, f.Spills))
	}
	for _, k := range kernels.Names() {
		fmt.Printf("%-14s %s\n", k, strings.Join(byKernel[k], " | "))
	}
}
