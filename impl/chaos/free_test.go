//go:build chaos

package chaos

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/workload"
)

// tokenStrings are the tokens as the API's logprobs name them.
func tokenStrings(ids []int32) []string {
	var out []string
	for _, id := range ids {
		b := workload.TokenBytes(id)
		if len(b) == 1 && b[0] < 0x80 {
			out = append(out, string(b))
			continue
		}
		s := "bytes:"
		for _, x := range b {
			s += fmt.Sprintf("\\x%02x", x)
		}
		out = append(out, s)
	}
	return out
}

// notFree names the nodes of which some page is not free, or some lease is left.
func (c *cluster) notFree() string {
	for _, p := range append(append([]*proc{}, c.prefills...), c.decode) {
		m, err := c.status(p.name)
		if err != nil {
			return fmt.Sprintf("%s: %v", p.name, err)
		}
		if why := pagesInUse(p.name, m); why != "" {
			return why
		}
	}
	return ""
}

func (c *cluster) requireAllFree(within time.Duration) {
	why := ""
	deadline := time.Now().Add(within)
	for time.Now().Before(deadline) {
		if why = c.notFree(); why == "" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	require.Empty(c.t, why, "pages did not come back")
}
