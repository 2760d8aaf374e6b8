//go:build linux

package shm

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvfence/spec"
)

// FuzzTable: whatever table of regions an exporter sends, the reader maps what both sides agreed on or says that it differs. A reader's
// claim reads back as it was written, apart from its challenge.
func FuzzTable(f *testing.F) {
	pools, err := AllocatePools(layouts())
	require.NoError(f, err)
	t, files := tableOf(spec.Nonce{1}, pools)
	f.Add(t.encode())
	f.Add(make([]byte, tableBytes))
	f.Add(claim{prefill: spec.Incarnation{1}, decode: spec.Incarnation{2}, epoch: 3, nonce: spec.Nonce{4}}.encode())
	fds := []int{int(files[0].Fd())} // stands for the control page
	for _, x := range files {
		fds = append(fds, int(x.Fd()))
	}
	f.Cleanup(func() {
		for _, p := range pools {
			if p != nil {
				_ = p.Close()
			}
		}
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == claimBytes {
			c := decodeClaim(b)
			require.Equal(t, c, decodeClaim(c.encode()))
		}
		if len(b) != tableBytes {
			return // receive takes packets of exactly that length
		}
		r := &Reader{cfg: ReaderConfig{Lazy: true}}
		got := decodeTable(b)
		for c, p := range got.pools {
			if l := layouts()[c]; l != nil && p.has {
				if pool, err := r.mapPool(*l, p.bytes, p.tags, fds); err != nil {
					require.ErrorIs(t, err, ErrRegions)
				} else {
					_ = pool.Bytes[len(pool.Bytes)-1] + pool.Tags[len(pool.Tags)-1]
				}
			}
		}
		for _, m := range r.maps {
			require.NoError(t, unix.Munmap(m))
		}
		again := decodeTable(got.encode())
		require.Equal(t, got, again)
	})
}
