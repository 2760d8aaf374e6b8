package lockstep

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReplay_ShareOfEveryEdge_EngineAndSpecificationAgree(t *testing.T) {
	for _, set := range Pinned() {
		t.Run(set.Name, func(t *testing.T) {
			t.Parallel()
			r, err := ReplaySetting(set, 60)
			require.NoError(t, err)
			t.Logf("%d states, %d edges, %d replayed, cut %v", r.States, r.Edges, r.Replayed, r.Cut)
			require.Empty(t, r.Differences)
			require.NotZero(t, r.Replayed)
		})
	}
}
