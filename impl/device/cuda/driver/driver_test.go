//go:build cuda

package driver_test

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device/cuda/driver"
	"kvfence/impl/device/cuda/driver/fake"
	"kvfence/kernels"
	"kvfence/kernels/emulation"
	"kvfence/kernels/images"
)

// rig is a fresh copy of the fake driver with a context of device 0.
type rig struct {
	*driver.Context
	t       *testing.T
	library string
	d       *driver.Driver
	fake    *fake.Control
}

func open(t *testing.T, seed uint64) *rig {
	t.Helper()
	library, err := fake.Build(t.TempDir(), emulation.Source{Warp: 32})
	if errors.Is(err, emulation.ErrNoCompiler) {
		t.Skip(err)
	}
	require.NoError(t, err)
	r := &rig{t: t, library: library}
	r.fake, err = fake.Load(library)
	require.NoError(t, err)
	r.fake.Seed(seed)
	r.d, err = driver.Open(library)
	require.NoError(t, err)
	r.Context = r.context(0)
	return r
}

func (r *rig) context(ordinal int) *driver.Context {
	v, err := r.d.Device(ordinal)
	require.NoError(r.t, err)
	c, err := v.Retain()
	require.NoError(r.t, err)
	return c
}

// clean is the end of a test that broke no contract: all is given back, and the driver has nothing to say.
func (r *rig) clean() {
	r.t.Helper()
	require.NoError(r.t, r.Release())
	require.Empty(r.t, r.fake.Violations())
}

func (r *rig) alloc(n uint64) kernels.Addr {
	a, err := r.Alloc(n)
	require.NoError(r.t, err)
	return a
}

func (r *rig) pinned(n uint64) *driver.Pinned {
	p, err := r.HostAlloc(n)
	require.NoError(r.t, err)
	return p
}

func (r *rig) stream() *driver.Stream {
	s, err := r.NewStream()
	require.NoError(r.t, err)
	return s
}

func (r *rig) event(timing bool) *driver.Event {
	e, err := r.NewEvent(timing)
	require.NoError(r.t, err)
	return e
}

// scrub is a loaded kernel, and put its launch's bytes: n bytes of a become the pattern.
func (r *rig) scrub() (*driver.Module, driver.Function) {
	image, err := images.For(images.Files, kernels.NameScrub, 9, 0)
	require.NoError(r.t, err)
	m, err := r.Load(image.Bytes)
	require.NoError(r.t, err)
	f, err := m.Function(kernels.NameScrub)
	require.NoError(r.t, err)
	require.EqualValues(r.t, binary.Size(kernels.ScrubArgs{}), f.Bytes)
	return m, f
}

func encode(t *testing.T, v any) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	require.NoError(t, err)
	return b
}

// scrubbing are the arguments that fill n bytes at a, by a list of one page in device memory.
func scrubbing(a, list kernels.Addr, n uint64, pattern uint32) kernels.ScrubArgs {
	s := kernels.ScrubArgs{Pages: kernels.NewView(a, n, 1), List: list, SpanBytes: n, N: 1, Spans: 1, Pattern: pattern}
	s.Place()
	return s
}

func (r *rig) bytes(a kernels.Addr, n int) []byte {
	b := make([]byte, n)
	require.NoError(r.t, r.ReadSync(b, a))
	return b
}

func all(n int, v byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = v
	}
	return b
}

func TestDriver_Devices_AreDescribed(t *testing.T) {
	r := open(t, 0)
	require.Equal(t, 13000, r.d.Version())
	require.Equal(t, 2, r.d.Devices())
	a, b := r.Device().DeviceInfo, driver.DeviceInfo{}
	v, err := r.d.Device(1)
	require.NoError(t, err)
	b = v.DeviceInfo
	require.Equal(t, "fake", a.Name)
	require.Equal(t, [2]int{9, 0}, [2]int{a.Major, a.Minor})
	require.Equal(t, "0000:3b:00.0", a.PCI)
	require.NotEqual(t, a.UUID, b.UUID)
	require.NotEqual(t, a.PCI, b.PCI)
	n, err := v.Attribute(driver.AttrFlushWrites)
	require.NoError(t, err)
	require.Equal(t, driver.FlushHost, n)
	free, total, err := r.Memory()
	require.NoError(t, err)
	require.Equal(t, total, free)
	require.Equal(t, a.Bytes, total)
	_, err = r.d.Device(2)
	require.ErrorIs(t, err, driver.ErrCall)
	r.fake.Forget()
	r.clean()
}

func TestDriver_LibraryThatIsNone_IsNamed(t *testing.T) {
	_, err := driver.Open("/nonexistent/libcuda.so")
	require.ErrorIs(t, err, driver.ErrNoDriver)
	r := open(t, 0)
	_, err = driver.Open(r.library[:len(r.library)-len("libfakecuda.so")] + "libkvfemulation.so")
	require.ErrorIs(t, err, driver.ErrNoDriver)
	require.ErrorContains(t, err, "cuInit")
}

func TestContext_Memory_IsAllocatedSharedAndGivenBack(t *testing.T) {
	r := open(t, 0)
	before, _, err := r.Memory()
	require.NoError(t, err)
	a := r.alloc(1000)
	info, err := r.Pointer(a + 999)
	require.NoError(t, err)
	require.Equal(t, driver.PointerInfo{Known: true, Device: true, Start: uint64(a), Bytes: 1000, Buffer: info.Buffer, Mapped: true, IPC: true}, info)
	info, err = r.Pointer(a + 1000)
	require.NoError(t, err)
	require.Equal(t, driver.PointerInfo{}, info)
	s, err := r.Create(100, true)
	require.NoError(t, err)
	g, err := r.Granularity(true)
	require.NoError(t, err)
	require.Equal(t, g, s.Bytes)
	info, err = r.Pointer(s.At)
	require.NoError(t, err)
	require.True(t, info.FD)
	fd, err := s.ExportFD()
	require.NoError(t, err)
	f := os.NewFile(uintptr(fd), "pages")
	defer f.Close()
	other, err := r.Import(fd, s.Bytes, driver.Read)
	require.NoError(t, err)
	require.NoError(t, r.WriteSync(s.At, []byte("shared")))
	require.NoError(t, r.Sync())
	require.Equal(t, "shared", string(r.bytes(other.At, 6)))
	buf, err := r.DMABuf(s.At, s.Bytes)
	require.NoError(t, err)
	require.NoError(t, os.NewFile(uintptr(buf), "dma-buf").Close())
	require.NoError(t, errors.Join(r.SyncMemops(s.At), r.FlushWrites(driver.ToOwner)))
	require.ErrorIs(t, r.FlushWrites(7), driver.ErrUse)
	require.NoError(t, errors.Join(other.Close(), s.Close(), r.Free(a), s.Close()))
	after, _, err := r.Memory()
	require.NoError(t, err)
	require.Equal(t, before, after)
	r.clean()
}

func TestContext_MoreMemoryThanThereIs_IsRefusedWithNothingDone(t *testing.T) {
	r := open(t, 0)
	r.fake.Memory(0, 5<<20)
	_, err := r.Alloc(6 << 20)
	var e *driver.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, &driver.Error{Call: "cuMemAlloc_v2", Code: driver.OutOfMemory, Name: "CUDA_ERROR_OUT_OF_MEMORY"}, e)
	require.False(t, driver.Sticky(err))
	_, err = r.Create(5<<20, false)
	require.ErrorAs(t, err, &e)
	require.Equal(t, driver.OutOfMemory, e.Code)
	free, _, err := r.Memory()
	require.NoError(t, err)
	require.EqualValues(t, 5<<20, free)
	r.clean()
}

// Any call of Create that fails leaves nothing behind.
func TestShared_EachCallThatFails_IsUndone(t *testing.T) {
	for _, call := range []string{"cuMemGetAllocationGranularity", "cuMemCreate", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"} {
		r := open(t, 0)
		r.fake.Fault(call, 1, driver.OutOfMemory, false)
		_, err := r.Create(100, false)
		require.ErrorContains(t, err, call)
		require.Zero(t, r.fake.FaultsLeft())
		r.clean()
	}
}

func TestPinned_RegisteredAndAllocated_AreReached(t *testing.T) {
	for seed := range uint64(20) {
		r := open(t, seed)
		p, s, a, b := r.pinned(300), r.stream(), r.alloc(300), r.alloc(300)
		clear(p.Bytes())
		copy(p.Bytes(), "some bytes")
		require.NoError(t, errors.Join(s.CopyIn(a, p, 0, 300), s.Copy(b, a, 300), s.CopyOut(p, 100, b, 10), s.Sync()))
		require.Equal(t, "some bytes", string(p.Bytes()[100:110]))
		require.ErrorIs(t, s.CopyIn(a, p, 200, 101), driver.ErrUse)
		require.ErrorIs(t, s.CopyOut(p, 301, a, 0), driver.ErrUse)
		require.NoError(t, errors.Join(s.Fill(a, 7, 10), s.Fill32(a+20, 0x04030201, 2), s.CopyOut(p, 0, a, 28), s.Sync()))
		require.Equal(t, append(all(10, 7), 0), p.Bytes()[:11])
		require.Equal(t, []byte{1, 2, 3, 4, 1, 2, 3, 4}, p.Bytes()[20:28])
		page, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
		require.NoError(t, err)
		q, err := r.HostRegister(page[:300])
		require.NoError(t, err)
		require.NoError(t, errors.Join(s.CopyOut(q, 0, a, 10), s.Sync(), q.Free()))
		require.Equal(t, all(10, 7), page[:10])
		require.NoError(t, syscall.Munmap(page))
		require.NoError(t, errors.Join(p.Free(), r.Free(a), r.Free(b), s.Destroy()))
		require.Nil(t, p.Bytes())
		require.ErrorIs(t, p.Free(), driver.ErrUse)
		r.clean()
	}
}

// Without a wait the host sees what was there before, under each order.
func TestStream_WithoutAWait_ShowsOldBytes(t *testing.T) {
	r := open(t, 0)
	p, s, a := r.pinned(64), r.stream(), r.alloc(64)
	require.NoError(t, errors.Join(s.Fill(a, 1, 64), s.Sync(), s.Fill(a, 2, 64)))
	require.Equal(t, all(64, 1), r.bytes(a, 64), "not waited for")
	require.NoError(t, s.CopyOut(p, 0, a, 64))
	require.NotContains(t, p.Bytes(), byte(2))
	over, err := s.Query()
	require.NoError(t, err)
	for !over {
		over, err = s.Query()
		require.NoError(t, err)
	}
	require.Equal(t, all(64, 2), p.Bytes())
	require.NoError(t, errors.Join(p.Free(), r.Free(a), s.Destroy()))
	r.clean()
}

// A copy from ordinary memory may still be on its way when the call has returned.
func TestContext_WriteSync_IsOrderedWithNoStream(t *testing.T) {
	r := open(t, 0)
	s, a, b := r.stream(), r.alloc(64), r.alloc(64)
	require.NoError(t, errors.Join(s.Fill(a, 1, 64), s.Sync(), r.WriteSync(a, all(64, 2)), s.Copy(b, a, 64), s.Sync()))
	got := make([]byte, 64)
	require.NoError(t, r.ReadSync(got, b))
	require.Equal(t, all(64, 1), got)
	require.NoError(t, errors.Join(r.Free(a), r.Free(b), s.Destroy()))
	r.clean()
}

// Two streams meet at an event; without it, some order shows the old bytes, and some order the new ones.
func TestEvent_BetweenStreams_Orders(t *testing.T) {
	saw := map[byte]int{}
	for seed := range uint64(60) {
		for _, waits := range []bool{true, false} {
			r := open(t, seed)
			x, y, e, p, a, b := r.stream(), r.stream(), r.event(false), r.pinned(64), r.alloc(64), r.alloc(64)
			require.NoError(t, errors.Join(x.Fill(a, 1, 64), x.Sync(), x.Fill(a, 2, 64), e.Record(x)))
			if waits {
				require.NoError(t, y.Wait(e))
			}
			require.NoError(t, errors.Join(y.Copy(b, a, 64), y.CopyOut(p, 0, b, 64), y.Sync()))
			got := p.Bytes()[63]
			if waits {
				require.EqualValues(t, 2, got)
			} else {
				saw[got]++
			}
			require.NoError(t, errors.Join(x.Sync(), p.Free(), r.Free(a), r.Free(b), x.Destroy(), y.Destroy(), e.Destroy()))
			r.clean()
		}
	}
	require.Positive(t, saw[1])
	require.Positive(t, saw[2])
}

func TestEvent_WithTiming_Measures(t *testing.T) {
	r := open(t, 0)
	s, from, to, a := r.stream(), r.event(true), r.event(true), r.alloc(64)
	require.NoError(t, errors.Join(from.Record(s), s.Fill(a, 1, 64), to.Record(s)))
	over, err := to.Query()
	for ; !over && err == nil; over, err = to.Query() {
		_, err := driver.Elapsed(from, to)
		require.ErrorContains(t, err, "NOT_READY")
	}
	require.NoError(t, err)
	ms, err := driver.Elapsed(from, to)
	require.NoError(t, err)
	require.GreaterOrEqual(t, ms, 0.0)
	require.NoError(t, errors.Join(r.Free(a), s.Destroy(), from.Destroy(), to.Destroy()))
	r.clean()
}

func TestStream_KernelsAndGraphs_DoTheirWorkLate(t *testing.T) {
	for seed := range uint64(5) {
		r := open(t, seed)
		s, a, list, p := r.stream(), r.alloc(4096), r.alloc(4), r.pinned(4096)
		m, f := r.scrub()
		require.NoError(t, errors.Join(s.Fill(list, 0, 4), s.Fill(a, 9, 4096)))
		args := scrubbing(a, list, 4096, 0x05050505)
		require.ErrorIs(t, s.Launch(f, args.Grid(), kernels.Threads, encode(t, args)[1:]), driver.ErrUse)
		require.NoError(t, errors.Join(s.Launch(f, args.Grid(), kernels.Threads, encode(t, args)), s.CopyOut(p, 0, a, 4096), s.Sync()))
		require.Equal(t, all(4096, 5), p.Bytes())
		args.Pattern = 0x06060606
		g, err := s.Capture(func() error {
			return errors.Join(s.Launch(f, args.Grid(), kernels.Threads, encode(t, args)), s.CopyOut(p, 0, a, 4096))
		})
		require.NoError(t, err)
		require.NoError(t, s.Sync())
		require.Equal(t, all(4096, 5), p.Bytes(), "captured, not done")
		other := r.stream()
		for range 3 {
			require.NoError(t, errors.Join(s.Fill(a, 9, 4096), s.Sync(), g.Launch(s), g.Launch(other), other.Sync(), s.Sync()))
			require.Equal(t, all(4096, 6), p.Bytes())
		}
		require.NoError(t, errors.Join(g.Destroy(), m.Unload(), s.Destroy(), other.Destroy(), p.Free(), r.Free(a), r.Free(list)))
		r.clean()
	}
}

func TestStream_CaptureThatFails_LeavesNothing(t *testing.T) {
	r := open(t, 0)
	s, a := r.stream(), r.alloc(64)
	wrong := errors.New("wrong")
	_, err := s.Capture(func() error { return errors.Join(s.Fill(a, 1, 64), wrong) })
	require.ErrorIs(t, err, wrong)
	r.fake.Fault("cuGraphInstantiateWithFlags", 1, driver.OutOfMemory, false)
	_, err = s.Capture(func() error { return s.Fill(a, 1, 64) })
	require.ErrorIs(t, err, driver.ErrCall)
	r.fake.Fault("cuGraphDestroy", 1, driver.InvalidValue, false)
	_, err = s.Capture(func() error { return s.Fill(a, 1, 64) })
	require.ErrorIs(t, err, driver.ErrCall)
	require.NoError(t, errors.Join(s.Sync(), s.Destroy(), r.Free(a), r.Release()))
	require.Equal(t, []string{"cuDevicePrimaryCtxRelease_v2: left behind: a graph"}, r.fake.Violations(), "the one whose destruction was made to fail")
}

// Calls come from any goroutine, and change nothing of the context that a thread has.
func TestContext_CallsFromManyGoroutines_NeedNoThread(t *testing.T) {
	r := open(t, 3)
	done := make(chan error, 8)
	for i := range 8 {
		go func() {
			done <- func() error {
				s, err := r.NewStream()
				if err != nil {
					return err
				}
				p, err := r.HostAlloc(256)
				if err != nil {
					return err
				}
				a, err := r.Alloc(256)
				if err != nil {
					return err
				}
				for range 20 {
					if err := errors.Join(s.Fill(a, byte(i), 256), s.CopyOut(p, 0, a, 256), s.Sync()); err != nil {
						return err
					}
					if p.Bytes()[255] != byte(i) {
						return errors.New("another's bytes")
					}
				}
				return errors.Join(p.Free(), r.Free(a), s.Destroy())
			}()
		}()
	}
	for range 8 {
		require.NoError(t, <-done)
	}
	r.clean()
}
