//go:build chaos

package chaos

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// ports hands out n loopback addresses, each with span ports behind it, that are free now. They lie below the range from which
// the system takes the ports of outgoing connections, so that a node that is started again finds its port free.
func ports(t *testing.T, n, span int) []string {
	const lowest, highest = 15000, 32000
	var out []string
	for range 1000 {
		from := lowest + rand.IntN(highest-lowest-n*span)
		if !allFree(from, n*span) {
			continue
		}
		for k := range n {
			out = append(out, fmt.Sprintf("127.0.0.1:%d", from+k*span))
		}
		return out
	}
	require.FailNow(t, "no free ports")
	return nil
}

func allFree(from, n int) bool {
	for p := from; p < from+n; p++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
		if err != nil {
			return false
		}
		if l.Close() != nil {
			return false
		}
	}
	return true
}

// workDir is a folder of the test's own; KVFENCE_CHAOS_DIR names one that stays, with the traces of all nodes in it.
func workDir(t *testing.T) string {
	if d := os.Getenv("KVFENCE_CHAOS_DIR"); d != "" {
		require.NoError(t, os.MkdirAll(d, 0o700))
		return d
	}
	return t.TempDir()
}
