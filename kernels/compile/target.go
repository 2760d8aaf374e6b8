package compile

import (
	"fmt"
	"regexp"
	"strconv"
)

// Kind is a form of image.
type Kind string

// Kinds of images.
const (
	PTX   Kind = "ptx"   // NVIDIA's assembler text, which a driver translates for its card
	Cubin Kind = "cubin" // machine code of one NVIDIA architecture
	Hsaco Kind = "hsaco" // machine code of one AMD architecture
)

// Target is an architecture and the form of its image.
type Target struct {
	Arch string
	Kind Kind
}

// Nvidia are the targets of NVIDIA's compiler. PTX of the oldest serves every later card that has no cubin.
func Nvidia() []Target {
	return []Target{{"compute_80", PTX}, {"sm_80", Cubin}, {"sm_90", Cubin}, {"sm_100", Cubin}}
}

// AMD are the targets of AMD's. Debian's clang 15 does not know gfx942 (MI300X).
func AMD() []Target { return []Target{{"gfx90a", Hsaco}} }

// Compilers are paths; one that is empty is not there.
type Compilers struct {
	Nvcc, NvccVersion   string
	Hipcc, HipccVersion string
}

// command is what compiles for t; the output and the source's name follow it.
func (c Compilers) command(t Target) (string, []string) {
	switch t.Kind {
	case PTX:
		return c.Nvcc, []string{"-std=c++17", "-O3", "-ptx", "-arch=" + t.Arch}
	case Cubin:
		return c.Nvcc, []string{"-std=c++17", "-O3", "-cubin", "-arch=" + t.Arch, "-Xptxas=-v"}
	}
	return c.Hipcc, []string{"-std=c++17", "-O3", "-c", "-x", "hip", "--offload-arch=" + t.Arch, "--cuda-device-only", "--no-gpu-bundle-output",
		"-Rpass-analysis=kernel-resource-usage"}
}

func (c Compilers) version(t Target) string {
	if t.Kind == Hsaco {
		return c.HipccVersion
	}
	return c.NvccVersion
}

// What the compilers print of a kernel: NVIDIA's "Used 120 registers" and the like, AMD's remarks.
var (
	nvidiaEntry = regexp.MustCompile(`Compiling entry function '(\w+)' for '(\w+)'`)
	nvidiaStack = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
	nvidiaUsed  = regexp.MustCompile(`Used (\d+) registers`)
	nvidiaSmem  = regexp.MustCompile(`, (\d+) bytes smem`)
	amdEntry    = regexp.MustCompile(`Function Name: (\w+)`)
	amdVector   = regexp.MustCompile(`remark:\s+VGPRs: (\d+)`)
	amdScratch  = regexp.MustCompile(`ScratchSize \[bytes/lane\]: (\d+)`)
	amdScalars  = regexp.MustCompile(`SGPRs Spill: (\d+)`)
	amdVectors  = regexp.MustCompile(`VGPRs Spill: (\d+)`)
	amdShared   = regexp.MustCompile(`LDS Size \[bytes/block\]: (\d+)`)
)

// figure reads what the compiler said. A line that is missing is an error: a compiler that says nothing spills unseen.
func (t Target) figure(kernel, said string) (Figure, error) {
	f := Figure{Kernel: kernel, Arch: t.Arch}
	read := reader{said: said}
	if t.Kind == Hsaco {
		read.name(amdEntry, kernel)
		f.Registers, f.Stack = read.number(amdVector, 1), read.number(amdScratch, 1)
		f.Spills = read.number(amdScalars, 1) + read.number(amdVectors, 1)
		f.Shared = read.number(amdShared, 1)
	} else {
		read.name(nvidiaEntry, kernel)
		f.Registers, f.Stack = read.number(nvidiaUsed, 1), read.number(nvidiaStack, 1)
		f.Spills = read.number(nvidiaStack, 2) + read.number(nvidiaStack, 3)
		if nvidiaSmem.MatchString(said) { // not printed where there is none
			f.Shared = read.number(nvidiaSmem, 1)
		}
	}
	if read.err != nil {
		return f, fmt.Errorf("%s for %s: %w", kernel, t.Arch, read.err)
	}
	return f, nil
}

// reader finds numbers in what a compiler said; the first error stays.
type reader struct {
	said string
	err  error
}

func (r *reader) find(re *regexp.Regexp) []string {
	all := re.FindAllStringSubmatch(r.said, -1)
	if len(all) != 1 {
		if r.err == nil {
			r.err = fmt.Errorf("the compiler's words have %d of %q", len(all), re)
		}
		return nil
	}
	return all[0]
}

func (r *reader) name(re *regexp.Regexp, want string) {
	if m := r.find(re); m != nil && m[1] != want && r.err == nil {
		r.err = fmt.Errorf("the compiler speaks of %s", m[1])
	}
}

func (r *reader) number(re *regexp.Regexp, group int) int {
	m := r.find(re)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[group])
	if err != nil && r.err == nil {
		r.err = err
	}
	return n
}
