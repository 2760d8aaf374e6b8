package kernels_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/kernels"
	"kvfence/kernels/check"
	"kvfence/kernels/emulation"
)

// witness notes which situations launches came through.
type witness struct {
	*emulation.Machine
	seen map[string]bool
}

func (w *witness) note(cond bool, what string) {
	if cond {
		w.seen[what] = true
	}
}

// Launch implements check.Device.
func (w *witness) Launch(name string, grid uint32, args any, seed uint64) (emulation.Counts, error) {
	c, err := w.Machine.Launch(name, grid, args, seed)
	if err != nil {
		return c, err
	}
	switch a := args.(type) {
	case *kernels.MoveArgs:
		return c, w.move(a, c)
	case *kernels.VerifyArgs:
		return c, w.verify(a, grid)
	}
	return c, nil
}

func (w *witness) move(a *kernels.MoveArgs, c emulation.Counts) error {
	w.note(a.Slices > 1, "several slices")
	w.note(a.NItems > 1, "several items")
	w.note(a.Src.Layers != 0 || a.Dst.Layers != 0, "layers apart")
	w.note(c.WideStores >= kernels.Chunk/16, "a chunk through registers")
	b := make([]byte, 16*a.NItems)
	if err := w.Read(a.Results, b); err != nil {
		return err
	}
	for ; len(b) > 0; b = b[16:] {
		w.note(true, fmt.Sprintf("item state %d", binary.LittleEndian.Uint32(b[8:])))
	}
	cuts := make([]byte, binary.Size(kernels.Cut{})*int(a.NCuts))
	if err := w.Read(a.Cuts, cuts); err != nil {
		return err
	}
	for len(cuts) > 0 {
		var v kernels.Cut
		n, err := binary.Decode(cuts, binary.LittleEndian, &v)
		if err != nil {
			return err
		}
		cuts = cuts[n:]
		w.note(v.Used == 0, "no bytes")
		w.note(v.Used > 0 && v.Used <= 16, "up to 16 bytes")
		w.note(v.Used > 128 && v.Used <= 240, "129 to 240 bytes")
		w.note(v.Used > 27*kernels.Chunk, "more values than are hashed short")
		w.note(v.N[2].D > 1, "three dimensions")
		w.note(v.Flags&kernels.CutAligned == 0, "bytes one by one")
	}
	return nil
}

func (w *witness) verify(a *kernels.VerifyArgs, grid uint32) error {
	b := make([]byte, binary.Size(kernels.Report{}))
	if err := w.Read(a.Report, b); err != nil {
		return err
	}
	var r kernels.Report
	if _, err := binary.Decode(b, binary.LittleEndian, &r); err != nil {
		return err
	}
	w.note(grid > 1, "several blocks")
	w.note(r.Step > 1, "a second step")
	w.note(r.Checked > 0 && r.Bad == 0, "all good")
	w.note(r.Bad > kernels.MaxOffenders, "more offenders than fit")
	w.note(grid > 1 && r.Kept > 1 && r.Offenders[0].Entry/kernels.VerifyEntries != r.Offenders[r.Kept-1].Entry/kernels.VerifyEntries, "offenders of two blocks")
	for s, n := range r.States {
		w.note(n > 0, fmt.Sprintf("tag state %d", s))
	}
	return nil
}

// The comparisons would say nothing about what no case reaches.
func TestKernels_Cases_ReachEachSituation(t *testing.T) {
	want := map[string][]string{
		kernels.NameDigest:    {"several slices", "several items", "layers apart", "item state 1", "item state 3", "no bytes", "up to 16 bytes", "129 to 240 bytes", "more values than are hashed short", "three dimensions", "bytes one by one"},
		kernels.NameGather:    {"several slices", "layers apart", "a chunk through registers", "item state 1", "item state 3", "bytes one by one"},
		kernels.NameScatter:   {"several slices", "layers apart", "a chunk through registers", "item state 1", "item state 2", "item state 3", "bytes one by one"},
		kernels.NameConvert:   {"several slices", "layers apart", "a chunk through registers", "item state 1", "item state 2", "item state 3", "three dimensions"},
		kernels.NameTagVerify: {"several blocks", "a second step", "all good", "more offenders than fit", "offenders of two blocks", "tag state 0", "tag state 1", "tag state 2", "tag state 3", "tag state 4"},
	}
	for name, situations := range want {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &witness{start(t, 32), map[string]bool{}}
			for seed := range uint64(400) {
				require.NoError(t, check.All()[name](w, check.NewRandom(seed), seed%8 == 7))
			}
			for _, s := range situations {
				require.True(t, w.seen[s], "no case of 400 has %s; seen %v", s, w.seen)
			}
		})
	}
}
