package gateway

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"kvfence/impl/node/api"
	"kvfence/impl/workload"
)

func keysFile(t *testing.T, lines ...string) string {
	path := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	return path
}

func bearer(key string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key) }
}

func TestIdentity_Key_DecidesTheTenant(t *testing.T) {
	node := newFake(saying("x"))
	_, srv := start(t, Config{KeysFile: keysFile(t, "ann:"+HashKey("sk-a"), "bob:"+HashKey("sk-b"))}, node)
	post(t, srv, "/v1/completions", `{"prompt":"x"}`, bearer("sk-a")).answer(t)
	post(t, srv, "/v1/completions", `{"prompt":"x"}`, bearer("sk-b")).answer(t)
	require.Equal(t, "ann", node.seen()[0].Tenant)
	require.Equal(t, "bob", node.seen()[1].Tenant)
	for _, change := range []func(*http.Request){
		func(*http.Request) {}, bearer("sk-c"), bearer(""), bearer(HashKey("sk-a")),
		func(r *http.Request) { r.Header.Set("Authorization", "Basic sk-a") },
		func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer sk-a", "Bearer sk-b"} },
	} {
		r := post(t, srv, "/v1/completions", `{"prompt":"x"}`, change)
		require.Equal(t, 401, r.status)
		require.Equal(t, "invalid_api_key", *r.fault(t).Code)
		require.NotEmpty(t, r.header.Get("WWW-Authenticate"))
	}
	// Nobody names a tenant by a header, not even with a good key.
	r := post(t, srv, "/v1/completions", `{"prompt":"x"}`, bearer("sk-a"), func(r *http.Request) { r.Header.Set(DefaultTenantHeader, "bob") })
	require.Equal(t, 403, r.status)
	require.Equal(t, "tenant_header_refused", *r.fault(t).Code)
	require.Len(t, node.seen(), 2)
}

func TestIdentity_NoKeys_AnswersLoopbackOnly(t *testing.T) {
	node := newFake(saying("x"))
	g, srv := start(t, Config{}, node)
	post(t, srv, "/v1/completions", `{"prompt":"x"}`).answer(t)
	require.Equal(t, "default", node.seen()[0].Tenant)
	for _, change := range []func(*http.Request){
		func(r *http.Request) { r.RemoteAddr = "10.0.0.1:99" },
		func(r *http.Request) { r.Host = "rebound.example" },
		func(r *http.Request) { r.RemoteAddr = "" },
	} {
		r := httptest.NewRequest("POST", "http://127.0.0.1:8080/v1/completions", strings.NewReader(`{"prompt":"x"}`))
		r.RemoteAddr = "127.0.0.1:5"
		r.Header.Set("Content-Type", "application/json")
		change(r)
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		require.Equal(t, 403, w.Code)
	}
	r := post(t, srv, "/v1/completions", `{"prompt":"x"}`, func(r *http.Request) { r.Header.Set(DefaultTenantHeader, "bob") })
	require.Equal(t, 403, r.status)
}

// authority makes client and server certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{cert, key}
}

func (a *authority) issue(t *testing.T, cn string, dns ...string) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: cn}, DNSNames: dns, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

func TestIdentity_TenantHeader_OnlyFromTheNamedProxy(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	node := newFake(saying("x"))
	deps := testDeps(node)
	deps.TLS = &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "gateway")}, ClientCAs: ca.pool()}
	g, err := New(Config{HeaderProxies: []string{"edge.internal"}, KeysFile: keysFile(t, "ann:"+HashKey("sk-a"))}, deps)
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, ln) }()
	try := func(headers map[string]string, certs ...tls.Certificate) (int, string) {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.pool(), Certificates: certs}}
		defer tr.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), "POST", "https://"+ln.Addr().String()+"/v1/completions", strings.NewReader(`{"prompt":"x"}`))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		for k, v := range headers {
			r.Header.Set(k, v)
		}
		resp, err := tr.RoundTrip(r)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(b)
	}
	header := map[string]string{DefaultTenantHeader: "carl"}
	for _, cert := range []tls.Certificate{ca.issue(t, "edge.internal"), ca.issue(t, "x", "a", "edge.internal")} {
		status, body := try(header, cert)
		require.Equal(t, 200, status, body)
	}
	require.Equal(t, "carl", node.seen()[0].Tenant)
	status, body := try(header)
	require.Equal(t, 403, status, body)
	status, body = try(header, ca.issue(t, "intruder", "edge.internal.evil"))
	require.Equal(t, 403, status, body)
	status, _ = try(header, other.issue(t, "edge.internal"))
	require.Zero(t, status, "a certificate of another authority ends the handshake")
	status, body = try(map[string]string{DefaultTenantHeader: "a b"}, ca.issue(t, "edge.internal"))
	require.Equal(t, 400, status, body)
	status, body = try(map[string]string{"Authorization": "Bearer sk-a"}, ca.issue(t, "edge.internal"))
	require.Equal(t, 200, status, body)
	require.Equal(t, "ann", node.seen()[2].Tenant, "a proxy that names no tenant needs a key like anyone")
	status, body = try(nil, ca.issue(t, "edge.internal"))
	require.Equal(t, 401, status, body)
	cancel()
	require.NoError(t, <-ended)

	deps.TLS = &tls.Config{}
	_, err = New(Config{HeaderProxies: []string{"edge"}, KeysFile: keysFile(t, "ann:"+HashKey("x"))}, deps)
	require.ErrorIs(t, err, ErrConfig, "no authority to know the proxy by")
}

// A gateway without keys says at its start whom it answers.
func TestServe_NoKeys_SaysWhomItAnswers(t *testing.T) {
	for _, keys := range []bool{false, true} {
		var log bytes.Buffer
		deps, cfg := testDeps(newFake(saying("x"))), Config{}
		deps.Log = slog.New(slog.NewTextHandler(&log, nil))
		if keys {
			cfg.KeysFile = keysFile(t, "ann:"+HashKey("a"))
		}
		g, err := New(cfg, deps)
		require.NoError(t, err)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		g.Drain()
		require.NoError(t, g.Serve(t.Context(), ln))
		require.Equal(t, !keys, strings.Contains(log.String(), "no API keys: only requests from and to loopback are answered"))
	}
}

func TestCapacity_Over_Is429WithRetryAfter(t *testing.T) {
	hold, opened := make(chan struct{}), make(chan struct{}, 8)
	node := newFake(nil)
	node.open = func(ctx context.Context, req *api.Request) (api.Stream, error) {
		opened <- struct{}{}
		return play(ctx, append([]any{hold}, says(req, "x")...)...), nil
	}
	g, srv := start(t, Config{MaxActive: 2, MaxWaiting: 2, SharePercent: 50, RetryAfter: 3 * time.Second,
		KeysFile: keysFile(t, "ann:"+HashKey("a"), "bob:"+HashKey("b"))}, node)
	answers := make(chan int, 8)
	send := func(key string) {
		go func() { answers <- post(t, srv, "/v1/completions", `{"prompt":"x"}`, bearer(key)).status }()
	}
	send("a")
	<-opened
	send("a") // waits: one active and one waiting are ann's share
	require.Eventually(t, func() bool { return g.Status(t.Context()).WaitingChoice == 1 }, 30*time.Second, time.Millisecond)
	r := post(t, srv, "/v1/completions", `{"prompt":"x","n":2}`, bearer("a"))
	require.Equal(t, 429, r.status)
	require.Equal(t, "over_capacity", *r.fault(t).Code)
	require.Equal(t, "3", r.header.Get("Retry-After"))
	send("b") // bob has his own
	<-opened
	close(hold)
	for range 3 {
		require.Equal(t, 200, <-answers)
	}

	node.mu.Lock()
	node.open = func(context.Context, *api.Request) (api.Stream, error) {
		e := api.Errorf(api.OverCapacity, "pool is full")
		e.RetryAfterSeconds = 9
		return nil, e
	}
	node.mu.Unlock()
	r = post(t, srv, "/v1/completions", `{"prompt":"x"}`, bearer("a"))
	require.Equal(t, 429, r.status)
	require.Equal(t, "9", r.header.Get("Retry-After"))
}

func TestClient_Leaves_EndsTheNodesStream(t *testing.T) {
	closed, opened := make(chan error, 1), make(chan struct{}, 2)
	node := newFake(nil)
	node.open = func(ctx context.Context, req *api.Request) (api.Stream, error) {
		opened <- struct{}{}
		go func() { <-ctx.Done(); closed <- ctx.Err() }()
		return play(ctx, ready(len(req.Prompt)), token('a'), make(chan struct{})), nil
	}
	g, srv := start(t, Config{}, node)
	for _, streaming := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "POST", srv.URL+"/v1/completions", strings.NewReader(fmt.Sprintf(`{"prompt":"x","stream":%v}`, streaming)))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		if streaming {
			resp, err := srv.Client().Do(r)
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode)
			<-opened
			cancel()
			_ = resp.Body.Close()
		} else {
			go func() {
				<-opened
				cancel()
			}()
			_, err := srv.Client().Do(r)
			require.ErrorIs(t, err, context.Canceled)
		}
		require.Error(t, <-closed)
	}
	require.Eventually(t, func() bool { a, w, n := g.admit.load(); return a+w+n == 0 }, 5*time.Second, time.Millisecond)
}

func TestDeadline_Passes_Is504(t *testing.T) {
	node := newFake(func(ctx context.Context, req *api.Request) (api.Stream, error) {
		return play(ctx, make(chan struct{})), nil
	})
	_, srv := start(t, Config{RequestTimeout: 30 * time.Millisecond}, node)
	r := post(t, srv, "/v1/completions", `{"prompt":"x","stream":true}`)
	require.Equal(t, 504, r.status)
	require.Equal(t, "deadline", *r.fault(t).Code)
	for _, req := range node.seen() { // none, where the time was over before
		require.LessOrEqual(t, time.Duration(req.TimeLeft), 30*time.Millisecond)
	}
}

func TestServe_Drain_FinishesRunningAndEndsTheRest(t *testing.T) {
	for _, forced := range []bool{false, true} {
		hold, opened := make(chan struct{}), make(chan struct{}, 2)
		node := newFake(nil)
		node.open = func(ctx context.Context, req *api.Request) (api.Stream, error) {
			opened <- struct{}{}
			steps := says(req, "ab")
			return play(ctx, append(append([]any{}, steps[:2]...), append([]any{hold}, steps[2:]...)...)...), nil
		}
		cfg := Config{DrainTimeout: time.Minute}
		if forced {
			cfg.DrainTimeout = 20 * time.Millisecond
		}
		g, err := New(cfg, testDeps(node))
		require.NoError(t, err)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- g.Serve(t.Context(), ln) }()
		whole, stream := make(chan reply, 1), make(chan reply, 1)
		srv := &httptest.Server{URL: "http://" + ln.Addr().String()}
		// Each over a client of its own; httptest's needs a started server.
		ask := func(body string, out chan reply) {
			resp, err := http.Post(srv.URL+"/v1/completions", "application/json", strings.NewReader(body))
			if err != nil {
				out <- reply{}
				return
			}
			b, _ := io.ReadAll(resp.Body) // a broken body shows in what it lacks
			_ = resp.Body.Close()
			out <- reply{resp.StatusCode, resp.Header, b}
		}
		go ask(`{"prompt":"x"}`, whole)
		<-opened
		go ask(`{"prompt":"x","stream":true}`, stream)
		<-opened
		g.Drain()
		if !forced {
			require.Eventually(t, func() bool { _, err := net.Dial("tcp", ln.Addr().String()); return err != nil }, 5*time.Second, time.Millisecond)
			close(hold)
			require.Equal(t, 200, (<-whole).status)
			require.True(t, (<-stream).stream(t).finished)
		} else {
			r := <-whole
			require.Equal(t, 503, r.status)
			require.Equal(t, "shutting_down", *r.fault(t).Code)
			r = <-stream
			if r.status == 200 {
				s := r.stream(t)
				require.Equal(t, "shutting_down", *s.fault.Code)
				require.False(t, s.finished)
			} else {
				require.Equal(t, 503, r.status)
			}
		}
		require.NoError(t, <-ended)
		require.Error(t, g.Serve(t.Context(), ln), "once")
	}
}

func TestLog_NeverHoldsPromptsOrAnswers(t *testing.T) {
	var log bytes.Buffer
	reg := prometheus.NewRegistry()
	node := newFake(saying("ANSWERTEXT"))
	deps := testDeps(node)
	deps.Log, deps.Registry = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), reg
	g, err := New(Config{KeysFile: keysFile(t, "ann:"+HashKey("SECRETKEY"))}, deps)
	require.NoError(t, err)
	for _, body := range []string{`{"prompt":"PROMPTTEXT","user":"USERTEXT"}`, `{"prompt":"PROMPTTEXT","n":"PROMPTTEXT"}`, `{"PROMPTTEXT`, `{"prompt":"x","stop":["PROMPTTEXT",5]}`} {
		r := httptest.NewRequest("POST", "/v1/completions", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer SECRETKEY")
		g.ServeHTTP(httptest.NewRecorder(), r)
	}
	require.Equal(t, 4, strings.Count(log.String(), "\n"))
	for _, secret := range []string{"PROMPTTEXT", "ANSWERTEXT", "USERTEXT", "SECRETKEY", HashKey("SECRETKEY")} {
		require.NotContains(t, log.String(), secret)
	}
	require.Contains(t, log.String(), `"tenant":"ann"`)
	require.Equal(t, 1.0, counted(t, g.metrics.requests.WithLabelValues("completions", "200", "ok")))
	require.Equal(t, 3.0, counted(t, g.metrics.byTenant.WithLabelValues("ann", "refused")))
	require.Equal(t, 10.0, counted(t, g.metrics.tokens.WithLabelValues("completion")))
	_, err = New(Config{}, deps)
	require.Error(t, err, "the registry has these metrics")
}

func TestHandler_Panics_Is500InShape(t *testing.T) {
	g, err := New(Config{}, testDeps(&fakeNode{info: goodInfo()}))
	require.NoError(t, err)
	g.deps.Backend = nil
	g.info.backend = nil // the first thing a request asks
	r := httptest.NewRequest("POST", "http://127.0.0.1/v1/completions", strings.NewReader(`{"prompt":"x"}`))
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	require.Equal(t, 500, w.Code)
	require.Contains(t, w.Body.String(), `"code":"internal"`)
}

// oracleService answers with the reference model, as a decode leader would.
type oracleService struct{ model workload.Model }

func (s oracleService) Info(context.Context) (api.Info, error) {
	info := goodInfo()
	info.Model = s.model.Name()
	return info, nil
}

func (s oracleService) Generate(ctx context.Context, req *api.Request, sink api.Sink) (api.Done, error) {
	if err := sink.Accepted(len(req.Prompt)); err != nil {
		return api.Done{}, err
	}
	r, err := workload.Generate(ctx, s.model, req.Prompt, workload.Options{
		MaxTokens: req.MaxTokens, Stop: req.Stop, Logprobs: req.Logprobs, TopLogprobs: req.TopLogprobs,
		Sampling: workload.Sampling{Temperature: req.Temperature, TopP: req.TopP, Seed: req.Seed},
	})
	if err != nil {
		return api.Done{}, err
	}
	if err := sink.Ready(api.Ready{DecodePromptTokens: len(req.Prompt), PrefillPromptTokens: len(req.Prompt)}); err != nil {
		return api.Done{}, err
	}
	for i, id := range r.Tokens {
		t := api.Token{ID: id}
		if req.Logprobs {
			t.Logprob = r.Logprobs[i]
		}
		if err := sink.Token(t); err != nil {
			return api.Done{}, err
		}
	}
	return api.Done{Finish: r.Finish, PromptTokens: len(req.Prompt), CompletionTokens: len(r.Tokens)}, nil
}

// Many tenants at once through gateway, client, socket and handler: every answer is the
// reference model's for that prompt and seed, streams and whole, under -race.
func TestGateway_ManyTenantsAtOnce_EachGetsItsOwnAnswer(t *testing.T) {
	model, err := workload.New(workload.Config{Kind: workload.KindRolling, Seed: 11})
	require.NoError(t, err)
	h, err := api.NewHandler(api.HandlerConfig{Service: oracleService{model}, MaxPromptTokens: 8192})
	require.NoError(t, err)
	nodeSrv := httptest.NewServer(h)
	defer nodeSrv.Close()
	client, err := api.NewClient(api.ClientConfig{BaseURL: nodeSrv.URL})
	require.NoError(t, err)
	defer client.Close()
	var lines []string
	for i := range 10 {
		lines = append(lines, fmt.Sprintf("t%d:%s", i, HashKey(fmt.Sprint("key", i))))
	}
	g, srv := start(t, Config{MaxActive: 16, MaxWaiting: 200, KeysFile: keysFile(t, lines...)}, client)
	var wg sync.WaitGroup
	for i := range 80 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			prompt, seed := fmt.Sprintf("canary of tenant %d, request %d", i%10, i), uint64(i)
			body := fmt.Sprintf(`{"prompt":%q,"max_tokens":12,"temperature":0.8,"seed":%d,"n":2,"stream":%v}`, prompt, seed, i%2 == 0)
			r := post(t, srv, "/v1/completions", body, bearer(fmt.Sprint("key", i%10)))
			if r.status == 429 {
				return // its own share was full: honest
			}
			var texts []string
			if i%2 == 0 {
				texts, _ = r.stream(t).texts(2)
			} else {
				for _, c := range r.answer(t).Choices {
					texts = append(texts, c.Text)
				}
			}
			for j := range 2 {
				want, err := workload.Generate(t.Context(), model, workload.Encode(prompt),
					workload.Options{MaxTokens: 12, Sampling: workload.Sampling{Temperature: 0.8, TopP: 1, Seed: SampleSeed(seed, j)}})
				if err != nil || texts[j] != string(workload.Decode(want.Tokens)) {
					t.Errorf("request %d sample %d: %q, want %q", i, j, texts[j], string(workload.Decode(want.Tokens)))
				}
			}
		}()
	}
	wg.Wait()
	active, waiting, tenants := g.admit.load()
	require.Zero(t, active+waiting+tenants)
}

func counted(t *testing.T, m prometheus.Metric) float64 {
	var out dto.Metric
	require.NoError(t, m.Write(&out))
	return out.GetCounter().GetValue()
}
