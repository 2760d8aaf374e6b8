//go:build cuda && cgo && linux

package gpucheck

import (
	"errors"
	"fmt"

	"kvfence/impl/device/cuda/driver"
	"kvfence/kernels"
)

// bounceBytes is the pinned memory that writes and reads go through.
const bounceBytes = 1 << 20

// direct is raw by the driver.
type direct struct {
	d      *driver.Driver
	c      *driver.Context
	s      *driver.Stream
	bounce *driver.Pinned
	loaded map[string]driver.Function
}

// openRaw takes the first card. What it makes lasts as long as the process.
func openRaw(library string) (raw, error) {
	d, err := driver.Open(library)
	if err != nil {
		return nil, err
	}
	v, err := d.Device(0)
	if err != nil {
		return nil, err
	}
	c, err := v.Retain()
	if err != nil {
		return nil, err
	}
	r := &direct{d: d, c: c, loaded: map[string]driver.Function{}}
	if r.s, err = c.NewStream(); err != nil {
		return nil, err
	}
	r.bounce, err = c.HostAlloc(bounceBytes)
	return r, err
}

func (r *direct) Info() driver.DeviceInfo { return r.c.Device().DeviceInfo }
func (r *direct) Version() int            { return r.d.Version() }

func (r *direct) Load(image []byte, kernel string) error {
	m, err := r.c.Load(image)
	if err != nil {
		return err
	}
	r.loaded[kernel], err = m.Function(kernel)
	return err
}

func (r *direct) Alloc(n uint64) (kernels.Addr, error) { return r.c.Alloc(n) }
func (r *direct) Free(a kernels.Addr) error            { return errors.Join(r.s.Sync(), r.c.Free(a)) }

func (r *direct) Write(a kernels.Addr, b []byte) error {
	for len(b) > 0 {
		n := copy(r.bounce.Bytes(), b)
		if err := r.s.CopyIn(a, r.bounce, 0, uint64(n)); err != nil {
			return err
		}
		if err := r.s.Sync(); err != nil {
			return err
		}
		a, b = a+kernels.Addr(n), b[n:]
	}
	return nil
}

func (r *direct) Read(a kernels.Addr, b []byte) error {
	for len(b) > 0 {
		n := min(len(b), bounceBytes)
		if err := r.s.CopyOut(r.bounce, 0, a, uint64(n)); err != nil {
			return err
		}
		if err := r.s.Sync(); err != nil {
			return err
		}
		copy(b, r.bounce.Bytes()[:n])
		a, b = a+kernels.Addr(n), b[n:]
	}
	return nil
}

func (r *direct) Copy(to, from kernels.Addr, n uint64) error { return r.s.Copy(to, from, n) }

func (r *direct) Launch(kernel string, grid uint32, args []byte) error {
	return r.s.Launch(r.loaded[kernel], grid, kernels.Threads, args)
}

func (r *direct) Sync() error { return r.s.Sync() }

func (r *direct) Event() (made, error) { return r.c.NewEvent(true) }

func (r *direct) Record(e made) error {
	x, ok := e.(*driver.Event)
	if !ok {
		return fmt.Errorf("%w: %T is no event", ErrCheck, e)
	}
	return x.Record(r.s)
}

func (r *direct) Elapsed(a, b made) (float64, error) {
	from, okA := a.(*driver.Event)
	to, okB := b.(*driver.Event)
	if !okA || !okB {
		return 0, fmt.Errorf("%w: %T and %T are no events", ErrCheck, a, b)
	}
	if err := to.Sync(); err != nil {
		return 0, err
	}
	return driver.Elapsed(from, to)
}

func (r *direct) Capture(launches func() error) (made, error) { return r.s.Capture(launches) }

func (r *direct) Replay(g made) error {
	x, ok := g.(*driver.Graph)
	if !ok {
		return fmt.Errorf("%w: %T is no graph", ErrCheck, g)
	}
	return x.Launch(r.s)
}

func (r *direct) Export(n uint64) (kernels.Addr, uint64, int, error) {
	s, err := r.c.Create(n, false)
	if err != nil {
		return 0, 0, -1, err
	}
	fd, err := s.ExportFD()
	return s.At, s.Bytes, fd, err
}

func (r *direct) Import(fd int, size uint64, access driver.Access) (kernels.Addr, error) {
	s, err := r.c.Import(fd, size, access)
	if err != nil {
		return 0, err
	}
	return s.At, nil
}
