// Package check compares the kernels with the Go reference (impl/device), bit for bit, on any device that can launch them: the emulation,
// with and without planted bugs, and a GPU. Each check draws one random case, launches, and compares all memory that the kernel could
// have reached with what it should hold. It knows no driver and no testing package. Called by kernels' tests, kernels/plants and the GPU
// check. Read next: move.go.
package check

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"kvfence/kernels"
	"kvfence/kernels/emulation"
)

// Device is memory and launches; *emulation.Machine is one. Launch returns when the kernel has ended. Watch and Unwatch may do nothing.
type Device interface {
	Alloc(size, skew uint64, writable bool) (kernels.Addr, error)
	Write(a kernels.Addr, b []byte) error
	Read(a kernels.Addr, b []byte) error
	Free() error
	Watch(trigger kernels.Addr, n uint64, system bool, data ...emulation.Watched) error
	Unwatch() error
	Launch(name string, grid uint32, args any, seed uint64) (emulation.Counts, error)
}

// Draw is where a case comes from: a property test's draws, or Random.
type Draw interface {
	// Int is from lo to hi, both included.
	Int(lo, hi int, what string) int
}

// Random draws from a seed.
type Random struct{ R *rand.Rand }

// NewRandom is the draws of one seed.
func NewRandom(seed uint64) Random { return Random{rand.New(rand.NewPCG(seed, 0))} }

// Int implements Draw.
func (r Random) Int(lo, hi int, _ string) int { return lo + r.R.IntN(hi-lo+1) }

// ErrDiffers is wrapped where a kernel left something else than the reference.
var ErrDiffers = errors.New("differs from the reference")

// Check is one case of one kernel. big allows cases that take long in the emulation.
type Check func(d Device, r Draw, big bool) error

// All lists the checks by kernel.
func All() map[string]Check {
	return map[string]Check{
		kernels.NameDigest: Digest, kernels.NameGather: Gather, kernels.NameScatter: Scatter, kernels.NameConvert: Convert,
		kernels.NameTagVerify: Verify, kernels.NameScrub: Scrub, kernels.NameTagPut: TagPut,
	}
}

// region is memory of the device with what it must hold after the launch; want nil: scratch, not compared.
type region struct {
	name string
	at   kernels.Addr
	want []byte
}

// bench is one case on a device. The first error stays; later calls do nothing.
type bench struct {
	d       Device
	r       Draw
	content *rand.Rand
	odd     bool // sizes, strides or addresses that are no multiples of 16
	regions []region
	counts  emulation.Counts
	err     error
}

func newBench(d Device, r Draw) *bench {
	return &bench{d: d, r: r, content: rand.New(rand.NewPCG(uint64(r.Int(0, 1<<30, "content")), 1))}
}

func (b *bench) bytes(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(b.content.Uint32())
	}
	return p
}

func (b *bench) chance(of int, what string) bool { return b.r.Int(1, of, what) == 1 }

// put is memory with these bytes at the start; what it must hold at the end is want, or the same.
func (b *bench) put(name string, start []byte, skew uint64, writable bool) kernels.Addr {
	if b.err != nil {
		return 0
	}
	var a kernels.Addr
	if a, b.err = b.d.Alloc(uint64(len(start)), skew, writable); b.err != nil {
		return 0
	}
	b.err = b.d.Write(a, start)
	b.regions = append(b.regions, region{name, a, bytes.Clone(start)})
	return a
}

// table is read-only memory with the encoding of v.
func (b *bench) table(name string, v any) kernels.Addr {
	p, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil && b.err == nil {
		b.err = err
	}
	return b.put(name, p, 0, false)
}

// expect replaces what a region must hold; nil: anything.
func (b *bench) expect(name string, want []byte) {
	for i := range b.regions {
		if b.regions[i].name == name {
			b.regions[i].want = want
		}
	}
}

func (b *bench) watch(trigger kernels.Addr, n uint64, system bool, data ...emulation.Watched) {
	if b.err == nil {
		b.err = b.d.Watch(trigger, n, system, data...)
	}
}

func (b *bench) launch(name string, grid uint32, args any) {
	if b.err != nil || grid == 0 {
		return
	}
	b.counts, b.err = b.d.Launch(name, grid, args, uint64(b.r.Int(0, 1<<30, "schedule")))
}

// compare reads every region.
func (b *bench) compare() {
	for _, g := range b.regions {
		if b.err != nil || g.want == nil {
			continue
		}
		got := make([]byte, len(g.want))
		if b.err = b.d.Read(g.at, got); b.err != nil {
			return
		}
		for i := range got {
			if got[i] != g.want[i] {
				b.err = fmt.Errorf("%w: byte %d of %s is %#02x, not %#02x", ErrDiffers, i, g.name, got[i], g.want[i])
				return
			}
		}
	}
}

// end frees everything and returns the first error.
func (b *bench) end() error {
	return errors.Join(b.err, b.d.Free())
}

func encode(v any) []byte {
	p, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil { // all types here have fixed sizes
		return nil
	}
	return p
}
