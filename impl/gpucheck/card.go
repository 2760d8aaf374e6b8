package gpucheck

import (
	"encoding/binary"
	"errors"

	"kvfence/kernels"
	"kvfence/kernels/emulation"
	"kvfence/kernels/images"
)

// bench is a card with the kernels on it and the memory of one case. It is a check.Device.
type bench struct {
	raw
	blocks []kernels.Addr
}

// open takes the card and loads every kernel.
func open(library string) (*bench, error) {
	c, err := openRaw(library)
	if err != nil {
		return nil, err
	}
	b := &bench{raw: c}
	for _, k := range kernels.Names() {
		image, err := images.For(images.Files, k, c.Info().Major, c.Info().Minor)
		if err != nil {
			return nil, err
		}
		if err := c.Load(image.Bytes, k); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// imageOf is the kind of image that the card runs, for the report.
func (b *bench) imageOf() string {
	i, err := images.For(images.Files, kernels.NameDigest, b.Info().Major, b.Info().Minor)
	if err != nil {
		return err.Error()
	}
	return i.Name
}

// Alloc implements check.Device. What a kernel may only read cannot be told to a card.
func (b *bench) Alloc(size, skew uint64, _ bool) (kernels.Addr, error) {
	a, err := b.raw.Alloc(max(size, 1) + skew)
	if err != nil {
		return 0, err
	}
	b.blocks = append(b.blocks, a)
	return a + kernels.Addr(skew), nil
}

// Free implements check.Device.
func (b *bench) Free() (err error) {
	for _, a := range b.blocks {
		err = errors.Join(err, b.raw.Free(a))
	}
	b.blocks = nil
	return err
}

// Watch implements check.Device: a card cannot be watched.
func (b *bench) Watch(kernels.Addr, uint64, bool, ...emulation.Watched) error { return nil }

// Unwatch implements check.Device.
func (b *bench) Unwatch() error { return nil }

// Launch implements check.Device: it waits for the kernel.
func (b *bench) Launch(name string, grid uint32, args any, _ uint64) (c emulation.Counts, err error) {
	if err = b.queue(name, grid, args); err == nil {
		err = b.Sync()
	}
	return c, err
}

// queue launches without waiting.
func (b *bench) queue(name string, grid uint32, args any) error {
	p, err := binary.Append(nil, binary.LittleEndian, args)
	if err != nil {
		return err
	}
	return b.raw.Launch(name, grid, p)
}

// table is memory with the encoding of v.
func (b *bench) table(v any) (kernels.Addr, error) {
	p, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		return 0, err
	}
	a, err := b.Alloc(uint64(len(p)), 0, true)
	if err != nil {
		return 0, err
	}
	return a, b.Write(a, p)
}

// time is how many milliseconds of the stream each of n runs of work took.
func (b *bench) time(n int, work func() error) ([]float64, error) {
	from, err := b.Event()
	if err != nil {
		return nil, err
	}
	to, err := b.Event()
	if err != nil {
		return nil, err
	}
	var out []float64
	for range n {
		if err := errors.Join(b.Record(from), work(), b.Record(to)); err != nil {
			return nil, err
		}
		ms, err := b.Elapsed(from, to)
		if err != nil {
			return nil, err
		}
		out = append(out, ms)
	}
	return out, nil
}
