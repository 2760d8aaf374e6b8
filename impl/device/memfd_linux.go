package device

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"kvfence/spec"
)

// ErrNotSealed says that memory which must be sealed against other writers is not: the kernel is too old (before 5.1), or the
// descriptor is of another kind.
var ErrNotSealed = errors.New("memory is not sealed")

// Seals are what keeps a shared pool safe: nobody else can map or write it writable, and nobody can shrink it under a reader
// (SIGBUS) or take the seals off. The owner's own mapping is older than the seal and stays writable.
const Seals = unix.F_SEAL_FUTURE_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// PageAlign rounds n up to whole memory pages of 4 KiB.
func PageAlign(n int64) int64 { return (n + 4095) &^ 4095 }

// Region is a run of a descriptor's bytes. Offset is a multiple of 4096.
type Region struct {
	Offset, Length int64
}

// Shared is the memory behind one component's pool that a reader may map: the descriptors of its bytes and tag slots (the same
// file for our own memory, two for adopted memory), and whether they are sealed. It owns its descriptors and mappings.
// Close may be called more than once; the Pool must not be touched after it.
type Shared struct {
	Pool   *Pool
	Bytes  SharedRegion
	Tags   SharedRegion
	unmaps [][]byte
	files  []*os.File
	once   sync.Once
}

// SharedRegion is a region with its descriptor. Sealed says that the seals above are on, so that the reader can insist.
type SharedRegion struct {
	File   *os.File
	Region Region
	Sealed bool
}

// NewSharedPool allocates a pool in a memfd: bytes first, tag slots behind them on a page border. All of it is allocated at once
// (a lack of memory shows here, not as a fault later), mapped for this process, and then sealed; that a second writable mapping
// is refused is verified.
func NewSharedPool(l spec.Layout) (*Shared, error) {
	l.Shape.Shared = true
	if err := l.Validate(); err != nil {
		return nil, err
	}
	nb, nt := poolSizes(l)
	tagsAt := PageAlign(nb)
	f, m, err := NewSealed("kvfence-"+l.Component.String(), tagsAt+PageAlign(nt))
	if err != nil {
		return nil, fmt.Errorf("pool %s: %w", l.Component, err)
	}
	s := &Shared{unmaps: [][]byte{m}, files: []*os.File{f}}
	s.Bytes = SharedRegion{f, Region{0, nb}, true}
	s.Tags = SharedRegion{f, Region{tagsAt, nt}, true}
	if s.Pool, err = NewPool(l, m[:nb], m[tagsAt:tagsAt+nt]); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// AdoptPool makes a pool of a serving engine's own shared memory. bytes is what the engine mapped already and file its
// descriptor, both stay the engine's; region says where in the file the pool lies. Such memory cannot be sealed (others map it
// writable), so the reader gets a descriptor that was opened again for reading only. That stops mistakes, not malice: a process
// of the same user could open it once more for writing (security model). The tag slots are our own sealed memory.
func AdoptPool(l spec.Layout, bytes []byte, file *os.File, region Region) (*Shared, error) {
	l.Shape.Shared = true
	if err := l.Validate(); err != nil {
		return nil, err
	}
	nb, nt := poolSizes(l)
	if region.Length != nb || region.Offset < 0 || region.Offset%4096 != 0 || int64(len(bytes)) < nb {
		return nil, fmt.Errorf("pool %s: region %d+%d and %d mapped bytes do not hold the pool's %d", l.Component, region.Offset, region.Length, len(bytes), nb)
	}
	if err := holds(file, region); err != nil {
		return nil, fmt.Errorf("pool %s: %w", l.Component, err)
	}
	ro, err := reopenReadOnly(file)
	if err != nil {
		return nil, fmt.Errorf("pool %s: %w", l.Component, err)
	}
	tf, tm, err := NewSealed("kvfence-tags-"+l.Component.String(), PageAlign(nt))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pool %s tags: %w", l.Component, err), ro.Close())
	}
	s := &Shared{unmaps: [][]byte{tm}, files: []*os.File{ro, tf}}
	s.Bytes = SharedRegion{ro, region, false}
	s.Tags = SharedRegion{tf, Region{0, nt}, true}
	if s.Pool, err = NewPool(l, bytes, tm[:nt]); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close unmaps our own memory and closes the descriptors. Readers keep what they have mapped.
func (s *Shared) Close() (err error) {
	s.once.Do(func() {
		for _, m := range s.unmaps {
			err = errors.Join(err, unix.Munmap(m))
		}
		for _, f := range s.files {
			err = errors.Join(err, f.Close())
		}
	})
	return err
}

// NewSealed makes a memfd of n bytes (a multiple of 4096), maps it writable for this process and then puts Seals on it.
func NewSealed(name string, n int64) (*os.File, []byte, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	m, err := mapSealed(fd, n)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, m, nil
}

func mapSealed(fd int, n int64) ([]byte, error) {
	if err := unix.Fallocate(fd, 0, 0, n); err != nil {
		return nil, fmt.Errorf("allocate %d bytes: %w", n, err)
	}
	m, err := unix.Mmap(fd, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, Seals); err != nil {
		err = fmt.Errorf("%w: %w", ErrNotSealed, err)
	} else {
		err = CheckSealed(fd)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Munmap(m))
	}
	return m, nil
}

// CheckSealed verifies that fd carries Seals and that this process can no longer map it writable: the kernel's answer must be EPERM.
func CheckSealed(fd int) error {
	have, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotSealed, err)
	}
	if have&Seals != Seals {
		return fmt.Errorf("%w: seals are %#x, %#x are needed", ErrNotSealed, have, Seals)
	}
	m, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	switch {
	case err == nil:
		return errors.Join(fmt.Errorf("%w: a writable mapping was granted", ErrNotSealed), unix.Munmap(m))
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES): // EACCES: the descriptor itself is read-only
		return nil
	}
	return fmt.Errorf("%w: a writable mapping was refused, but with %w", ErrNotSealed, err)
}

// holds checks that a file's present size covers r.
func holds(f *os.File, r Region) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if r.Length < 0 || r.Offset > st.Size()-r.Length {
		return fmt.Errorf("file of %d bytes does not hold %d+%d", st.Size(), r.Offset, r.Length)
	}
	return nil
}

// reopenReadOnly opens the same memory once more, for reading only.
func reopenReadOnly(f *os.File) (*os.File, error) {
	c, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var ro *os.File
	if cerr := c.Control(func(fd uintptr) {
		ro, err = os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDONLY|unix.O_CLOEXEC, 0)
	}); cerr != nil {
		return nil, cerr
	}
	return ro, err
}

func poolSizes(l spec.Layout) (bytes, tags int64) {
	return int64(l.Shape.Pages) * int64(l.Shape.PageBytes), int64(l.Shape.Pages) * int64(l.Shape.TagSlots) * spec.TagBytes
}
