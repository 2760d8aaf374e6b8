package gpucheck

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kvfence/kernels"
	"kvfence/kernels/check"
)

// Size is how much a section does.
type Size struct {
	Cases   int      // random cases of each kernel
	Bytes   uint64   // pages of a bandwidth figure
	Repeats int      // timed runs of a figure
	Entries []uint32 // block-table entries of a step
	Pages   uint32   // shared between two processes, and of each side of the guards' comparison
	Rounds  int      // of guards on against off
}

// Full is for a card; Dry for the dry run, where a kernel of the emulation takes a million times as long.
func Full() Size {
	return Size{200, 1 << 30, 21, []uint32{32 << 10, 256 << 10, 1 << 20}, 4096, 21}
}

// Dry is small enough for a few seconds.
func Dry() Size { return Size{2, 1 << 19, 3, []uint32{64, 300}, 3, 21} }

// section is one measurement in a process of its own: a card that a broken kernel has spoilt is spoilt for this process only.
type section struct {
	name  string
	about string
	share time.Duration // at most, of the whole check's time
	run   func(ctx context.Context, b *bench, s Size, r *Result)
}

// sections in their order; sanitizer runs section kernels again under another program and has no body.
func sections() []section {
	return []section{
		{"kernels", "kernels against the Go reference, random cases", 90 * time.Second, runKernels},
		{"memcheck", "the same under compute-sanitizer's memcheck", 90 * time.Second, nil},
		{"racecheck", "the same under compute-sanitizer's racecheck", 90 * time.Second, nil},
		{"bandwidth", "each kernel's share of the measured copy bandwidth", 60 * time.Second, runBandwidth},
		{"verify", "tags of a step's block table, plain and as a graph", 45 * time.Second, runVerify},
		{"processes", "decode copies from pages that another process exported", 30 * time.Second, runProcesses},
		{"guards", "digest, tags and their check against a bare copy", 45 * time.Second, runGuards},
	}
}

// runKernels is the emulation's comparison on the card.
func runKernels(ctx context.Context, b *bench, s Size, r *Result) {
	for seed := range s.Cases {
		for _, k := range kernels.Names() {
			if ctx.Err() != nil {
				r.Notes = append(r.Notes, fmt.Sprintf("ended by its limit before case %d of %d", seed, s.Cases))
				return
			}
			if err := check.All()[k](b, check.NewRandom(uint64(seed)), seed%4 == 3); err != nil {
				r.fail(fmt.Errorf("%s, case %d: %w", k, seed, err))
				return // the context may be spoilt
			}
			r.Checks++
		}
	}
}

// Names of the sections.
func Names() (out []string) {
	for _, s := range sections() {
		out = append(out, s.name)
	}
	return out
}

func find(name string) (section, error) {
	i := slices.IndexFunc(sections(), func(s section) bool { return s.name == name })
	if i < 0 {
		return section{}, fmt.Errorf("%w: no section %q", ErrCheck, name)
	}
	return sections()[i], nil
}
