package device

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvfence/spec"
)

func sharedLayout() spec.Layout {
	m := spec.Meaning{ByteOrder: "little", DType: "bf16", HeadDim: 8, ElemBytes: 2, KVs: 2, TokensPerPage: 4, Layers: 2, Heads: 2}
	return spec.NewDense(spec.KV, m, 0, 2, 0, 2, 5, 3)
}

func mapAs(f *os.File, prot int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, 4096, prot, unix.MAP_SHARED)
}

func TestNewSharedPool_OwnerWrites_ReaderSeesAndCannotWrite(t *testing.T) {
	s, err := NewSharedPool(sharedLayout())
	require.NoError(t, err)
	defer s.Close()
	require.True(t, s.Pool.Layout.Shape.Shared)
	require.True(t, s.Bytes.Sealed && s.Tags.Sealed)

	s.Pool.Page(4)[7] = 0xa5
	s.Pool.Slot(4, 2)[63] = 0x5a
	view, err := unix.Mmap(int(s.Bytes.File.Fd()), 0, int(s.Tags.Region.Offset+s.Tags.Region.Length), unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	defer unix.Munmap(view)
	require.Equal(t, byte(0xa5), view[4*int(s.Pool.Layout.Shape.PageBytes)+7])
	require.Equal(t, byte(0x5a), view[s.Tags.Region.Offset+s.Tags.Region.Length-1])

	_, err = mapAs(s.Bytes.File, unix.PROT_READ|unix.PROT_WRITE)
	require.ErrorIs(t, err, unix.EPERM)
	require.ErrorIs(t, unix.Mprotect(view, unix.PROT_READ|unix.PROT_WRITE), unix.EACCES)
	_, err = s.Bytes.File.WriteAt([]byte{1}, 0)
	require.ErrorIs(t, err, unix.EPERM)
	require.ErrorIs(t, s.Bytes.File.Truncate(0), unix.EPERM)
	require.ErrorIs(t, s.Bytes.File.Truncate(1<<20), unix.EPERM)
	require.Error(t, unix.Fallocate(int(s.Bytes.File.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 4096))
	require.Equal(t, byte(0xa5), s.Pool.Page(4)[7])
}

func TestNewSharedPool_BadLayout_IsRefused(t *testing.T) {
	l := sharedLayout()
	l.Shape.TagSlots = 0
	_, err := NewSharedPool(l)
	require.ErrorIs(t, err, spec.ErrLayout)
}

func TestShared_ClosedTwice_IsClosedOnce(t *testing.T) {
	s, err := NewSharedPool(sharedLayout())
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
}

func TestCheckSealed_UnsealedOrPartlySealed_IsRefused(t *testing.T) {
	for _, seals := range []int{0, unix.F_SEAL_SHRINK | unix.F_SEAL_GROW} {
		fd, err := unix.MemfdCreate("open", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		require.NoError(t, err)
		require.NoError(t, unix.Ftruncate(fd, 4096))
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
		require.NoError(t, err)
		require.ErrorIs(t, CheckSealed(fd), ErrNotSealed)
		require.NoError(t, unix.Close(fd))
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	require.ErrorIs(t, CheckSealed(int(r.Fd())), ErrNotSealed)
}

func TestAdoptPool_EngineMemory_IsPassedReadOnly(t *testing.T) {
	l := sharedLayout()
	nb, _ := poolSizes(l)
	fd, err := unix.MemfdCreate("engine", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	f := os.NewFile(uintptr(fd), "engine")
	defer f.Close()
	require.NoError(t, f.Truncate(8192+PageAlign(nb)))
	m, err := unix.Mmap(fd, 8192, int(PageAlign(nb)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	defer unix.Munmap(m)

	s, err := AdoptPool(l, m, f, Region{8192, nb})
	require.NoError(t, err)
	require.False(t, s.Bytes.Sealed)
	require.True(t, s.Tags.Sealed)
	s.Pool.Page(0)[0] = 9
	require.Equal(t, byte(9), m[0])
	_, err = mapAs(s.Bytes.File, unix.PROT_READ|unix.PROT_WRITE)
	require.ErrorIs(t, err, unix.EACCES)
	require.NoError(t, s.Close())
	m[0] = 10 // the engine's mapping is not ours to take away

	for _, r := range []Region{{8192, nb - 1}, {4, nb}, {-4096, nb}, {8192 + 4096, nb}, {1 << 62, nb}} {
		_, err = AdoptPool(l, m, f, r)
		require.Error(t, err, "%+v", r)
	}
	_, err = AdoptPool(l, m[:nb-1], f, Region{8192, nb})
	require.Error(t, err)
}
