package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/gateway"
	"kvfence/impl/histories"
	"kvfence/model/history"
)

// front is a gateway before a pair of nodes, all in this process, with real sockets between them.
type front struct {
	*pair
	gate  *Node
	shape func(*config.Config)
	keys  string // the key file
	url   string
	http  *http.Client
	epoch time.Time
}

// gateWidth is how many requests the gateway lets through at once; a tenant may have half of them.
const gateWidth = 16

func startFront(t *testing.T, change func(*config.Config)) *front {
	dir := shortDir(t)
	f := &front{keys: filepath.Join(t.TempDir(), "keys"), epoch: time.Now()}
	f.shape = func(c *config.Config) {
		change(c)
		c.Transport.SocketDir, c.Timeouts.Liveness, c.Model = dir, time.Second, config.Model{Kind: "rolling"}
	}
	f.writeKeys(t, firstKeys())
	f.pair = startPair(t, f.shape)
	f.gate = startNode(t, small(t, config.RoleGateway, func(c *config.Config) {
		f.shape(c)
		c.Gateway.Upstream, c.Gateway.KeysFile, c.Bounds.Running = "http://"+f.decode.Addresses().API, f.keys, gateWidth
	}))
	f.url = "http://" + f.gate.Addresses().Gateway
	tr := &http.Transport{MaxIdleConnsPerHost: 64}
	f.http = &http.Client{Transport: tr}
	t.Cleanup(tr.CloseIdleConnections)
	return f
}

// firstKeys are in force at the start; ann's changes now and then.
func firstKeys() []history.Key {
	return []history.Key{{Key: "ann-0", Tenant: "ann"}, {Key: "bob", Tenant: "bob"}, {Key: "cyd", Tenant: "cyd"}}
}

func (f *front) writeKeys(t *testing.T, keys []history.Key) {
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%s:%s:50\n", k.Tenant, gateway.HashKey(k.Key))
	}
	require.NoError(t, os.WriteFile(f.keys+".new", []byte(b.String()), 0o600))
	require.NoError(t, os.Rename(f.keys+".new", f.keys))
}

func (f *front) caller(id int) *histories.Caller {
	return &histories.Caller{Client: history.Client{ID: id, Now: func() int64 { return int64(time.Since(f.epoch)) }}, URL: f.url, HTTP: f.http}
}

// frontClient is one client of a tenant.
type frontClient struct {
	*histories.Caller
	rng    *rand.Rand
	tenant string
	key    func() string
}

// prompt is one of a few of the tenant's, which begin alike; every thirtieth does not fit.
func (c *frontClient) prompt() string {
	if c.rng.IntN(30) == 0 {
		return strings.Repeat(c.tenant, 100)
	}
	p := c.tenant + strings.Repeat("-"+c.tenant, c.rng.IntN(9))
	return fmt.Sprint(p, c.rng.IntN(4))
}

// run asks until it has recorded n operations.
func (c *frontClient) run(n int) {
	for len(c.Ops) < n {
		a := c.Ask(c.key(), c.prompt(), 1+c.rng.IntN(6))
		if c.rng.IntN(8) < 1 {
			c.leave(a)
			continue
		}
		if c.rng.IntN(8) < 3 {
			c.Whole(context.Background(), a)
			continue
		}
		s := c.Open(a)
		switch {
		case s == nil:
		case c.rng.IntN(6) == 0:
			c.Hang(s)
		default:
			c.Rest(s)
		}
	}
}

// leave asks for an answer and goes away on the way, perhaps.
func (c *frontClient) leave(a history.Ask) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.rng.IntN(30))*time.Millisecond)
	defer cancel()
	c.Whole(ctx, a)
}

// record lets clients ask while keys change, links are cut and the prefill node is replaced.
func (f *front) record(t *testing.T, clients, n int) []porcupine.Operation {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var mu sync.Mutex
	annKey := firstKeys()[0].Key
	var all []*history.Client
	var wg sync.WaitGroup
	for i := range clients {
		tenant := firstKeys()[i%3].Tenant
		c := &frontClient{Caller: f.caller(i), rng: rand.New(rand.NewPCG(seed, uint64(i))), tenant: tenant, key: func() string {
			mu.Lock()
			defer mu.Unlock()
			if tenant == "ann" {
				return annKey
			}
			return tenant
		}}
		all = append(all, &c.Client)
		wg.Go(func() { c.run(n) })
	}
	stop, stirred := make(chan struct{}), make(chan struct{})
	op := f.caller(clients)
	all = append(all, &op.Client)
	go func() {
		defer close(stirred)
		f.stirFront(t, op, rand.New(rand.NewPCG(seed, 99)), stop, func(key string) {
			mu.Lock()
			defer mu.Unlock()
			annKey = key
		})
	}()
	wg.Wait()
	close(stop)
	<-stirred
	return history.Join(all...)
}

// stirFront is the operator and the bad luck, one thing after another, each healed before the next.
func (f *front) stirFront(t *testing.T, op *histories.Caller, rng *rand.Rand, stop chan struct{}, told func(key string)) {
	addr := f.prefill.Addresses().Control
	for k := 0; ; k++ {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(300+rng.IntN(500)) * time.Millisecond):
		}
		if k%3 == 0 {
			f.rotate(t, op, k, told)
			continue
		}
		moment(op, history.Fault{})
		if k%3 == 1 {
			f.cut(rng)
		} else {
			require.NoError(t, f.prefill.Close())
			moment(op, history.Down{})
			time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond) // without any prefill node
			moment(op, history.Up{})
			f.prefill = startNode(t, small(t, config.RolePrefill, func(c *config.Config) { f.shape(c); c.Prefill.Control = addr }))
		}
		f.heal(t, op)
		moment(op, history.Healed{})
	}
}

// moment records what those who run the gateway do.
func moment(op *histories.Caller, in any) { op.Do(in, func() any { return nil }) }

// cut breaks a data path or a control connection.
func (f *front) cut(rng *rand.Rand) {
	d, p := f.decode.decode, f.prefill.prefill
	if rng.IntN(2) == 0 {
		d.loop.call(func() {
			for _, l := range d.ranks[0].links {
				l.push.stop(everyEpoch, func(bool) {})
				l.pull.stop(everyEpoch, func(bool) {})
			}
		})
		return
	}
	p.loop.call(func() {
		for _, c := range p.ranks[0].conns {
			c.abort()
		}
	})
}

// heal waits until requests are answered in a row. What it asks is not part of the history.
func (f *front) heal(t *testing.T, op *histories.Caller) {
	probe := f.caller(op.ID)
	deadline := time.Now().Add(patience)
	for row := 0; row < 3; row++ {
		probe.Ops = nil
		probe.Whole(context.Background(), probe.Ask("bob", fmt.Sprint("bob probes ", row), 2))
		if e := probe.Ops[0].Output.(history.Ended); e.Code != "" {
			require.True(t, time.Now().Before(deadline), "the pair does not heal: %+v", e)
			row = -1
		}
	}
}

// rotate gives ann another key: from the end of it on the old one is refused.
func (f *front) rotate(t *testing.T, op *histories.Caller, k int, told func(string)) {
	keys := firstKeys()
	keys[0].Key = fmt.Sprint("ann-", k+1)
	moment(op, history.Rotate{Keys: keys})
	f.writeKeys(t, keys)
	require.Eventually(t, func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/v1/models", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+keys[0].Key)
		resp, err := f.http.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode == http.StatusOK
	}, patience, 20*time.Millisecond)
	moment(op, history.Rotate{Keys: keys, Done: true})
	told(keys[0].Key)
}

// answers counts what clients were answered.
func answers(ops []porcupine.Operation) map[string]int {
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

// longHistory reports whether histories are as long as in make test-long: the ten thousand operations of make test are recorded in
// impl/gateway, where one costs less.
func longHistory() bool { return os.Getenv("KVFENCE_HISTORY_LONG") != "" }

func TestClientHistory_ManyClientsUnderFaults_IsLinearizable(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for name, c := range map[string]struct {
		change  func(*config.Config)
		n, long int
	}{
		"tcp": {func(*config.Config) {}, 70, 450},
		"shm": {func(c *config.Config) { c.Transport.Kind = "shm" }, 30, 450},
	} {
		t.Run(name, func(t *testing.T) {
			if longHistory() {
				c.n = c.long
			}
			f := startFront(t, c.change)
			alone := histories.Alone(f.decode.decode.model, int(f.decode.decode.cfg.Sizes.Window))
			begin := time.Now()
			ops := f.record(t, 24, c.n)
			took := time.Since(begin)
			begin = time.Now()
			require.NoError(t, history.Check(history.ClientAPI(alone, firstKeys(), false), ops))
			t.Logf("%d operations in %v, %d overlap, checked in %v: %v", len(ops), took.Round(time.Millisecond), overlaps(ops), time.Since(begin).Round(time.Millisecond), answers(ops))
			require.GreaterOrEqual(t, len(ops), 24*c.n)
			require.Greater(t, overlaps(ops), len(ops)/2)
			streams, most := history.Streams(ops, func(key string) string { return key[:3] })
			require.LessOrEqual(t, streams, gateWidth)
			require.LessOrEqual(t, most, gateWidth/2)
			require.Positive(t, answers(ops)["Whole"])
			require.Positive(t, answers(ops)["Rest"])
			f.ready()
			f.idle()
			require.NoError(t, f.decode.Err())
		})
	}
}
