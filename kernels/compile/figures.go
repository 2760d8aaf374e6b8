package compile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// ErrFigures is wrapped where a kernel spills or takes other resources than recorded.
var ErrFigures = errors.New("figures")

// Figure is what one kernel takes on one architecture.
type Figure struct {
	Kernel    string `json:"kernel"`
	Arch      string `json:"arch"`
	Registers int    `json:"registers"` // of a thread; AMD: vector registers
	Spills    int    `json:"spills"`    // NVIDIA: bytes stored and loaded; AMD: registers
	Stack     int    `json:"stack"`     // bytes of a thread
	Shared    int    `json:"shared"`    // bytes of a block
}

// Record is figures.json: what was measured with which compilers.
type Record struct {
	Nvcc    string   `json:"nvcc"`
	Hipcc   string   `json:"hipcc"`
	Spill   []string `json:"may_spill"` // "kernel arch", each with its reason in kernels/README.md
	Figures []Figure `json:"figures"`
}

// LoadRecord reads figures.json.
func LoadRecord(path string) (r Record, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(b, &r)
}

// Text is the file.
func (r Record) Text() ([]byte, error) {
	lines := make([]string, len(r.Figures))
	for i, f := range r.Figures {
		b, err := json.Marshal(f)
		if err != nil {
			return nil, err
		}
		lines[i] = "    " + string(b)
	}
	spill, err := json.Marshal(append([]string{}, r.Spill...))
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "{\n  \"nvcc\": %q,\n  \"hipcc\": %q,\n  \"may_spill\": %s,\n  \"figures\": [\n%s\n  ]\n}\n", r.Nvcc, r.Hipcc, spill, strings.Join(lines, ",\n")), nil
}

// Spilling refuses figures with spills or a stack, unless the record lists them: local memory is the device's main memory, and these
// kernels are to run at its speed.
func (r Record) Spilling(now []Figure) (bad error) {
	for _, f := range now {
		if (f.Spills > 0 || f.Stack > 0) && !slices.Contains(r.Spill, f.Kernel+" "+f.Arch) {
			bad = errors.Join(bad, fmt.Errorf("%w: %s for %s spills %d, stack %d bytes", ErrFigures, f.Kernel, f.Arch, f.Spills, f.Stack))
		}
	}
	return bad
}

// Drift refuses figures that differ from the record, that it lacks, and recorded ones of arch that are missing now. Figures belong to a
// compiler: those of another version are not compared by callers.
func (r Record) Drift(now []Figure, arch []string) (bad error) {
	old := map[string]Figure{}
	for _, f := range r.Figures {
		if slices.Contains(arch, f.Arch) {
			old[f.Kernel+" "+f.Arch] = f
		}
	}
	for _, f := range now {
		key := f.Kernel + " " + f.Arch
		was, ok := old[key]
		delete(old, key)
		switch {
		case !ok:
			bad = errors.Join(bad, fmt.Errorf("%w: %s is not recorded", ErrFigures, key))
		case was != f:
			bad = errors.Join(bad, fmt.Errorf("%w: %s: %d registers, %d spills, %d stack, %d shared; recorded %d, %d, %d, %d", ErrFigures, key,
				f.Registers, f.Spills, f.Stack, f.Shared, was.Registers, was.Spills, was.Stack, was.Shared))
		}
	}
	for key := range old {
		bad = errors.Join(bad, fmt.Errorf("%w: %s is recorded and was not compiled", ErrFigures, key))
	}
	return bad
}
