//go:build chaos

package chaos

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// seen waits until some link of the decode node's shows a refusal that contains all words.
func (c *cluster) seen(node string, words ...string) string {
	found := ""
	require.Eventually(c.t, func() bool {
		s, err := c.status(node)
		if err != nil || s.Decode == nil {
			return false
		}
		for _, r := range s.Decode.Ranks {
			for _, l := range r.Links {
				if containsAll(l.Refusal, words) {
					found = l.Refusal
					return true
				}
			}
		}
		return false
	}, 30*time.Second, 50*time.Millisecond, "no link of %s says %q", node, words)
	return found
}

func containsAll(s string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(s, w) {
			return false
		}
	}
	return true
}

// requireUnused: the gateway is not ready and a request gets an error that names its cause.
func (r *run) requireUnused() {
	require.Eventually(r.t, func() bool {
		resp, err := r.c.front.client.Get(r.c.front.url + "/readyz")
		if err != nil {
			return false // not up yet
		}
		resp.Body.Close()
		require.NotEqual(r.t, http.StatusOK, resp.StatusCode)
		return true
	}, 30*time.Second, 50*time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	o, err := r.o.do(ctx, r.c.front, draw(r.rng(7), r.c))
	require.NoError(r.t, err)
	require.Equal(r.t, "failed", o.kind, "%+v", o)
}

// TestCaseB54_WrongNodeAtTheAddress: the decode node is told that p1 lives where p2 does. Identity is checked before anything is
// exchanged: the link never opens, and status names both.
func TestCaseB54_WrongNodeAtTheAddress_RefusedByName(t *testing.T) {
	t.Run("plain", func(t *testing.T) {
		c := makeCluster(t, shape{})
		c.decode.replace("p2="+c.places["p2"].control, "p2="+c.places["p1"].control)
		c.decode.replace("p1="+c.places["p1"].control, "p1="+c.places["p2"].control)
		r := newRun(t, c)
		c.launch()
		t.Log(c.seen("d1", "name", "p1", "p2"))
		r.requireUnused()
		c.requireAllFree(30 * time.Second)
	})
	t.Run("certificates", func(t *testing.T) {
		c := makeCluster(t, shape{tls: true})
		c.decode.replace("p2="+c.places["p2"].control, "p2="+c.places["p1"].control)
		c.decode.replace("p1="+c.places["p1"].control, "p1="+c.places["p2"].control)
		r := newRun(t, c)
		c.launch()
		r.requireUnused()
		require.Eventually(t, func() bool {
			return containsAll(c.decode.tail(100_000), []string{"certificate is valid for", "p1", "p2"})
		},
			30*time.Second, 50*time.Millisecond, "the log does not say whose certificate was shown")
	})
}

// TestCaseB54_AnotherServiceAtTheAddress: p1's address is a gateway's; p2 serves.
func TestCaseB54_AnotherServiceAtTheAddress_TheOtherPeerServes(t *testing.T) {
	c := makeCluster(t, shape{})
	c.decode.replace("p1="+c.places["p1"].control, "p1="+c.places["g1"].gw)
	r := newRun(t, c)
	c.begin()
	r.clean(10)
	c.requireAllFree(30 * time.Second)
}

// TestChaos_OnePrefillNodeIsDownFromTheStart: the other one serves, and the first is used once it is there.
func TestChaos_OnePrefillNodeIsDownFromTheStart_TheOtherServes(t *testing.T) {
	c := makeCluster(t, shape{prefill: 2})
	r := newRun(t, c)
	c.launch(c.prefills[1], c.decode, c.gateway)
	c.waitReady(60 * time.Second)
	r.clean(10)
	c.prefills[0].start()
	c.waitLinks("p1", 60*time.Second)
	r.clean(10)
	c.requireAllFree(30 * time.Second)
}

// TestChaos_OnePrefillNodeFailsAgainAndAgain: while the other one is healthy no request fails before its first token.
func TestChaos_OnePrefillNodeFailsAgainAndAgain_OnlyBegunStreamsFail(t *testing.T) {
	r := newRun(t, newCluster(t, shape{request: time.Minute}))
	r.clients = 60
	r.storm(duration(8*time.Second), func(ctx context.Context, rng *rand.Rand) {
		for k := 0; ctx.Err() == nil; k++ {
			wait(ctx, time.Duration(300+rng.IntN(1000))*time.Millisecond)
			if k%2 == 0 {
				r.kill(ctx, rng, r.c.prefills[0])
			} else {
				r.c.prefills[0].pause(ctx, 4*r.c.shape.liveness)
			}
		}
	})
	require.Zero(t, r.counts["failed: 502 peer_lost"], "a healthy peer was there")
}

// TestChaos_Twins: two decode nodes with one name. While the first is alive the prefill nodes refuse the second, by name; the
// first serves on. When the first is dead the second is taken.
func TestChaos_Twins_SecondIsRefusedWhileTheFirstLives(t *testing.T) {
	c := makeCluster(t, shape{})
	free := ports(t, 2, 1)
	c.places["twin"] = place{api: free[0], operator: free[1]}
	twin := newProc(t, c.dir, "twin", append([]string{}, c.decode.argv...)...)
	twin.replace(c.places["d1"].api, free[0])
	twin.replace(c.places["d1"].operator, c.places["twin"].operator)
	r := newRun(t, c)
	c.begin()
	t.Cleanup(twin.kill)
	twin.start()
	t.Log(c.seen("twin", "twin", "d1"))
	r.clean(20)
	s, err := c.status("twin")
	require.NoError(t, err)
	require.False(t, s.Ready)
	c.decode.kill()
	require.Eventually(t, func() bool { s, err := c.status("twin"); return err == nil && s.Ready }, 60*time.Second, 50*time.Millisecond,
		"the second is not taken although the first is dead")
	c.requireAllFree(30*time.Second, c.prefills...)
}
