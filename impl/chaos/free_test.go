//go:build chaos

package chaos

import (
	"encoding/json"
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

// notFree names the first node of which some page is not free, or some lease is left; "" if there is none.
func (c *cluster) notFree(nodes ...*proc) string {
	for _, p := range nodes {
		s, err := c.status(p.name)
		if err != nil {
			return err.Error()
		}
		if why := s.inUse(); why != "" {
			return p.name + ": " + why
		}
	}
	return ""
}

// holders are the processes that have pools.
func (c *cluster) holders() []*proc { return append(append([]*proc{}, c.prefills...), c.decode) }

// requireAllFree waits until every page of the nodes (none named: all) is free.
func (c *cluster) requireAllFree(within time.Duration, nodes ...*proc) {
	if len(nodes) == 0 {
		nodes = c.holders()
	}
	why := ""
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if why = c.notFree(nodes...); why == "" {
			return
		}
	}
	for _, p := range nodes {
		s, err := c.status(p.name)
		b, _ := json.Marshal(s)
		c.t.Logf("status of %s: %s (%v)", p.name, b, err)
	}
	require.Empty(c.t, why, "pages did not come back")
}

// requireNoAlarm: nothing was sent to a wrong place, so no tag or digest may have been found bad.
func (c *cluster) requireNoAlarm() {
	for _, p := range c.holders() {
		s, err := c.status(p.name)
		require.NoError(c.t, err)
		require.Zero(c.t, s.alarms(), "%s found bad tags or digests", p.name)
	}
}
