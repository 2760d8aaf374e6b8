package gateway

import (
	"context"
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
	"kvfence/impl/node/api"
	"kvfence/impl/workload"
	"kvfence/model/history"
)

const historyWindow = 64

// oracleNode is a node without pages and links: what the model says, and failures when told.
type oracleNode struct {
	model workload.Model
	down  atomic.Bool   // nothing is answered
	shaky atomic.Bool   // now and then something is lost
	calls atomic.Uint64 // to lose some
	wrong atomic.Int64  // answers that are to be altered: the planted bug
}

// Info implements api.Service.
func (o *oracleNode) Info(context.Context) (api.Info, error) {
	return api.Info{Model: o.model.Name(), Vocab: workload.Vocab, WindowTokens: historyWindow, PrefillPoolTokens: 1024, DecodePoolTokens: 1024, PageTokens: 8, Ready: true}, nil
}

// Generate implements api.Service.
func (o *oracleNode) Generate(ctx context.Context, req *api.Request, sink api.Sink) (done api.Done, err error) {
	n := len(req.Prompt)
	if n+req.MaxTokens > historyWindow {
		return done, api.Errorf(api.ContextLengthExceeded, "%d tokens", n)
	}
	lost := o.shaky.Load() && o.calls.Add(1)%3 == 0
	if o.down.Load() || lost && n%2 == 0 {
		return done, api.Errorf(api.PeerLost, "the prefill node is gone")
	}
	r, err := workload.Generate(ctx, o.model, req.Prompt, workload.Options{MaxTokens: req.MaxTokens})
	if err != nil {
		return done, err
	}
	if err := sink.Ready(api.Ready{DecodePromptTokens: n, PrefillPromptTokens: n}); err != nil {
		return done, err
	}
	if len(r.Tokens) > 0 && o.wrong.Add(-1) >= 0 {
		r.Tokens[0] ^= 1
	}
	for i, id := range r.Tokens {
		if lost && i > 0 {
			return done, api.Errorf(api.PeerLost, "the link is fenced")
		}
		if err := sink.Token(api.Token{ID: id, Logprob: -1}); err != nil {
			return done, err
		}
	}
	return api.Done{Finish: r.Finish, PromptTokens: n, CompletionTokens: len(r.Tokens)}, nil
}

// historyRig is a gateway behind a real socket, with clients that record.
type historyRig struct {
	t     *testing.T
	node  *oracleNode
	gate  *Gateway
	url   string
	http  *http.Client
	keys  string
	epoch time.Time
	busy  bool

	mu  sync.Mutex
	key string // ann's in force
}

func historyKeys(ann string) []history.Key {
	return []history.Key{{Key: ann, Tenant: "ann"}, {Key: "bob", Tenant: "bob"}, {Key: "cyd", Tenant: "cyd"}}
}

func newHistoryRig(t *testing.T, active, waiting int, busy bool) *historyRig {
	m, err := workload.New(workload.Config{Kind: workload.KindRolling, MaxWindow: historyWindow})
	require.NoError(t, err)
	r := &historyRig{t: t, node: &oracleNode{model: m}, keys: filepath.Join(t.TempDir(), "keys"), epoch: time.Now(), busy: busy, key: "ann-0"}
	r.writeKeys(historyKeys(r.key))
	backend := api.NewLocal(r.node, 1<<16)
	t.Cleanup(backend.Wait)
	g, srv := start(t, Config{KeysFile: r.keys, KeysReload: time.Nanosecond, MaxActive: active, MaxWaiting: waiting}, backend)
	tr := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(tr.CloseIdleConnections)
	r.gate, r.url, r.http = g, srv.URL, &http.Client{Transport: tr}
	return r
}

func (r *historyRig) writeKeys(keys []history.Key) {
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%s:%s:50\n", k.Tenant, HashKey(k.Key))
	}
	require.NoError(r.t, os.WriteFile(r.keys+".new", []byte(b.String()), 0o600))
	require.NoError(r.t, os.Rename(r.keys+".new", r.keys))
}

func (r *historyRig) caller(id int) *histories.Caller {
	return &histories.Caller{Client: history.Client{ID: id, Now: func() int64 { return int64(time.Since(r.epoch)) }}, URL: r.url, HTTP: r.http}
}

func (r *historyRig) annKey(key string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if key != "" {
		r.key = key
	}
	return r.key
}

// client asks until it has recorded n operations, for one of three tenants.
func (r *historyRig) client(c *histories.Caller, rng *rand.Rand, n int) {
	tenant := []string{"ann", "bob", "cyd"}[c.ID%3]
	for len(c.Ops) < n {
		key := tenant
		if tenant == "ann" {
			key = r.annKey("")
		}
		if rng.IntN(40) == 0 {
			key = "nobody"
		}
		prompt := fmt.Sprint(tenant, 4+rng.IntN(12))
		if rng.IntN(20) == 0 {
			prompt = strings.Repeat(prompt, 20)
		}
		a := c.Ask(key, prompt, 1+rng.IntN(4))
		if rng.IntN(4) == 0 {
			ctx, cancel := context.Background(), context.CancelFunc(func() {})
			if rng.IntN(4) == 0 {
				ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(2000))*time.Microsecond)
			}
			c.Whole(ctx, a)
			cancel()
			continue
		}
		switch s := c.Open(a); {
		case s == nil:
		case rng.IntN(8) == 0:
			c.Hang(s)
		default:
			c.Rest(s)
		}
	}
}

// operate does one thing after another until stop.
func (r *historyRig) operate(op *histories.Caller, rng *rand.Rand, stop chan struct{}) {
	moment := func(in any) { op.Do(in, func() any { return nil }) }
	for k := 1; ; k++ {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(5+rng.IntN(60)) * time.Millisecond):
		}
		switch rng.IntN(3) {
		case 0:
			keys := historyKeys(fmt.Sprint("ann-", k))
			moment(history.Rotate{Keys: keys})
			r.writeKeys(keys)
			// Each look at a key reads the file first: the new ones are in force.
			moment(history.Rotate{Keys: keys, Done: true})
			r.annKey(keys[0].Key)
		case 1:
			moment(history.Fault{})
			r.node.shaky.Store(true)
			time.Sleep(time.Duration(rng.IntN(10)) * time.Millisecond)
			r.node.shaky.Store(false)
			moment(history.Healed{})
		case 2:
			moment(history.Fault{})
			r.node.down.Store(true)
			moment(history.Down{})
			time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
			moment(history.Up{})
			r.node.down.Store(false)
			moment(history.Healed{})
		}
	}
}

// record lets so many clients ask n times each under faults and changes of keys, and then a little more while the gateway drains.
func (r *historyRig) record(clients, n int) []porcupine.Operation {
	seed := uint64(time.Now().UnixNano())
	r.t.Logf("seed %d", seed)
	op := r.caller(clients)
	all := []*history.Client{&op.Client}
	var callers []*histories.Caller
	for i := range clients {
		c := r.caller(i)
		callers, all = append(callers, c), append(all, &c.Client)
	}
	phase := func(n int, meanwhile func(stop chan struct{})) {
		stop, over := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			meanwhile(stop)
		}()
		var wg sync.WaitGroup
		for i, c := range callers {
			wg.Go(func() { r.client(c, rand.New(rand.NewPCG(seed, uint64(i*10000+n))), n) })
		}
		wg.Wait()
		close(stop)
		<-over
	}
	phase(n, func(stop chan struct{}) { r.operate(op, rand.New(rand.NewPCG(seed, 1<<40)), stop) })
	phase(n+20, func(chan struct{}) {
		op.Do(history.Drain{}, func() any { return nil })
		r.gate.Drain()
		op.Do(history.Drain{Done: true}, func() any { return nil })
	})
	return history.Join(all...)
}

func (r *historyRig) specification() porcupine.Model {
	return history.ClientAPI(histories.Alone(r.node.model, historyWindow), historyKeys("ann-0"), r.busy)
}

// historyAnswers counts what was answered.
func historyAnswers(ops []porcupine.Operation) map[string]int {
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

func TestHistory_ManyClientsFaultsAndKeys_IsLinearizable(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	r := newHistoryRig(t, 16, 256, false)
	begin := time.Now()
	ops := r.record(24, 400)
	took := time.Since(begin)
	begin = time.Now()
	require.NoError(t, history.Check(r.specification(), ops))
	n := historyAnswers(ops)
	t.Logf("%d operations in %v, checked in %v: %v", len(ops), took.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond), n)
	require.GreaterOrEqual(t, len(ops), 10_000)
	for _, what := range []string{"Open 200", "Rest", "Hang", "Whole", "Open 401 invalid_api_key", "Open 502 peer_lost", "Rest peer_lost", "Open 400 context_length_exceeded", "Open 503 shutting_down", "Down", "Rotate"} {
		require.Positive(t, n[what], what)
	}
	streams, most := history.Streams(ops, func(key string) string { return key[:3] })
	require.LessOrEqual(t, streams, 16)
	require.LessOrEqual(t, most, 8)
}

func TestHistory_FullGateway_SaysSoAndKeepsToItsBounds(t *testing.T) {
	r := newHistoryRig(t, 4, 4, true)
	ops := r.record(24, 60)
	require.NoError(t, history.Check(r.specification(), ops))
	n := historyAnswers(ops)
	t.Log(len(ops), n)
	require.Positive(t, n["Open 429 over_capacity"]+n["Whole over_capacity"])
	streams, most := history.Streams(ops, func(key string) string { return key[:3] })
	require.LessOrEqual(t, streams, 4)
	require.LessOrEqual(t, most, 2)
	r.busy = false
	require.ErrorIs(t, history.Check(r.specification(), ops), history.ErrRefused, "a gateway that is not full may not say so")
}

// A node that hands out a few wrong tokens is found by the history.
func TestHistory_WrongTokens_AreRefused(t *testing.T) {
	r := newHistoryRig(t, 16, 256, false)
	r.node.wrong.Store(20) // some of them to clients that have gone
	require.ErrorIs(t, history.Check(r.specification(), r.record(6, 30)), history.ErrRefused)
}

// What is changed in a true history makes it one that is refused.
func TestHistory_AlteredAnswers_AreRefused(t *testing.T) {
	r := newHistoryRig(t, 16, 256, false)
	ops := r.record(6, 100)
	require.NoError(t, history.Check(r.specification(), ops))
	good := func(op porcupine.Operation) (history.Ended, bool) {
		e, ok := op.Output.(history.Ended)
		return e, ok && e.Code == "" && e.Said.Completion > 1
	}
	for name, lie := range map[string]func(ops []porcupine.Operation, i int) bool{
		"another tenant's tokens": func(ops []porcupine.Operation, i int) bool {
			mine, ok := good(ops[i])
			for j := i + 1; j < len(ops) && ok; j++ {
				if other, ok := good(ops[j]); ok && other.Said != mine.Said {
					mine.Said = other.Said
					ops[i].Output = mine
					return true
				}
			}
			return false
		},
		"one token less": func(ops []porcupine.Operation, i int) bool {
			e, ok := good(ops[i])
			e.Said.Completion--
			ops[i].Output = e
			return ok
		},
		"an answer twice": func(ops []porcupine.Operation, i int) bool {
			_, ok := good(ops[i])
			if ok {
				again := ops[i]
				again.Call, again.Return = ops[len(ops)-1].Return+1, ops[len(ops)-1].Return+2
				ops[len(ops)-1] = again
			}
			return ok
		},
		"a success with a key that is not in force": func(ops []porcupine.Operation, i int) bool {
			o, ok := ops[i].Output.(history.Opened)
			ops[i].Output = history.Opened{Status: 200}
			return ok && o.Status == 401 && ops[i].Input.(history.Open).Ask.Key == "nobody"
		},
		"an admission behind the drain": func(ops []porcupine.Operation, i int) bool {
			o, ok := ops[i].Output.(history.Opened)
			drained := slices.IndexFunc(ops, func(op porcupine.Operation) bool { return op.Input == any(history.Drain{Done: true}) })
			ops[i].Output = history.Opened{Status: 200}
			return ok && o.Status == 503 && ops[i].Call > ops[drained].Return
		},
		"a failure without a cause": func(ops []porcupine.Operation, i int) bool {
			o, ok := ops[i].Output.(history.Opened)
			ops[i].Output = history.Opened{Status: 500, Code: "internal"}
			return ok && o.Status == 502
		},
	} {
		var err error
		lied := 0
		for i := 0; i < len(ops) && lied < 4 && err == nil; i++ {
			if altered := slices.Clone(ops); lie(altered, i) {
				lied++
				err = history.Check(r.specification(), altered)
			}
		}
		require.ErrorIs(t, err, history.ErrRefused, "%s, at %d places", name, lied)
	}
}
