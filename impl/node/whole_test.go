package node

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/core"
	"kvfence/impl/node/api"
	"kvfence/impl/trace"
	"kvfence/impl/workload"
	"kvfence/model/follow"
	"kvfence/spec"
)

func startAll(t *testing.T, change func(*config.Config)) *Node {
	t.Helper()
	n := startNode(t, small(t, config.RoleAll, change))
	require.Eventually(t, func() bool { return n.Ready(t.Context()) == nil }, patience, 5*time.Millisecond)
	return n
}

// complete asks the gateway for a completion of token ids and returns status and body.
func complete(t *testing.T, n *Node, prompt []int32, maxNew int) (int, []byte) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": n.decode.model.Name(), "prompt": prompt, "max_tokens": maxNew, "temperature": 0})
	require.NoError(t, err)
	resp, err := http.Post("http://"+n.Addresses().Gateway+"/v1/completions", "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, b
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(b)
}

func TestAll_ThroughTheGateway_TextIsThatOfOneProcess(t *testing.T) {
	n := startAll(t, nil)
	prompt := testRequest(50, 3, 1).Prompt
	status, body := complete(t, n, prompt, 20)
	require.Equal(t, 200, status, "%s", body)
	want, err := workload.Generate(t.Context(), n.decode.model, prompt, workload.Options{MaxTokens: 20})
	require.NoError(t, err)
	var got struct {
		Choices []struct{ Text string }
		Usage   struct {
			PromptTokens int `json:"prompt_tokens"`
		}
	}
	require.NoError(t, json.Unmarshal(body, &got))
	require.Equal(t, strings.ToValidUTF8(string(workload.Decode(want.Tokens)), "\uFFFD"), got.Choices[0].Text)
	require.Equal(t, 50, got.Usage.PromptTokens)
}

// A prompt that takes long says how far it is: in the log, and in the status.
func TestPrefill_LongPrompt_SaysHowFarItIs(t *testing.T) {
	var log lockedBuffer
	cfg := small(t, config.RoleAll, func(c *config.Config) { c.Sizes.Window, c.Sizes.Pool, c.Prefill.Chunk = 4096, 4096, 64 })
	n, err := Start(cfg, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Close()) }()
	n.prefill.loop.call(func() { n.prefill.computing.every = 0 })
	require.Eventually(t, func() bool { return n.Status(t.Context()).Ready }, patience, 10*time.Millisecond)
	status, body := complete(t, n, make([]int32, 1000), 2)
	require.Equal(t, 200, status, "%s", body)
	require.Regexp(t, `msg=computing .*computed=[1-9][0-9]* tokens=1000 `, log.String())
	s := Status{Prefill: &PrefillStatus{Leader: core.PrefillLeaderStatus{Tokens: 1000, Computed: 64, OldestTokens: 1000, OldestComputed: 64}}}
	require.Contains(t, s.Text(), "computed 64 of 1000 prompt tokens, of the oldest 64 of 1000")
}

// lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// The incident's own shape: a window of 1,048,576 tokens over a prefill pool of 681,280.
func TestAll_IncidentShape_OneTokenTooManyIs400AndTheOtherIsAnswered(t *testing.T) {
	shape := func(c *config.Config) {
		c.Model = config.Model{Kind: "rolling"}
		c.Sizes.Window, c.Sizes.PrefillPool, c.Sizes.DecodePool, c.Sizes.Page = 1048576, 681280, 2040000, 16
	}
	_, err := Start(small(t, config.RoleAll, shape), testLog(t))
	require.ErrorIs(t, err, ErrPreflight)
	require.ErrorContains(t, err, "window 1048576 tokens does not fit the prefill pool of 681280 tokens")

	n := startAll(t, func(c *config.Config) { shape(c); c.Sizes.AllowWindowOverPool = true })
	prompt := make([]int32, 681281)
	for i := range prompt {
		prompt[i] = int32(i*7) % 256
	}
	status, body := complete(t, n, prompt, 16)
	require.Equal(t, 400, status)
	require.Contains(t, string(body), "context_length_exceeded")
	require.Contains(t, string(body), "681281")
	require.Contains(t, string(body), "681280")
	s := n.Status(t.Context())
	require.Equal(t, spec.LeaseID(1), s.Decode.Ranks[0].Next, "no lease was ever made")
	require.Empty(t, notFree(s))

	status, body = complete(t, n, prompt[:681280], 16)
	require.Equal(t, 200, status, "%s", body)
	require.Contains(t, string(body), `"prompt_tokens":681280`)
	require.Eventually(t, func() bool { return notFree(n.Status(t.Context())) == "" }, patience, 10*time.Millisecond)
}

func TestAll_IncidentShapeWithBothPoolsSmall_RefusalNamesTheDecodePool(t *testing.T) {
	n := startAll(t, func(c *config.Config) {
		c.Model = config.Model{Kind: "rolling"}
		c.Sizes.Window, c.Sizes.Pool, c.Sizes.Page, c.Sizes.AllowWindowOverPool = 1048576, 681280, 16, true
	})
	status, body := complete(t, n, make([]int32, 681280), 16)
	require.Equal(t, 400, status)
	require.Contains(t, string(body), "decode pool")
}

func TestOperator_Listener_ShowsStatusAndMetrics(t *testing.T) {
	n := startAll(t, nil)
	status, _ := complete(t, n, testRequest(20, 1, 1).Prompt, 4)
	require.Equal(t, 200, status)
	base := "http://" + n.Addresses().Operator
	code, body := get(t, base+"/metrics")
	require.Equal(t, 200, code)
	for _, want := range []string{
		`kvfence_requests_total{cause="",verdict="succeeded"} 1`, `kvfence_pages{component="kv",rank="0",role="decode",state="free"}`,
		`kvfence_links{rank="0",role="prefill",state="open"} 1`, "kvfence_tokens_total", "kvfence_payload_bytes_total", "kvfence_fence_seconds",
	} {
		require.Contains(t, body, want)
	}
	code, body = get(t, base+"/status")
	require.Equal(t, 200, code)
	var s struct{ Node Status }
	require.NoError(t, json.Unmarshal([]byte(body), &s))
	require.True(t, s.Node.Ready)
	require.Equal(t, uint64(1), s.Node.Decode.Leader.Succeeded)
	text := s.Node.Text()
	require.Contains(t, text, "pool kv    free 128  held 0  revoking 0  quarantined 0  of 128 pages")
	code, _ = get(t, base+"/readyz")
	require.Equal(t, 200, code)
}

func TestDrain_RequestRuns_ItEndsWellAndNewOnesAreRefused(t *testing.T) {
	p := startPair(t, nil)
	req := testRequest(20, 1, 200)
	s, err := p.client.Open(t.Context(), req)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	_, err = s.Next() // it runs
	require.NoError(t, err)
	drained := make(chan struct{})
	go func() { p.decode.Drain(context.Background()); close(drained) }()
	require.Eventually(t, func() bool { return p.decode.Ready(t.Context()) != nil }, patience, time.Millisecond)
	_, _, err = p.answer(testRequest(10, 2, 4))
	require.Equal(t, api.ShuttingDown, api.CodeOf(err))
	for {
		if _, err = s.Next(); err != nil {
			break
		}
	}
	require.Equal(t, io.EOF, err, "the running request ends with its done")
	<-drained
	require.Empty(t, notFree(p.decode.Status(t.Context())))
}

func TestClose_RequestFills_GetsShuttingDownNotSuccess(t *testing.T) {
	p := startPair(t, func(c *config.Config) { c.Sizes.Window, c.Sizes.Pool, c.Prefill.Chunk = 16384, 16384, 32 })
	ended := make(chan error, 1)
	go func() {
		_, _, err := p.answer(testRequest(8000, 1, 1000))
		ended <- err
	}()
	require.Eventually(t, func() bool { return p.decode.Status(t.Context()).Decode.Leader.Filling == 1 }, patience, time.Millisecond)
	require.NoError(t, p.decode.Close())
	err := <-ended
	require.Equal(t, api.ShuttingDown, api.CodeOf(err), "%v", err)
	require.Eventually(t, func() bool { return notFree(p.prefill.Status(t.Context())) == "" }, patience, 10*time.Millisecond, "prefill ends it, too")
}

func TestRestart_PrefillComesBack_IsUsedAgain(t *testing.T) {
	for _, kind := range []string{"tcp", "shm"} {
		t.Run(kind, func(t *testing.T) {
			dir := shortDir(t)
			shape := func(c *config.Config) { c.Transport.Kind, c.Transport.SocketDir = kind, dir }
			p := startPair(t, shape)
			p.check(testRequest(30, 1, 5))
			addr := p.prefill.Addresses().Control
			require.NoError(t, p.prefill.Close())
			require.Eventually(t, func() bool { return p.decode.Ready(t.Context()) != nil }, patience, 5*time.Millisecond)
			p.prefill = startNode(t, small(t, config.RolePrefill, func(c *config.Config) { shape(c); c.Prefill.Control = addr }))
			p.ready()
			p.check(testRequest(30, 2, 5))
			p.idle()
		})
	}
}

func TestRestart_DecodeComesBack_SucceedsItsOlderLife(t *testing.T) {
	for _, kind := range []string{"tcp", "shm"} {
		t.Run(kind, func(t *testing.T) {
			dir := shortDir(t)
			shape := func(c *config.Config) { c.Transport.Kind, c.Transport.SocketDir = kind, dir }
			p := startPair(t, shape)
			p.check(testRequest(30, 1, 5))
			require.NoError(t, p.decode.Close())
			p.startDecode(shape)
			p.check(testRequest(30, 2, 5))
			p.idle()
		})
	}
}

func TestTwoDecodeSides_OnePrefill_BothAreServed(t *testing.T) {
	p := startPair(t, nil)
	q := &pair{t: t, prefill: p.prefill}
	q.startDecode(func(c *config.Config) { c.Decode.Name = "decode-b" })
	for i := range int32(5) {
		p.check(testRequest(30, i, 5))
		q.check(testRequest(30, i, 5))
	}
	p.idle()
	q.idle()
}

func TestPair_SettingsDiffer_LinkIsRefusedWithBothValues(t *testing.T) {
	prefill := startNode(t, small(t, config.RolePrefill, nil))
	for name, c := range map[string]struct {
		change func(*config.Config)
		want   string
	}{
		"seed":    {func(c *config.Config) { c.Model.Seed = 9 }, "kv.model_revision"},
		"page":    {func(c *config.Config) { c.Sizes.Page = 16 }, "kv.tokens_per_page"},
		"window":  {func(c *config.Config) { c.Sizes.Window = 128 }, "window"},
		"digests": {func(c *config.Config) { c.Guards.PageDigests = config.Off }, "digests"},
		"fabric":  {func(c *config.Config) { c.Transport.Kind = "shm" }, "pull"},
	} {
		t.Run(name, func(t *testing.T) {
			d := startNode(t, small(t, config.RoleDecode, func(cfg *config.Config) {
				cfg.Decode.Peers = []config.Peer{{Addresses: []string{prefill.Addresses().Control}}}
				c.change(cfg)
			}))
			require.Eventually(t, func() bool {
				s := d.Status(t.Context())
				return len(s.Decode.Ranks) > 0 && len(s.Decode.Ranks[0].Links) > 0 && strings.Contains(s.Decode.Ranks[0].Links[0].Refusal, c.want)
			}, patience, 5*time.Millisecond)
			require.Error(t, d.Ready(t.Context()))
		})
	}
}

func TestTLS_DecodeThatIsNotNamed_IsRefused(t *testing.T) {
	ca := newAuthority(t)
	prefill := startNode(t, small(t, config.RolePrefill, func(c *config.Config) {
		c.TLS, c.Prefill.Decodes = ca.issue("prefill"), []string{"decode-a"}
	}))
	start := func(cert, name string) *Node {
		return startNode(t, small(t, config.RoleDecode, func(c *config.Config) {
			c.TLS, c.Decode.Name = ca.issue(cert), name
			c.Decode.Peers = []config.Peer{{Name: "prefill", Addresses: []string{prefill.Addresses().Control}}}
		}))
	}
	refused := func() float64 {
		_, body := get(t, "http://"+prefill.Addresses().Operator+"/metrics")
		for s := bufio.NewScanner(strings.NewReader(body)); s.Scan(); {
			var n float64
			if _, err := fmt.Sscanf(s.Text(), `kvfence_connections_refused_total{reason="identity",role="prefill"} %f`, &n); err == nil {
				return n
			}
		}
		return 0
	}
	d := start("decode-b", "decode-b") // vouched for, not named
	require.Eventually(t, func() bool { return refused() > 0 }, patience, 5*time.Millisecond)
	require.Error(t, d.Ready(t.Context()))
	require.NoError(t, d.Close())
	before := refused()
	d = start("decode-b", "decode-a") // named, not vouched for
	require.Eventually(t, func() bool { return refused() > before }, patience, 5*time.Millisecond)
	require.Error(t, d.Ready(t.Context()))
	require.NoError(t, d.Close())
	d = start("decode-a", "decode-a")
	require.Eventually(t, func() bool { return d.Ready(t.Context()) == nil }, patience, 5*time.Millisecond)
}

func TestTrace_EveryStep_IsOneLineWithoutKeys(t *testing.T) {
	t.Run("tcp", func(t *testing.T) { traced(t, "tcp", 2, "Posted", "NoticeIn") })
	t.Run("shm", func(t *testing.T) { traced(t, "shm", 1, "PullDone", "SaidRead") })
}

// traced runs a node of all roles with a trace, and holds each line of it to the specification.
func traced(t *testing.T, kind string, ranks int, also ...string) {
	path := filepath.Join(t.TempDir(), "trace.ndjson")
	n := startAll(t, func(c *config.Config) {
		c.TraceFile, c.Transport.Kind, c.Prefill.Ranks, c.Decode.Ranks = path, kind, ranks, ranks
	})
	status, _ := complete(t, n, testRequest(20, 1, 1).Prompt, 3)
	require.Equal(t, 200, status)
	require.NoError(t, n.Close())
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(b), "key")
	seen := map[string]bool{}
	r, f := trace.NewReader(bytes.NewReader(b)), follow.New(true)
	for {
		var l spec.TraceLine
		if err = r.Next(&l); err != nil {
			break
		}
		require.NoError(t, f.Step(&l)) // each is a step of the specification
		seen[string(l.Machine)], seen[l.Event.Kind+l.Event.Message] = true, true
		for _, d := range l.Did {
			seen[d.Name] = true
		}
	}
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, r.Torn())
	for _, want := range append(also, "prefill", "prefill-leader", "decode", "decode-leader", "Recvgrant", "SideLeaseReady", "Ready") {
		require.True(t, seen[want], want)
	}
}
