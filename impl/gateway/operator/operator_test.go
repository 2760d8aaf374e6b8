package operator

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func operatorConfig(ready error, drain func()) Config {
	reg := prometheus.NewRegistry()
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "kvfence_test_total"})
	reg.MustRegister(c)
	return Config{
		Title: "kvfence <test>", LoopbackOnly: true, Gatherer: reg, Drain: drain, Log: quiet(),
		Ready: func(context.Context) error { return ready },
		Sections: []Section{
			{"gateway", func(context.Context) (any, error) {
				return map[string]any{"evil": "<script>alert(1)</script>", "n": 12345678901, "list": []int{7}, "none": nil}, nil
			}},
			{"node", func(context.Context) (any, error) { return nil, errors.New("no link") }},
		},
	}
}

func ask(t *testing.T, h http.Handler, method, path string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:9090"+path, nil)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandler_Paths_AnswerWhatTheyWereHanded(t *testing.T) {
	drained := 0
	h, err := Handler(operatorConfig(nil, func() { drained++ }))
	require.NoError(t, err)
	require.Equal(t, 200, ask(t, h, "GET", "/healthz", nil).Code)
	require.Equal(t, 200, ask(t, h, "GET", "/readyz", nil).Code)
	require.Contains(t, ask(t, h, "GET", "/metrics", nil).Body.String(), "kvfence_test_total 0")
	var status struct {
		Ready   bool
		Gateway map[string]any
		Node    map[string]string
	}
	require.NoError(t, json.Unmarshal(ask(t, h, "GET", "/status", nil).Body.Bytes(), &status))
	require.True(t, status.Ready)
	require.Equal(t, "no link", status.Node["error"])
	require.Equal(t, 404, ask(t, h, "GET", "/nothing", nil).Code)
	require.Equal(t, 405, ask(t, h, "GET", "/drain", nil).Code)
	require.Equal(t, 0, drained)
	require.Equal(t, 202, ask(t, h, "POST", "/drain", nil).Code)
	require.Equal(t, 1, drained)

	h, err = Handler(operatorConfig(errors.New("no link yet"), nil))
	require.NoError(t, err)
	w := ask(t, h, "GET", "/readyz", nil)
	require.Equal(t, 503, w.Code)
	require.Contains(t, w.Body.String(), "no link yet")
	require.Equal(t, 501, ask(t, h, "POST", "/drain", nil).Code)
}

func TestHandler_Page_EscapesEverything(t *testing.T) {
	h, err := Handler(operatorConfig(errors.New("<b>bad</b>"), nil))
	require.NoError(t, err)
	w := ask(t, h, "GET", "/", nil)
	page := w.Body.String()
	require.Equal(t, 200, w.Code)
	for _, bad := range []string{"<script>", "<b>", "kvfence <test>"} {
		require.NotContains(t, page, bad)
	}
	require.Contains(t, page, "&lt;script&gt;")
	require.Contains(t, page, "12345678901")
	require.Contains(t, page, `http-equiv="refresh"`)
	require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
}

func TestHandler_OtherOrigins_AreRefused(t *testing.T) {
	h, err := Handler(operatorConfig(nil, func() { t.Error("drained") }))
	require.NoError(t, err)
	require.Equal(t, 403, ask(t, h, "GET", "/status", func(r *http.Request) { r.Host = "evil.example" }).Code)
	require.Equal(t, 403, ask(t, h, "POST", "/drain", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }).Code)
	require.Equal(t, 403, ask(t, h, "POST", "/drain", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }).Code)
}

func TestHandler_BadConfig_IsRefused(t *testing.T) {
	_, err := Handler(Config{})
	require.Error(t, err)
	c := operatorConfig(nil, nil)
	c.Sections = append(c.Sections, c.Sections[0])
	_, err = Handler(c)
	require.ErrorContains(t, err, "gateway")
}

func TestServe_ContextEnds_Returns(t *testing.T) {
	h, err := Handler(operatorConfig(nil, nil))
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, ln, h, quiet()) }()
	resp, err := http.Get("http://" + ln.Addr().String() + "/healthz")
	require.NoError(t, err)
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "ok", strings.TrimSpace(string(b)))
	cancel()
	require.NoError(t, <-ended)
}
