//go:build chaos

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// poolJSON, rankJSON, sideJSON and statusJSON are the parts of a node's status document that are judged here.
type poolJSON struct{ Free, Held, Revoking, Quarantined, Total int }

type linkJSON struct{ Name, State, Refusal string }

type rankJSON struct {
	Incarnation string
	Pools       map[string]poolJSON
	Leases      map[string]int
	Jobs        int
	Fences      int
	Quarantine  int
	Alarms      int
	Links       []linkJSON
}

type sideJSON struct {
	Leader map[string]json.RawMessage
	Ranks  []rankJSON
}

type statusJSON struct {
	Ready   bool
	Reason  string
	Stopped string
	Prefill *sideJSON
	Decode  *sideJSON
}

// status asks a node with `kvfence status --json`, in its namespace.
func (c *cluster) status(node string) (*statusJSON, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	argv := c.placed(node, []string{c.bin, "status", "--json", "--operator", c.places[node].operator})
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("status of %s: %w: %s", node, err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("status of %s: %w", node, err)
	}
	var doc struct{ Node *statusJSON }
	if err := json.Unmarshal(out, &doc); err != nil || doc.Node == nil {
		return nil, fmt.Errorf("status of %s is none: %w: %s", node, err, out)
	}
	return doc.Node, nil
}

// count is a number of a leader's status.
func (s *sideJSON) count(name string) int {
	var n int
	if s == nil || json.Unmarshal(s.Leader[name], &n) != nil {
		return -1
	}
	return n
}

func (s *statusJSON) sides() (out []*sideJSON) {
	for _, side := range []*sideJSON{s.Prefill, s.Decode} {
		if side != nil {
			out = append(out, side)
		}
	}
	return out
}

// inUse says what of a node's pools is not free; "" if nothing.
func (s *statusJSON) inUse() string {
	if s.Stopped != "" {
		return "stopped itself: " + s.Stopped
	}
	pages := 0
	for _, side := range s.sides() {
		for k, r := range side.Ranks {
			for component, p := range r.Pools {
				pages += p.Total
				if p.Free != p.Total {
					return fmt.Sprintf("rank %d component %s: %+v", k, component, p)
				}
			}
			for state, n := range r.Leases {
				if n != 0 {
					return fmt.Sprintf("rank %d: %d leases %s", k, n, state)
				}
			}
			if r.Jobs != 0 {
				return fmt.Sprintf("rank %d: %d jobs", k, r.Jobs)
			}
		}
	}
	if pages == 0 {
		return "the status shows no pool"
	}
	return ""
}

// alarms are the tags and digests that a node found bad.
func (s *statusJSON) alarms() (n int) {
	for _, side := range s.sides() {
		for _, r := range side.Ranks {
			n += r.Alarms + r.Quarantine
		}
	}
	return n
}

// pages counts what is held and what is revoking.
func (s *statusJSON) pages() (held, revoking int) {
	for _, side := range s.sides() {
		for _, r := range side.Ranks {
			for _, p := range r.Pools {
				held, revoking = held+p.Held, revoking+p.Revoking
			}
		}
	}
	return held, revoking
}
