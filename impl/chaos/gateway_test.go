//go:build chaos

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patient are timeouts so long that whatever comes to an end here does so by a message, not by a timeout.
const patient = 5 * time.Minute

// longPrompt fills several chunks and pages; its answer goes on for hundreds of tokens.
func longPrompt(tenant string) string { return strings.Repeat(canary(tenant)+" goes on. ", 10) }

// openStream sends a request with stream set and returns the response once the status line is there.
func (c *cluster) openStream(ctx context.Context, tenant string, tokens int) (*http.Response, error) {
	body, err := json.Marshal(map[string]any{"model": "kvfence-transformer", "prompt": longPrompt(tenant), "max_tokens": tokens, "temperature": 0, "stream": true})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.front.url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.keys[tenant])
	req.Header.Set("Content-Type", "application/json")
	return c.front.client.Do(req)
}

// TestChaos_GatewayKilledInMidStream: its loss is its clients' loss. The decode node aborts what it ran for them, all pages come
// back without any timeout, and a new gateway serves.
func TestChaos_GatewayKilledInMidStream_PagesComeBackAtOnce(t *testing.T) {
	for _, transport := range []string{"tcp", "shm"} {
		t.Run(transport, func(t *testing.T) {
			r := newRun(t, newCluster(t, shape{transport: transport, liveness: patient, request: patient}))
			c := r.c
			const streams, running = 40, 10
			first := make(chan struct{}, streams)
			var wg sync.WaitGroup
			for i := range streams {
				wg.Go(func() {
					resp, err := c.openStream(context.Background(), c.tenants[i], 600)
					if err != nil {
						return // the gateway was killed before
					}
					defer resp.Body.Close()
					sc := bufio.NewScanner(resp.Body)
					if resp.StatusCode == http.StatusOK && sc.Scan() {
						first <- struct{}{}
					}
					for sc.Scan() { // to the break
					}
				})
			}
			for range running {
				select {
				case <-first:
				case <-time.After(2 * time.Minute):
					require.FailNow(t, "too few streams began")
				}
			}
			s, err := c.status("d1")
			require.NoError(t, err)
			require.Positive(t, s.Decode.count("running"))
			require.NotEmpty(t, c.notFree(c.decode), "no page in use: the test shows nothing")
			c.gateway.kill()
			begin := time.Now()
			c.requireAllFree(60 * time.Second)
			t.Logf("all pages free %v after the kill; %d were running, %d filling", time.Since(begin).Round(time.Millisecond), s.Decode.count("running"), s.Decode.count("filling"))
			wg.Wait()
			c.gateway.start()
			r.settled()
		})
	}
}

// TestChaos_ClientsLeaveInEveryPhase: clients go away after every time from nothing to beyond a whole answer, and others after
// the first, second, third ... token.
func TestChaos_ClientsLeaveInEveryPhase_PagesComeBackWithoutTimeouts(t *testing.T) {
	for _, transport := range []string{"tcp", "shm"} {
		t.Run(transport, func(t *testing.T) {
			r := newRun(t, newCluster(t, shape{transport: transport, liveness: patient, request: patient}))
			c := r.c
			whole := r.whole(t)
			const leavers = 250
			var wg sync.WaitGroup
			var mu sync.Mutex
			left := map[string]int{}
			for i := range leavers {
				wg.Go(func() {
					tenant := c.tenants[i%len(c.tenants)]
					patience := patient // every other one leaves by tokens, the others by time
					if i%2 == 0 {
						patience = 6 * whole * time.Duration(i) / leavers
					}
					ctx, cancel := context.WithTimeout(context.Background(), patience)
					defer cancel()
					where := "before the status line"
					if resp, err := c.openStream(ctx, tenant, 40); err == nil {
						where = "in the stream"
						sc := bufio.NewScanner(resp.Body)
						for n := 0; n < 2*(i%20) && sc.Scan(); n++ { // a line of data and an empty one for each token
						}
						resp.Body.Close()
					}
					mu.Lock()
					left[where]++
					mu.Unlock()
				})
			}
			wg.Wait()
			t.Logf("an answer alone takes %v; left %v", whole, left)
			require.Positive(t, left["before the status line"])
			require.Positive(t, left["in the stream"])
			begin := time.Now()
			c.requireAllFree(60 * time.Second)
			t.Logf("all pages free %v after the last client left", time.Since(begin).Round(time.Millisecond))
			r.settled()
		})
	}
}

// whole measures one answer alone.
func (r *run) whole(t *testing.T) time.Duration {
	begin := time.Now()
	resp, err := r.c.openStream(context.Background(), r.c.tenants[0], 40)
	require.NoError(t, err)
	defer resp.Body.Close()
	sc := bufio.NewScanner(resp.Body)
	done := false
	for sc.Scan() {
		done = done || sc.Text() == "data: [DONE]"
	}
	require.True(t, done)
	return time.Since(begin)
}
