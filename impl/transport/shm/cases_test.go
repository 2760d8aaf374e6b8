//go:build linux

package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// A batch of three pages is read while its lease lapses at the source: at every step of the batch in turn, all three pages go to
// another request, which fills and seals them properly. Each entry is judged after its own copy, so what was read too late is named
// as foreign and stays void at the destination, and what was read in time has the first request's bytes. With page digests and
// without.
func TestCaseB18_LeaseLapsesInsideABatch_EachEntryIsJudgedAfterItsCopy(t *testing.T) {
	const pages, steps = 3, 3 * 6 // a page is four steps of bytes, a look at its source tag, and its destination tag
	for _, digests := range []bool{true, false} {
		for lapse := range steps + 1 {
			g := newRig(t)
			sink := newReaderSink()
			cfg := g.config(sink)
			j := transport.CopyJob{ID: 1, Lease: 11, Digests: digests}
			var first [][]byte
			for i := range spec.PageID(pages) {
				j.Copies = append(j.Copies, g.seal(spec.KV, i, 11, uint32(i), spec.GrantedPage{Page: 7 - i, Gen: 3}))
				first = append(first, append([]byte{}, g.pools[spec.KV].Pool.Page(i)...))
			}
			reached := 0
			cfg.hook = func(point) {
				if reached == lapse {
					for i := range spec.PageID(pages) {
						g.seal(spec.KV, i, 12, uint32(i), spec.GrantedPage{})
					}
				}
				reached++
			}
			r := g.dial(cfg)
			r.Copy(j)
			res := <-sink.copied
			require.NoError(t, res.Err)
			bad := map[uint32]transport.BadCopy{}
			for _, b := range res.Bad {
				bad[b.Index] = b
			}
			for i, c := range j.Copies {
				tag := device.CheckTag(cfg.Memory[spec.KV].Slot(c.Dst.Page, 0), c.DstTag)
				if b, is := bad[uint32(i)]; is {
					require.Equal(t, spec.TagForeign, b.State, "lapse %d, entry %d", lapse, i)
					require.Equal(t, spec.TagVoid, tag, "lapse %d, entry %d", lapse, i)
					continue
				}
				require.Equal(t, spec.TagGood, tag, "lapse %d, entry %d", lapse, i)
				require.True(t, string(first[i]) == string(cfg.Memory[spec.KV].Page(c.Dst.Page)), "lapse %d, entry %d: another's bytes under a good tag", lapse, i)
			}
			switch lapse {
			case 0:
				require.Len(t, bad, pages, "all of it was read too late")
			case steps - 1, steps:
				require.Empty(t, bad, "the lapse came after the last look")
				require.Equal(t, steps, reached, "the batch has other steps than this test takes for granted")
			default:
				require.NotEmpty(t, bad, "lapse %d", lapse)
			}
		}
	}
}
