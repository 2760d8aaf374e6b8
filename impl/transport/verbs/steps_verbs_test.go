//go:build verbs && rig

package verbs

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// stepped stands in place of the steps of fences: it keeps which were done, and fails the one that is named.
type stepped struct {
	mu     sync.Mutex
	done   []step
	failed step
	over   bool // from now on all are done and none is kept
}

var errStep = errors.New("the device refuses")

func (s *stepped) on(name step, do func() error) error {
	s.mu.Lock()
	over, fails := s.over, s.failed == name
	if !over {
		s.done = append(s.done, name)
	}
	s.mu.Unlock()
	if fails && !over {
		return errStep
	}
	return do()
}

func (s *stepped) steps() []step {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.done)
}

func (s *stepped) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

var (
	stopSteps   = []step{stepError, stepQuery, stepMark, stepAwait}
	targetSteps = append(slices.Clone(stopSteps), stepRights, stepDestroy, stepFlush)
	keptSteps   = append(slices.Clone(stopSteps), stepFlush)
	sourceSteps = append(slices.Clone(stopSteps), stepDestroy)
)

// stepRig is a link with a lease under way, and what stands in place of both ends' steps.
func stepRig(t *testing.T, by Leases) (k *link, atSource, atTarget *stepped) {
	atSource, atTarget = &stepped{}, &stepped{}
	l := kvLayout(64, 4, 0, 1, 1, fencePages)
	e := newEnds(t, memoryOf(t, l), memoryOf(t, l), Options{Rails: rails(t, 1), RetryCount: 2, Timeout: 12, onStep: atSource.on},
		Options{Rails: rails(t, 1), Leases: by, unprobed: true, onStep: atTarget.on})
	k, err := e.tryLink()
	require.NoError(t, err)
	x := e.transferOf(1, whole(l, 64*fencePages), ids(0, fencePages), ids(0, fencePages))
	require.True(t, k.grants.Allow(x.grant))
	k.source.Post(x.batch)
	k.begun() // a source that has not begun has no steps to do
	return k, atSource, atTarget
}

// A fence does each of its steps once, in the order of spec/verbs-fence.md; only then is Fenced said.
func TestFence_Steps_AreAllDoneInTheirOrder(t *testing.T) {
	for _, by := range []Leases{LeasesWindows, LeasesRegions, LeasesOff} {
		t.Run(string(by), func(t *testing.T) {
			k, atSource, atTarget := stepRig(t, by)
			k.fence()
			want := targetSteps
			if by == LeasesOff {
				want = keptSteps
			}
			require.Equal(t, want, atTarget.steps())
			k.fenceSource()
			require.Equal(t, sourceSteps, atSource.steps())
			atTarget.end()
			atSource.end()
		})
	}
}

// Whichever step of decode's fence fails, FenceFailed is said in place of Fenced, no later step is done, and the lease still counts as being placed.
func TestFence_AnyStepFailsAtDecode_IsNoFence(t *testing.T) {
	for _, by := range []Leases{LeasesWindows, LeasesRegions, LeasesOff} {
		steps := targetSteps
		if by == LeasesOff {
			steps = keptSteps
		}
		for i, name := range steps {
			t.Run(string(by)+" "+string(name), func(t *testing.T) {
				k, atSource, atTarget := stepRig(t, by)
				atTarget.failed = name
				k.grants.Revoke(1)
				k.target.Fence()
				err := await(t, k.tsink.done, "the end of decode's fence")
				require.ErrorIs(t, err, ErrFence)
				require.ErrorIs(t, err, errStep)
				require.ErrorContains(t, err, string(name))
				require.Equal(t, steps[:i+1], atTarget.steps())
				require.Equal(t, by != LeasesOff, len(k.grants.Strays(spec.KV, ids(0, 1))) > 0)
				if by != LeasesOff {
					require.ErrorIs(t, k.grants.WaitStrays(), errStep, "who waits is told")
				}
				k.targetOnce.Do(func() {})
				atTarget.end()
				atSource.end()
				k.fenceSource()
				tg := k.target.(*target)
				abandon(t, []*queue{tg.queues[0]}, tg.freeRights)
			})
		}
	}
}

// Whichever step of prefill's fence fails, FenceFailed is said, and decode is not told that this end is shut.
func TestFence_AnyStepFailsAtPrefill_IsNoFence(t *testing.T) {
	for i, name := range sourceSteps {
		t.Run(string(name), func(t *testing.T) {
			k, atSource, atTarget := stepRig(t, LeasesOff)
			atSource.failed = name
			k.source.Fence()
			err := await(t, k.ssink.done, "the end of prefill's fence")
			require.ErrorIs(t, err, ErrFence)
			require.ErrorIs(t, err, errStep)
			require.Equal(t, sourceSteps[:i+1], atSource.steps())
			atTarget.end()
			atSource.end()
			k.fence()
			require.Equal(t, 1, k.da.Stats().Kept, "decode keeps the number: it has not heard that prefill's end is shut")
			k.sourceOnce.Do(func() {})
			s := k.source.(*source)
			abandon(t, []*queue{s.queues[0]}, nil)
			_ = s.conn.Close()
		})
	}
}

// abandon gives the device back what a fence that failed left: no fence, for nobody writes here any more.
func abandon(t *testing.T, qs []*queue, rights func() error) {
	for _, q := range qs {
		q.mu.Lock()
		marked, freed := q.marked, q.freed
		q.mu.Unlock()
		if freed {
			continue
		}
		if !marked {
			require.NoError(t, q.stop())
		}
		require.NoError(t, q.awaitMarker())
		if rights != nil {
			require.NoError(t, rights())
		}
		require.NoError(t, q.free())
	}
}
