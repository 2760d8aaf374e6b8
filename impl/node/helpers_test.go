package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/device"
	"kvfence/impl/node/api"
	"kvfence/impl/workload"
)

// patience bounds every wait of a test; what is waited for takes milliseconds.
const patience = time.Minute

func testLog(t *testing.T) *slog.Logger {
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// small is a configuration of one role on ports that the system chooses.
func small(t *testing.T, role config.Role, change func(*config.Config)) config.Config {
	var c config.Config
	c.Role = role
	c.Prefill.Control, c.Prefill.Data, c.Decode.API = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0" // role all has an API here, too
	c.Gateway.Listen, c.Operator.Listen = "127.0.0.1:0", "127.0.0.1:0"
	c.Sizes.Window, c.Sizes.Pool, c.Sizes.Page, c.Sizes.AuxSlots = 256, 1024, 8, 64
	c.Model.Heads, c.Model.HeadDim, c.Model.Layers = 4, 8, 2
	c.Timeouts.Liveness, c.Timeouts.Repeat, c.Timeouts.Progress = 2*time.Second, 50*time.Millisecond, 3*time.Second
	c.Timeouts.Drain = 5 * time.Second
	c.Transport.SocketDir = shortDir(t)
	if change != nil {
		change(&c)
	}
	return c.WithDefaults()
}

// shortDir is a directory whose name leaves room for a socket's.
func shortDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "kvf")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func startNode(t *testing.T, c config.Config) *Node { return startNodeOn(t, nil, c) }

func startNodeOn(t *testing.T, on device.Device, c config.Config) *Node {
	t.Helper()
	n, err := StartOn(on, c, testLog(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

// pair is a prefill and a decode node with real sockets between them.
type pair struct {
	t       *testing.T
	prefill *Node
	decode  *Node
	client  *api.Client
	on      device.Device // of decode; nil: host memory
}

func startPair(t *testing.T, change func(*config.Config)) *pair {
	t.Helper()
	dir := shortDir(t)
	both := func(c *config.Config) {
		c.Transport.SocketDir = dir
		if change != nil {
			change(c)
		}
	}
	p := &pair{t: t, prefill: startNode(t, small(t, config.RolePrefill, both))}
	p.startDecode(both)
	return p
}

// startPairOn has pools on devices; nil is host memory.
func startPairOn(t *testing.T, prefill, decode device.Device, change func(*config.Config)) *pair {
	t.Helper()
	if change == nil {
		change = func(*config.Config) {}
	}
	p := &pair{t: t, prefill: startNodeOn(t, prefill, small(t, config.RolePrefill, change)), on: decode}
	p.startDecode(change)
	return p
}

func (p *pair) startDecode(change func(*config.Config)) {
	p.t.Helper()
	p.decode = startNodeOn(p.t, p.on, small(p.t, config.RoleDecode, func(c *config.Config) {
		c.Decode.Peers = []config.Peer{{Name: "prefill", Addresses: []string{p.prefill.Addresses().Control}}}
		change(c)
	}))
	base := "http://" + p.decode.Addresses().API
	cc := api.ClientConfig{BaseURL: base}
	if p.decode.creds != nil {
		cc.BaseURL = "https://" + p.decode.Addresses().API
		cc.TLS = p.decode.creds.client("decode")
	}
	client, err := api.NewClient(cc)
	require.NoError(p.t, err)
	p.client = client
	p.t.Cleanup(client.Close)
	p.ready()
}

// ready waits until the pair says that it is.
func (p *pair) ready() {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return p.decode.Ready(p.t.Context()) == nil }, patience, 5*time.Millisecond, "pair does not become ready")
}

// idle waits until every page at both ends is free.
func (p *pair) idle() {
	p.t.Helper()
	var why string
	require.Eventually(p.t, func() bool {
		why = notFree(p.decode.Status(p.t.Context())) + notFree(p.prefill.Status(p.t.Context()))
		return why == ""
	}, patience, 10*time.Millisecond, "pages do not come back")
	require.Empty(p.t, why)
}

func notFree(s Status) (why string) {
	look := func(who string, free, total uint32) {
		if free != total {
			why += fmt.Sprintf("%s: %d of %d pages free\n", who, free, total)
		}
	}
	if s.Prefill != nil {
		for k, r := range s.Prefill.Ranks {
			for c, p := range r.Pools {
				look(fmt.Sprintf("prefill %d %s", k, c), p.Free, p.Total)
			}
		}
	}
	if s.Decode != nil {
		for k, r := range s.Decode.Ranks {
			for c, p := range r.Pools {
				look(fmt.Sprintf("decode %d %s", k, c), p.Free, p.Total)
			}
		}
	}
	return why
}

// request is one over n prompt tokens whose content depends on salt.
func testRequest(n int, salt int32, maxNew int) *api.Request {
	r := &api.Request{ID: fmt.Sprint("t-", salt), Tenant: fmt.Sprint("tenant-", salt%3), MaxTokens: maxNew, TimeLeft: api.Millis(patience)}
	for i := range n {
		r.Prompt = append(r.Prompt, (int32(i)*7+salt*31)%256)
	}
	return r
}

// answer runs a request to its end.
func (p *pair) answer(req *api.Request) (tokens []int32, done api.Done, err error) {
	s, err := p.client.Open(p.t.Context(), req)
	if err != nil {
		return nil, done, err
	}
	defer func() { _ = s.Close() }()
	for {
		e, err := s.Next()
		switch {
		case err == io.EOF:
			return tokens, done, nil
		case err != nil:
			return tokens, done, err
		case e.Kind == api.KindToken:
			tokens = append(tokens, e.Token.ID)
		case e.Kind == api.KindDone:
			done = *e.Done
		}
	}
}

// oracle is what one process alone answers.
func (p *pair) oracle(req *api.Request) workload.Result {
	r, err := workload.Generate(context.Background(), p.decode.decode.model, req.Prompt, workload.Options{
		MaxTokens: req.MaxTokens, Stop: req.Stop, Logprobs: req.Logprobs, TopLogprobs: req.TopLogprobs,
		Sampling: workload.Sampling{Temperature: req.Temperature, TopP: req.TopP, Seed: req.Seed},
	})
	require.NoError(p.t, err)
	return r
}

// check answers a request and compares it with the oracle.
func (p *pair) check(req *api.Request) {
	p.t.Helper()
	tokens, done, err := p.answer(req)
	require.NoError(p.t, err)
	want := p.oracle(req)
	require.Equal(p.t, want.Tokens, tokens)
	require.Equal(p.t, want.Finish, done.Finish)
	require.Equal(p.t, len(req.Prompt), done.PromptTokens)
}

// authority makes certificates for a test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &a.key.PublicKey, a.key)
	require.NoError(t, err)
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) write(name, kind string, der []byte) string {
	path := filepath.Join(a.dir, name)
	require.NoError(a.t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

// issue makes a certificate for names and 127.0.0.1.
func (a *authority) issue(name string) config.TLS {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &key.PublicKey, a.key)
	require.NoError(a.t, err)
	kd, err := x509.MarshalECPrivateKey(key)
	require.NoError(a.t, err)
	return config.TLS{Cert: a.write(name+".pem", "CERTIFICATE", der), Key: a.write(name+"-key.pem", "EC PRIVATE KEY", kd), CA: filepath.Join(a.dir, "ca.pem")}
}
