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
	for _, p := range c.processesInOrderOfStarting {
		if m, err := c.status(p.name); err == nil {
			b, err := json.Marshal(m["node"])
			require.NoError(c.t, err)
			c.t.Logf("status of %s: %s", p.name, b)
		}
	}
	require.Empty(c.t, why, "pages did not come back")
}

// poolJSON and sideJSON are the parts of a node's status document that are judged here.
type poolJSON struct{ Free, Held, Revoking, Quarantined, Total int }

type sideJSON struct {
	Ranks []struct {
		Pools  []poolJSON
		Leases map[string]int
		Jobs   int
	} `json:"ranks"`
}

// pagesInUse says what of a node's pools is not free; "" if nothing.
func pagesInUse(node string, m map[string]any) string {
	b, err := json.Marshal(m)
	if err != nil {
		return err.Error()
	}
	var doc struct {
		Node struct{ Prefill, Decode *sideJSON }
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return fmt.Sprintf("%s: %v", node, err)
	}
	pools := 0
	for _, s := range []*sideJSON{doc.Node.Prefill, doc.Node.Decode} {
		if s == nil {
			continue
		}
		for rank, r := range s.Ranks {
			for c, p := range r.Pools {
				pools += p.Total
				if p.Free != p.Total {
					return fmt.Sprintf("%s rank %d component %d: %+v", node, rank, c, p)
				}
			}
			for state, n := range r.Leases {
				if n != 0 {
					return fmt.Sprintf("%s rank %d: %d leases %s", node, rank, n, state)
				}
			}
			if r.Jobs != 0 {
				return fmt.Sprintf("%s rank %d: %d jobs", node, rank, r.Jobs)
			}
		}
	}
	if pools == 0 {
		return node + ": the status document shows no pool"
	}
	return ""
}
