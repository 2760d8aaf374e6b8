package core

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// hits are the pages that the world's decode ranks have shared.
func (w *world) hits() (n uint64) {
	for _, r := range w.dr {
		n += r.Status().Hits
	}
	return n
}

// alone submits a request and waits for its answer, which must be exact.
func (w *world) alone(s Submit) {
	w.t.Helper()
	s.MaxNew, s.EOS = 5, -1
	w.submitAs(s)
	w.run(func() bool { return len(w.open) == 0 })
	require.Equal(w.t, "length", w.answers[s.Req].Finish, "%+v", w.answers[s.Req])
	require.Equal(w.t, expect(s.Prompt, 5), w.emitted[s.Req])
}

// Requests of one domain share their common prefix, in whole pages and never to the last token; another tenant, adapter or salt with equal
// tokens shares nothing. The bytes that each step reads are compared by domain and tokens (world.content).
func TestJoint_EqualTokens_ShareWithinOneDomainOnly(t *testing.T) {
	for i, o := range []worldOptions{
		{decode: 1, prefill: 1, pages: 60, sourcePages: 40, digests: true, sharing: 60},
		{decode: 2, prefill: 2, pages: 60, sourcePages: 40, sharing: 60},
		{decode: 1, prefill: 1, pages: 60, sourcePages: 40, pull: true, digests: true, sharing: 60},
	} {
		t.Run(fmt.Sprint("shape ", i), func(t *testing.T) {
			w := newWorld(t, uint64(i), o)
			long := worldPrompt(1, 14)
			ranks := uint64(o.decode)
			want := uint64(0)
			next := func(s Submit, shared uint64) {
				t.Helper()
				s.Req = RequestID(len(w.answers) + 1)
				w.alone(s)
				want += shared * ranks
				require.Equal(t, want, w.hits(), "%q %q %q %d tokens", s.Tenant, s.Adapter, s.Salt, len(s.Prompt))
			}
			next(Submit{Tenant: "a", Prompt: long}, 0)
			next(Submit{Tenant: "b", Prompt: long}, 0)
			next(Submit{Tenant: "a", Adapter: "x", Prompt: long}, 0)
			next(Submit{Tenant: "a", Salt: "s", Prompt: long}, 0)
			next(Submit{Tenant: "a", Prompt: long}, 3)
			next(Submit{Tenant: "a", Prompt: long[:12]}, 2) // its last page is full, and prefill still owes it
			next(Submit{Tenant: "a", Prompt: long[:13]}, 3)
			next(Submit{Tenant: "a", Prompt: long[:3]}, 0)
			other := append(append([]int32(nil), long[:9]...), 801, 802, 803, 804, 805)
			next(Submit{Tenant: "a", Prompt: other}, 2)
			next(Submit{Tenant: "a", Prompt: other}, 3)
			next(Submit{Tenant: "b", Adapter: "", Prompt: long}, 3)
			next(Submit{Tenant: "a", Adapter: "x", Prompt: long}, 3)
			w.run(w.idle)
		})
	}
}

// TestCaseB19: only the suffix of a prompt is missing at decode; each of its pages gets the source page of its own position.
func TestCaseB19_PartialPrefixHit_PagesAreAlignedByPosition(t *testing.T) {
	for _, pull := range []bool{false, true} {
		w := newWorld(t, 19, worldOptions{decode: 1, prefill: 1, pages: 40, sourcePages: 40, digests: true, pull: pull, sharing: 40})
		prompt := worldPrompt(3, 24)
		w.alone(Submit{Req: 1, Tenant: "a", Prompt: prompt[:17]})
		w.alone(Submit{Req: 2, Tenant: "a", Prompt: prompt})
		require.Equal(t, uint64(4), w.hits(), "pages 0 to 3 are there, 4 and 5 are moved")
		w.run(w.idle)
	}
}

// TestCaseB48: prompts around a page, with nothing, some, or all of it known at decode: every case ends well and leaves nothing.
func TestCaseB48_NothingToMove_EndsWell(t *testing.T) {
	for known := range 17 {
		w := newWorld(t, uint64(known), worldOptions{decode: 1, prefill: 2, pages: 40, sourcePages: 40, sharing: 40})
		prompt := worldPrompt(5, 17)
		if known > 0 {
			w.alone(Submit{Req: 1, Tenant: "a", Prompt: prompt[:known]})
		}
		for i, n := range []int{1, 3, 4, 5, 8, 16, 17} {
			w.alone(Submit{Req: RequestID(2 + i), Tenant: "a", Prompt: prompt[:n]})
		}
		w.run(w.idle)
	}
}

// The first of a prefix is over and its pages lie free: the next one still finds them. Handed out to others meanwhile, they are gone, and
// nobody takes them for the prefix that they were.
func TestJoint_FillerOver_PagesAreACacheUntilTheyAreHandedOut(t *testing.T) {
	for seed := range worldSeeds(6) {
		w := newWorld(t, seed, worldOptions{decode: 1, prefill: 1, pages: 12, sourcePages: 12, digests: true, sharing: 12})
		a := worldPrompt(1, 13)
		w.alone(Submit{Req: 1, Tenant: "a", Prompt: a})
		w.run(w.idle)
		w.alone(Submit{Req: 2, Tenant: "a", Prompt: a})
		require.Equal(t, uint64(3), w.hits())
		for r := RequestID(3); r < 7; r++ {
			w.alone(Submit{Req: r, Tenant: "b", Prompt: worldPrompt(int(r), 20)})
		}
		require.NotZero(t, w.follow.seen["Unpublish"])
		w.alone(Submit{Req: 7, Tenant: "a", Prompt: a})
		require.Equal(t, uint64(3), w.hits(), "its pages were handed out to b")
		w.run(w.idle)
	}
}

// Many at once, loss and restarts among them, sharing a few prefixes in a small pool: see TestJoint_Faults and its shapes. Here: they do share.
func TestJoint_Sharing_HappensUnderLoad(t *testing.T) {
	hits, publishes := uint64(0), 0
	for seed := range worldSeeds(8) {
		w := newWorld(t, seed, worldOptions{decode: 1 + int(seed%2), prefill: 1, pages: 24, sourcePages: 24, digests: true, sharing: 24, slow: 4})
		prompts := map[RequestID][]int32{}
		for r := RequestID(1); r <= 16; r++ {
			prompts[r] = w.prompt(r, 9+int(r)%12)
			w.submit(r, prompts[r], 6, 0)
			for range 60 {
				w.turn()
			}
		}
		w.run(func() bool { return len(w.open) == 0 })
		for r, p := range prompts {
			require.Equal(t, expect(p, w.answers[r].NewTokens), w.emitted[r])
			require.Equal(t, spec.Cause(""), w.answers[r].Cause)
		}
		w.run(w.idle)
		hits, publishes = hits+w.hits(), publishes+w.follow.seen["Publish"]
	}
	require.Greater(t, hits, uint64(50))
	require.Greater(t, publishes, 50)
}

// Decode shares nothing here, prefill does: the whole prompt is written each time, and computed once, within one domain.
func TestJoint_SourcePrefix_IsComputedOnceAndWrittenEachTime(t *testing.T) {
	for i, o := range []worldOptions{
		{decode: 1, prefill: 1, pages: 60, sourcePages: 40, digests: true, sources: 40},
		{decode: 2, prefill: 2, pages: 60, sourcePages: 40, sources: 40},
	} {
		t.Run(fmt.Sprint("shape ", i), func(t *testing.T) {
			w := newWorld(t, uint64(i), o)
			long := worldPrompt(1, 14)
			next := func(s Submit, computed uint32) {
				t.Helper()
				s.Req = RequestID(len(w.answers) + 1)
				before := w.work
				w.alone(s)
				w.run(w.idle)
				require.Equal(t, computed, w.work-before, "%q %q %d tokens", s.Tenant, s.Adapter, len(s.Prompt))
			}
			next(Submit{Tenant: "a", Prompt: long}, 14)
			next(Submit{Tenant: "b", Prompt: long}, 14)
			next(Submit{Tenant: "a", Adapter: "x", Prompt: long}, 14)
			next(Submit{Tenant: "a", Prompt: long}, 2)
			next(Submit{Tenant: "a", Prompt: long[:12]}, 4)
			next(Submit{Tenant: "a", Prompt: long[:9]}, 1)
			other := append(append([]int32(nil), long[:5]...), 801, 802, 803, 804, 805)
			next(Submit{Tenant: "a", Prompt: other}, 6)
			next(Submit{Tenant: "a", Prompt: other}, 2)
			require.Zero(t, w.hits())
		})
	}
}
