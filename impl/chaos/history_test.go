//go:build chaos

package chaos

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"kvfence/impl/histories"
	"kvfence/model/history"
)

// historyRun records what clients of a cluster of processes are answered, in one history with what is done to the processes.
type historyRun struct {
	c     *cluster
	epoch time.Time
	op    *histories.Caller

	faults atomic.Int64 // begun and healed

	mu  sync.Mutex
	key string // of the tenant whose key changes
}

func (h *historyRun) caller(id int) *histories.Caller {
	return &histories.Caller{Client: history.Client{ID: id, Now: func() int64 { return int64(time.Since(h.epoch)) }}, URL: h.c.front.url, HTTP: h.c.front.client}
}

// keys are those in force, with one for the first tenant.
func (h *historyRun) keys(first string) (keys []history.Key) {
	for i, tenant := range h.c.tenants {
		key := h.c.keys[tenant]
		if i == 0 {
			key = first
		}
		keys = append(keys, history.Key{Key: key, Tenant: tenant})
	}
	return keys
}

func (h *historyRun) firstKey(set string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if set != "" {
		h.key = set
	}
	return h.key
}

// client asks n times for one tenant, and on until there has been a fault: a fast machine is through before the first.
func (h *historyRun) client(c *histories.Caller, rng *rand.Rand, n int) {
	i := c.ID % 6
	tenant := h.c.tenants[i]
	for len(c.Ops) < n || h.faults.Load() == 0 && len(c.Ops) < 20*n {
		key := h.c.keys[tenant]
		if i == 0 {
			key = h.firstKey("")
		}
		prompt := strings.Repeat(canary(tenant)+" ", rng.IntN(9)+1) + fmt.Sprint(rng.IntN(3))
		if rng.IntN(40) == 0 {
			prompt = strings.Repeat(prompt, 80)
		}
		a := c.Ask(key, prompt, 1+rng.IntN(5))
		if rng.IntN(3) == 0 {
			ctx, cancel := context.Background(), context.CancelFunc(func() {})
			if rng.IntN(4) == 0 {
				ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(40))*time.Millisecond)
			}
			c.Whole(ctx, a)
			cancel()
		} else if s := c.Open(a); s != nil && rng.IntN(8) == 0 {
			c.Hang(s)
		} else if s != nil {
			c.Rest(s)
		}
		if len(c.Ops) > 0 && failed(c.Ops[len(c.Ops)-1]) { // what a client does after an error: wait a little
			time.Sleep(time.Duration(20+rng.IntN(100)) * time.Millisecond)
		}
	}
}

// failed reports an answer that is the fault of a fault.
func failed(op porcupine.Operation) bool {
	switch o := op.Output.(type) {
	case history.Opened:
		return o.Code != "" && o.Status != 400 && o.Status != 401
	case history.Ended:
		return o.Code != "" && o.Status != 400 && o.Status != 401
	}
	return false
}

func (h *historyRun) moment(in any) { h.op.Do(in, func() any { return nil }) }

// operate kills and pauses processes and changes keys, one thing after another, each healed before the next.
func (h *historyRun) operate(rng *rand.Rand, stop chan struct{}) {
	for k := rng.IntN(5); ; k++ {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(100+rng.IntN(400)) * time.Millisecond):
		}
		if k%5 == 0 {
			h.rotate(fmt.Sprint("sk-history-", k))
			continue
		}
		h.moment(history.Fault{})
		switch k % 5 {
		case 1:
			h.c.prefills[rng.IntN(2)].kill()
		case 2:
			h.c.gateway.kill()
		case 3:
			h.c.decode.pause(context.Background(), 2*h.c.shape.liveness)
		case 4: // all of prefill: nothing new is answered until one is there again
			for _, p := range h.c.prefills {
				p.kill()
			}
			h.moment(history.Down{})
			time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
			h.moment(history.Up{})
		}
		h.c.heal()
		h.healed()
		h.moment(history.Healed{})
		h.faults.Add(1)
	}
}

// healed waits until every link is open and requests are answered in a row. What it asks is no part of the history.
func (h *historyRun) healed() {
	h.c.waitReady(60 * time.Second)
	for _, p := range []string{"p1", "p2"} {
		h.c.waitLinks(p, 60*time.Second)
	}
	probe := h.caller(h.op.ID)
	deadline := time.Now().Add(60 * time.Second)
	for row := 0; row < 8; row++ {
		probe.Ops = nil
		probe.Whole(context.Background(), probe.Ask(h.c.keys[h.c.tenants[7]], fmt.Sprint("a probe ", row), 2))
		if e := probe.Ops[0].Output.(history.Ended); e.Code != "" {
			require.True(h.c.t, time.Now().Before(deadline), "the cluster does not heal: %+v", e)
			row = -1
		}
	}
}

// rotate gives the first tenant another key.
func (h *historyRun) rotate(key string) {
	keys := h.keys(key)
	var b strings.Builder
	for _, k := range keys {
		sum := sha256.Sum256([]byte(k.Key))
		fmt.Fprintf(&b, "%s:%s\n", k.Tenant, hex.EncodeToString(sum[:]))
	}
	path := filepath.Join(h.c.dir, "keys")
	h.moment(history.Rotate{Keys: keys})
	require.NoError(h.c.t, os.WriteFile(path+".new", []byte(b.String()), 0o600))
	require.NoError(h.c.t, os.Rename(path+".new", path))
	require.Eventually(h.c.t, func() bool {
		r, err := http.NewRequest(http.MethodGet, h.c.front.url+"/v1/models", nil)
		require.NoError(h.c.t, err)
		r.Header.Set("Authorization", "Bearer "+key)
		resp, err := h.c.front.client.Do(r)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, 30*time.Second, 50*time.Millisecond)
	h.moment(history.Rotate{Keys: keys, Done: true})
	h.firstKey(key)
}

func (h *historyRun) record(clients, n int) []porcupine.Operation {
	rng := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed(), stream)) }
	h.op = h.caller(clients)
	all := []*history.Client{&h.op.Client}
	stop, over := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	for i := range clients {
		c := h.caller(i)
		all = append(all, &c.Client)
		wg.Go(func() { h.client(c, rng(uint64(i)), n) })
	}
	go func() {
		defer close(over)
		h.operate(rng(1<<40), stop)
	}()
	wg.Wait()
	close(stop)
	<-over
	return history.Join(all...)
}

// historyCounts is how often each answer was given.
func historyCounts(ops []porcupine.Operation) map[string]int {
	n := map[string]int{}
	for _, op := range ops {
		what := strings.TrimPrefix(fmt.Sprintf("%T", op.Input), "history.")
		switch o := op.Output.(type) {
		case history.Opened:
			what = strings.TrimSpace(fmt.Sprint(what, " ", o.Status, " ", o.Code))
		case history.Ended:
			what = strings.TrimSpace(what + " " + o.Code)
		}
		n[what]++
	}
	return n
}

func TestHistory_ProcessesKilledAndPaused_IsLinearizable(t *testing.T) {
	t.Logf("seed %d (KVFENCE_SEED takes it back)", seed())
	n := 60
	if os.Getenv("KVFENCE_CHAOS_LONG") != "" {
		n = 450
	}
	o, err := sharedOracle()
	require.NoError(t, err)
	h := &historyRun{c: newCluster(t, shape{}), epoch: time.Now()}
	first := h.c.keys[h.c.tenants[0]]
	h.firstKey(first)
	begin := time.Now()
	ops := h.record(24, n)
	took := time.Since(begin)
	begin = time.Now()
	model := history.ClientAPI(histories.Alone(o.model, windowTokens), h.keys(first), false)
	require.NoError(t, history.Check(model, ops))
	t.Logf("%d operations in %v, checked in %v: %v", len(ops), took.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond), historyCounts(ops))
	require.GreaterOrEqual(t, len(ops), 24*n)
	require.Positive(t, historyCounts(ops)["Fault"])
	require.Positive(t, historyCounts(ops)["Rest"])
	h.c.requireAllFree(60 * time.Second)
	h.c.requireNoAlarm()
	// The same history with one tenant's answer in another's place is none.
	at := slices.IndexFunc(ops, func(op porcupine.Operation) bool {
		e, ok := op.Output.(history.Ended)
		return ok && e.Code == "" && e.Said.Completion > 1
	})
	altered := slices.Clone(ops)
	e := altered[at].Output.(history.Ended)
	e.Said.Tokens = e.Said.Tokens[strings.Index(e.Said.Tokens[1:], `"`)+2:] + `"!"`
	altered[at].Output = e
	require.ErrorIs(t, history.Check(model, altered), history.ErrRefused)
}
