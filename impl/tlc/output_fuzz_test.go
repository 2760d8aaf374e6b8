package tlc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzOutput: whatever TLC prints, or something in its place, is no pass unless it ended well: a violation has a name and a trace, and figures
// are never negative but for one beyond all bounds.
func FuzzOutput(f *testing.F) {
	f.Add("Error: Invariant Inv is violated.\nState 1: <Init>\nState 2: <Next>\n12 states generated, 7 distinct states found\nThe depth of the complete state graph search is 3.\n", 12)
	f.Add("Error: Temporal properties were violated.\n", 13)
	f.Add("Progress: 1,234 states checked\n99999999999999999999 states generated, 99999999999999999999 distinct states found\n", 0)
	c := &Configuration{Steps: []string{"A", "B"}}
	f.Fuzz(func(t *testing.T, output string, exit int) {
		got := parse(output, c)
		got.Exit = exit
		require.Equal(t, output, got.Output)
		require.Equal(t, got.Violated != "", got.Trace > 0)
		require.GreaterOrEqual(t, got.Seen, -1)
		require.GreaterOrEqual(t, got.Depth, -1)
		e := got.expectation(c)
		require.Equal(t, exit == 0, e.Result == "pass")
		require.Equal(t, exit != 0 && got.Violated != "", e.Result == "violated")
	})
}
