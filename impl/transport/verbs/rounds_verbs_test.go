//go:build verbs && rig

package verbs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/transport"
	"kvfence/spec"
)

// rounds is how many random points a fence is tried at.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("KVFENCE_RDMA_ROUNDS")); err == nil {
		return n
	}
	return 200
}

// round is one lease of all pages that is fenced in the middle.
type round struct {
	pages uint32 // that have begun to land when decode fences
	then  time.Duration
}

// randomRound is a point anywhere in a transfer of pages that take a time each.
func randomRound(rng *rand.Rand, pages uint32, each time.Duration) round {
	return round{uint32(rng.IntN(int(pages))), time.Duration(rng.Int64N(int64(each)))}
}

// came is how far the writes had come when the page was given out again.
type came struct {
	bytes int // landed
	cut   int // batches that did not end well: something of them was under way
	torn  int // pages of which a part had landed
	tore  int // and of which the tag had, which it must not have
}

// flying reports that the fence came between the first byte and the last.
func (c came) flying(all int) bool { return c.cut > 0 && c.bytes < all }

// pausedAndReused posts all pages, waits for the round's point, fences decode's end alone while prefill goes on, and hands the pages out again. It returns how many
// bytes of the new owner were overwritten, in the end, when prefill's end is shut, too.
func (e *ends) pausedAndReused(t *testing.T, lease spec.LeaseID, at round, fence func(k *link)) (overwritten int, c came) {
	k := e.link()
	dst := e.dst[spec.KV]
	size, pages := int(dst.Layout.Shape.PageBytes), dst.Layout.Shape.Pages
	set(dst.Bytes, before)
	x := e.transferOf(lease, whole(dst.Layout, dst.Layout.Equal.TokensPerPage*pages), ids(0, pages), ids(0, pages))
	require.True(t, k.grants.Allow(x.grant))
	for i := range x.batch.Writes { // a batch each: as much as possible is under way, and it is known how far
		k.source.Post(transport.Batch{ID: uint64(i + 1), Lease: lease, Writes: x.batch.Writes[i : i+1]})
	}
	for until := time.Now().Add(patience); begunPages(dst.Bytes, size) < int(at.pages) && time.Now().Before(until); {
	}
	for until := time.Now().Add(at.then); time.Now().Before(until); {
	}
	fence(k)
	for i := range int(pages) {
		n := bytes.Count(dst.Bytes[i*size:][:size], []byte{storedAtSource})
		c.bytes += n
		if n > 0 && n < size {
			c.torn++
			if !all(dst.Slot(spec.PageID(i), 0), 0) {
				c.tore++
			}
		}
	}
	set(dst.Bytes, reused)
	set(dst.Tags, reused)
	for range x.batch.Writes {
		if p := await(t, k.ssink.posted, "the end of a batch"); p.err != nil {
			c.cut++
		}
	}
	k.fenceSource()
	overwritten = len(dst.Bytes) - bytes.Count(dst.Bytes, []byte{reused})
	overwritten += len(dst.Tags) - bytes.Count(dst.Tags, []byte{reused})
	clear(dst.Tags)
	return overwritten, c
}

// begunPages counts the pages of which the first byte has landed.
func begunPages(b []byte, size int) (n int) {
	for i := 0; i < len(b); i += size {
		if b[i] != before {
			n++
		}
	}
	return n
}

// flown is what rounds have shown.
type flown struct {
	rounds, tried, torn int
	took                []time.Duration
}

// fly runs rounds until so many had writes under way when decode fenced.
func (f *flown) fly(t *testing.T, e *ends, rng *rand.Rand, want int, each time.Duration, lease *spec.LeaseID, name string) {
	pages, all := e.dst[spec.KV].Layout.Shape.Pages, len(e.dst[spec.KV].Bytes)
	for n, tries := 0, 0; n < want; tries++ {
		require.Less(t, tries, 5*want+10, "%s: the points are too late to show anything", name)
		*lease++
		var took time.Duration
		at := randomRound(rng, pages, each)
		bad, c := e.pausedAndReused(t, *lease, at, func(k *link) {
			begin := time.Now()
			k.fence()
			took = time.Since(begin)
		})
		require.Zero(t, bad, "%s: bytes landed after the fence, at %+v", name, at)
		require.Zero(t, c.tore, "%s: a tag before its bytes, at %+v", name, at)
		f.tried++
		if !c.flying(all) {
			continue
		}
		n++
		f.rounds++
		f.torn += min(c.torn, 1)
		f.took = append(f.took, took)
	}
}

// A write is paused at a random point of its way, decode fences alone, and the page is handed out again: nothing lands in it. Only rounds count in which writes were under
// way when the fence began; of a quarter of them the pages are of a megabyte, so that the fence falls into a write.
func TestFence_WritesInFlight_NothingLandsInReusedPages(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	var f flown
	lease, reminders, wakes := spec.LeaseID(0), uint64(0), uint64(0)
	kinds := []Leases{LeasesWindows, LeasesRegions, LeasesOff}
	for i, w := range kinds {
		for _, n := range []int{1, 2} {
			share := func(all int) int { k := 2*i + n - 1; return all*(k+1)/6 - all*k/6 } // of six
			for _, big := range []bool{false, true} {
				l, each, count := kvLayout(64, 4, 0, 1, 1, fencePages), time.Millisecond, share(rounds()-rounds()/4)
				if big {
					l, each, count = kvLayout(64, 32, 0, 4, 4, 4), 30*time.Millisecond, share(rounds()/4)
				}
				e := fenceRigOf(t, n, w, l)
				f.fly(t, e, rng, count, each, &lease, fmt.Sprintf("leases by %s, %d rails, pages of %d bytes", w, n, l.Shape.PageBytes))
				reminders += e.da.Stats().Reminders + e.pa.Stats().Reminders
				wakes += e.da.Stats().Wakes + e.pa.Stats().Wakes
			}
		}
	}
	slices.Sort(f.took)
	figure("fence_rounds_with_writes_in_flight", f.rounds, "fences")
	figure("fence_rounds_in_all", f.tried, "fences")
	figure("fence_rounds_within_a_write", f.torn, "fences")
	figure("fence_wakes", wakes, "looks")
	figure("fence_reminders", reminders, "markers")
	for name, d := range map[string]time.Duration{"min": f.took[0], "median": f.took[len(f.took)/2], "max": f.took[len(f.took)-1]} {
		figure("fence_time_"+name, fmt.Sprintf("%.2f", d.Seconds()*1e3), "ms")
	}
	require.Equal(t, rounds(), f.rounds)
	require.Greater(t, f.torn, f.rounds/8, "the points are not within anything")
}

// The check above finds a fence that only ends the stream, which is all that an engine on sockets would do.
func TestFence_ThatOnlyEndsTheStream_IsFound(t *testing.T) {
	const tries = 20
	rng := rand.New(rand.NewPCG(8, 8))
	e := fenceRig(t, 1, LeasesOff)
	found := 0
	for lease := spec.LeaseID(1); lease <= tries; lease++ {
		bad, _ := e.pausedAndReused(t, lease, randomRound(rng, fencePages, time.Millisecond), func(k *link) { _ = k.target.(*target).conn.Close() })
		found += min(bad, 1)
	}
	figure("planted_fence_found", found, fmt.Sprintf("rounds_of_%d", tries))
	require.Greater(t, found, tries/4, "a fence that does nothing passes")
}
