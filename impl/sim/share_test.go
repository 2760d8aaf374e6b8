package sim

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/core"
	"kvfence/spec"
)

// sharing makes a drawn cluster share much and die little.
func sharing(c *Config) { c.Sharing, c.Sources, c.NoState = 16, 16, c.Seed%2 == 0 }

// Random runs under faults in which leases share prefixes, fork and are evicted: the promise holds, and it is not for want of sharing.
func TestRun_Sharing_KeepsThePromise(t *testing.T) {
	hits, sources, forked, ok := 0, 0, 0, 0
	for seed := uint64(1); seed <= 80; seed++ {
		out, err := Run(seed, sharing)
		require.NoError(t, err, "seed %d", seed)
		hits, sources, forked, ok = hits+out.Hits, sources+out.Sources, forked+out.Forked, ok+out.OK
	}
	t.Logf("%d ended well, %d shares at decode, %d at prefill, %d steps of further samples", ok, hits, sources, forked)
	require.NotZero(t, sources)
	require.Greater(t, hits, 100)
	require.Greater(t, forked, 20)
}

// Content ids without their domain: tenants and adapters would share equal prompts. The ledger compares the domain as well, and refuses.
func TestRun_ContentIDsWithoutDomain_AreRefusedByTheLedger(t *testing.T) {
	refused := 0
	for seed := uint64(1); seed <= 60; seed++ {
		_, err := Run(seed, func(c *Config) {
			sharing(c)
			c.Plant.AnyDomain = true
			c.Trace = func(line string) {
				if containsAll(line, "refuses", "another domain") {
					refused++
				}
			}
		})
		require.NoError(t, err, "seed %d", seed)
	}
	require.NotZero(t, refused, "the guard is alive")
}

// A second request of one tenant gets the first one's pages, one of another tenant or adapter does not.
func TestWorld_SecondRequestOfATenant_SharesAndOthersDoNot(t *testing.T) {
	for _, pull := range []bool{false, true} {
		w := New(Config{Pull: pull, Prefill: []int{2}, Decode: []int{2}, Sharing: 16})
		require.NoError(t, w.RunUntil(w.Connected, 20_000))
		ask := func(tenant, adapter string) *Request {
			q := w.Ask(0, core.Submit{Tenant: tenant, Adapter: adapter, Prompt: prompt(10, 1), MaxNew: 5})
			require.NoError(t, w.RunUntil(w.Answered, 40_000))
			require.True(t, q.OK(), "%s %s", q.Cause, q.Detail)
			return q
		}
		ask("x", "")
		require.Zero(t, w.shared)
		ask("x", "")
		require.Equal(t, 4, w.shared, "two pages at two ranks")
		ask("y", "")
		ask("x", adapter)
		require.Equal(t, 4, w.shared)
		ask("y", "")
		require.Equal(t, 8, w.shared)
		require.NoError(t, w.RunUntil(w.Clean, 20_000))
		require.Zero(t, w.alarms)
	}
}

// A bad tag in a shared page fails every request that holds it, and none of them has an answer from it; the next one has the page anew.
func TestWorld_BadTagInASharedPage_FailsAllItsHolders(t *testing.T) {
	w := New(Config{Sharing: 16, DecodePages: 24, DecodeLeader: func(c *core.DecodeLeaderConfig) { c.MaxRetries = -1 }})
	require.NoError(t, w.RunUntil(w.Connected, 20_000))
	ask := func(n uint32) *Request {
		return w.Ask(0, core.Submit{Tenant: "x", Prompt: prompt(10, 1), MaxNew: n})
	}
	a := ask(40)
	require.NoError(t, w.RunUntil(func() bool { return a.Opened }, 40_000))
	b, c := ask(40), ask(40)
	require.NoError(t, w.RunUntil(func() bool { return b.Opened && c.Opened && !a.Done }, 60_000))
	require.Equal(t, 4, w.shared)
	r := w.decode[0].ranks[0]
	page := spec.PageID(0)
	r.mem[spec.KV].Slot(page, 0)[0] ^= 1
	require.NoError(t, w.RunUntil(w.Answered, 60_000))
	for _, q := range []*Request{a, b, c} {
		require.Equal(t, spec.CauseMismatch, q.Cause, "%+v", q)
	}
	require.NotZero(t, w.alarms)
	d := ask(4)
	require.NoError(t, w.RunUntil(w.Answered, 60_000))
	require.True(t, d.OK(), "%s %s", d.Cause, d.Detail)
	require.Equal(t, 4, w.shared, "it was published no more")
	require.NoError(t, w.RunUntil(w.Clean, 20_000))
}

func containsAll(line string, words ...string) bool {
	for _, word := range words {
		if !strings.Contains(line, word) {
			return false
		}
	}
	return true
}
