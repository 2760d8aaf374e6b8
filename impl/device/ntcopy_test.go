package device

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// rim is the bytes around a destination that must stay as they are.
const rim = 192

func patterned(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := 0; i < n; i += 8 {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], r.Uint64())
		copy(b[i:], w[:])
	}
	return b
}

func TestCopyStream_AnySizeAndAlignment_CopiesExactlyThoseBytes(t *testing.T) {
	sizes := []int{0, 1, 63, 64, 65, 255, 256, 319, 320, 321, 511, 512, 513, 4095, 4096, 4097, 16383, 16384, 16385, 16384 + 255,
		16384 + 256, 32768 + 4096 + 257, 3*16384 + 64, 65536, 65536 + 16384 + 777}
	const most = 1 << 17
	src := patterned(most+rim*2, 1)
	back := patterned(most+rim*2, 2)
	dst := make([]byte, len(back))
	for _, way := range streams() {
		for _, n := range sizes {
			for _, da := range []int{0, 1, 8, 31, 32, 33, 63} {
				for _, sa := range []int{0, 1, 7, 32, 63} {
					copy(dst, back)
					got := copyStream(dst[rim+da:rim+da+n], src[rim+sa:rim+sa+n], way.copy)
					require.Equal(t, n, got)
					if !bytes.Equal(dst[rim+da:rim+da+n], src[rim+sa:rim+sa+n]) {
						t.Fatalf("%s: %d bytes, dst+%d, src+%d: bytes differ", way.name, n, da, sa)
					}
					if !bytes.Equal(dst[:rim+da], back[:rim+da]) || !bytes.Equal(dst[rim+da+n:], back[rim+da+n:]) {
						t.Fatalf("%s: %d bytes, dst+%d, src+%d: bytes outside were touched", way.name, n, da, sa)
					}
				}
			}
		}
	}
}

func TestCopyStream_EverySmallSize_CopiesExactlyThoseBytes(t *testing.T) {
	src, back := patterned(2048, 3), patterned(2048, 4)
	dst := make([]byte, len(back))
	for _, way := range streams() {
		for n := range 1024 {
			copy(dst, back)
			copyStream(dst[64:64+n], src[5:5+n], way.copy)
			require.True(t, bytes.Equal(dst[64:64+n], src[5:5+n]), "%s %d", way.name, n)
			require.True(t, bytes.Equal(dst[64+n:], back[64+n:]) && bytes.Equal(dst[:64], back[:64]), "%s %d", way.name, n)
		}
	}
}

func TestCopyStream_UnequalLengths_CopiesTheShorter(t *testing.T) {
	src, dst := patterned(5000, 5), make([]byte, 3000)
	require.Equal(t, 3000, CopyStream(dst, src))
	require.Equal(t, src[:3000], dst)
	big := make([]byte, 9000)
	require.Equal(t, 5000, CopyStream(big, src))
	require.Equal(t, src, big[:5000])
	require.Equal(t, make([]byte, 4000), big[5000:])
}

func TestStreamKind_IsTheFirstWayOfThisProcessor(t *testing.T) {
	require.Equal(t, streams()[0].name, StreamKind())
}

// A source that vanishes (the file behind a mapping shrinks) is a panic that can be recovered, in every way to copy.
func TestCopyStream_SourceVanishes_FaultCanBeRecovered(t *testing.T) {
	const n = 64 << 10
	fd, err := unix.MemfdCreate("shrinks", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Ftruncate(fd, n))
	src, err := unix.Mmap(fd, 0, n, unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	defer unix.Munmap(src)
	require.NoError(t, unix.Ftruncate(fd, n/2))
	for _, way := range streams() {
		require.True(t, faults(func() { copyStream(make([]byte, n), src, way.copy) }), way.name)
	}
}

func faults(f func()) (faulted bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { faulted = recover() != nil }()
	f()
	return false
}
