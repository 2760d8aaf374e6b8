package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ErrPlain: plain HTTP to an address that is not loopback.
var ErrPlain = errors.New("api: plain HTTP only to loopback; give a TLS configuration or allow it by name")

const (
	maxLineBytes = 64 << 10 // of one event; ours have at most about 8 KiB
	maxInfoBytes = 64 << 10
	reuseWait    = 50 * time.Millisecond // for the end of a body whose last event is in
)

// ClientConfig configures [NewClient].
type ClientConfig struct {
	BaseURL string      // http://host:port or https://host:port
	TLS     *tls.Config // for https; client certificate and roots for mutual TLS
	// EachTLS gives the configuration of each new connection, so that certificates and roots may change meanwhile; it goes before
	// TLS. An empty ServerName means the host of BaseURL. Called from many goroutines.
	EachTLS        func() *tls.Config
	AllowPlain     bool          // plain HTTP beyond loopback
	ConnectTimeout time.Duration // TCP and TLS; 0: 5 s
	MaxIdle        int           // kept connections; 0: 64
}

// Client speaks to one decode leader. Each request has a connection of its own while
// it runs (HTTP/1.1), so closing it is the cancellation. Safe for concurrent use.
type Client struct {
	base      string
	http      *http.Client
	transport *http.Transport
}

// NewClient checks the configuration; it does not connect.
func NewClient(cfg ClientConfig) (*Client, error) {
	u, err := url.Parse(cfg.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("api: node URL: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("api: node URL %q is not http://host:port or https://host:port", u.Redacted())
	}
	if u.Scheme == "http" && !cfg.AllowPlain && !loopback(u.Hostname()) {
		return nil, fmt.Errorf("%w: %s", ErrPlain, u.Host)
	}
	connect, idle := cfg.ConnectTimeout, cfg.MaxIdle
	if connect <= 0 {
		connect = 5 * time.Second
	}
	if idle <= 0 {
		idle = 64
	}
	dialer := &net.Dialer{Timeout: connect, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	t := &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: cfg.TLS, TLSHandshakeTimeout: connect,
		MaxIdleConnsPerHost: idle, MaxIdleConns: idle, IdleConnTimeout: time.Minute,
		DisableCompression: true, Protocols: protocols, MaxResponseHeaderBytes: 16 << 10,
	}
	if cfg.EachTLS != nil {
		t.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return dialTLS(ctx, dialer, network, addr, cfg.EachTLS(), connect)
		}
	}
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: strings.TrimRight(u.String(), "/"), transport: t, http: &http.Client{Transport: t, CheckRedirect: noRedirect}}, nil
}

// dialTLS opens one connection and shakes hands within the bound.
func dialTLS(ctx context.Context, d *net.Dialer, network, addr string, cfg *tls.Config, bound time.Duration) (net.Conn, error) {
	raw, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if cfg = cfg.Clone(); cfg.ServerName == "" {
		if cfg.ServerName, _, err = net.SplitHostPort(addr); err != nil {
			return nil, errors.Join(err, raw.Close())
		}
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	c := tls.Client(raw, cfg)
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return c, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Close drops idle connections; running streams go on.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Open implements [Backend].
func (c *Client) Open(ctx context.Context, req *Request) (Stream, error) {
	if err := req.Validate(); err != nil {
		return nil, Errorf(InvalidRequest, "%w", err)
	}
	body, err := json.Marshal(req)
	if err != nil {
		return nil, Errorf(InvalidRequest, "%w: %w", ErrRequest, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	h, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+PathGenerate, bytes.NewReader(body))
	if err != nil {
		cancel()
		return nil, Errorf(Internal, "%w", err)
	}
	h.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(h)
	if err != nil {
		defer cancel()
		return nil, transportError(ctx, err)
	}
	s := &clientStream{ctx: ctx, cancel: cancel, body: resp.Body, lines: bufio.NewReaderSize(resp.Body, maxLineBytes)}
	out := Checked(s, req)
	if ct := resp.Header.Get("Content-Type"); ct != contentType {
		_ = out.Close()
		return nil, Errorf(PeerLost, "%w: status %d with content type %.60q", ErrProtocol, resp.StatusCode, ct)
	}
	if resp.StatusCode == http.StatusOK {
		return out, nil
	}
	// Refused before anything was said: the one event must be an error of this status.
	_, err = out.Next()
	_ = out.Close()
	if err == nil || AsError(err).Code.Status() != resp.StatusCode && CodeOf(err) != PeerLost {
		err = Errorf(PeerLost, "%w: status %d does not belong to its event", ErrProtocol, resp.StatusCode)
	}
	return nil, err
}

// Info implements [Backend].
func (c *Client) Info(ctx context.Context) (Info, error) {
	var info Info
	h, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+PathInfo, nil)
	if err != nil {
		return info, Errorf(Internal, "%w", err)
	}
	resp, err := c.http.Do(h)
	if err != nil {
		return info, transportError(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxInfoBytes+1))
	if err != nil {
		return info, transportError(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		return info, Errorf(PeerLost, "%w: info answered status %d: %.200s", ErrUnreachable, resp.StatusCode, bytes.TrimSpace(body))
	}
	if len(body) > maxInfoBytes {
		return info, Errorf(PeerLost, "%w: info of more than %d bytes", ErrProtocol, maxInfoBytes)
	}
	if err := strictJSON(body, &info); err != nil {
		return Info{}, Errorf(PeerLost, "%w: info: %w", ErrProtocol, err)
	}
	if min(info.WindowTokens, info.PrefillPoolTokens, info.DecodePoolTokens, info.PageTokens, info.MaxPromptTokens, info.Vocab) < 0 {
		return Info{}, Errorf(PeerLost, "%w: info with a negative size", ErrProtocol)
	}
	return info, nil
}

// transportError says whose fault a failed call is: the caller's context, or the peer's.
func transportError(ctx context.Context, err error) *Error {
	if ctx.Err() != nil {
		return Errorf(CodeOf(ctx.Err()), "%w", context.Cause(ctx))
	}
	// Not wrapped: a transport's io.EOF must not look like the end after done.
	return Errorf(PeerLost, "%w: %v", ErrUnreachable, err)
}

type clientStream struct {
	ctx    context.Context
	cancel context.CancelFunc
	body   io.ReadCloser
	lines  *bufio.Reader
	once   sync.Once
	last   atomic.Bool // the last event has been read
}

func (s *clientStream) Next() (Event, error) {
	line, err := s.lines.ReadSlice('\n')
	switch {
	case err == nil:
		e, err := ParseEvent(line[:len(line)-1])
		if e.Kind == KindDone || e.Kind == KindError {
			s.last.Store(true)
		}
		return e, err
	case errors.Is(err, bufio.ErrBufferFull):
		return Event{}, Errorf(PeerLost, "%w: an event of more than %d bytes", ErrProtocol, maxLineBytes)
	case err == io.EOF && len(line) == 0:
		return Event{}, Errorf(PeerLost, "%w", ErrTruncated)
	case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
		return Event{}, Errorf(PeerLost, "%w: within an event", ErrTruncated)
	}
	return Event{}, transportError(s.ctx, err)
}

// Close closes the connection, unless the node has said everything and ended the
// body, in which case it can be used again.
func (s *clientStream) Close() error {
	s.once.Do(func() {
		if s.last.Load() {
			timer := time.AfterFunc(reuseWait, s.cancel)
			_, _ = s.lines.ReadByte() // the end of the body, or this connection is dropped
			timer.Stop()
		}
		s.cancel()
		_ = s.body.Close() // its error says only that the request was cancelled
	})
	return nil
}
