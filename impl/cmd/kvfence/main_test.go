package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/node"
)

// The test binary is kvfence itself when this is set.
const runVariable = "KVFENCE_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(runVariable) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

const patience = 30 * time.Second

func command(t *testing.T, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), runVariable+"=1")
	return cmd
}

// finish runs a command line to its end.
func finish(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := command(t, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestRun_BadCommandLines_OneLineAndExit2(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown flag":    {[]string{"serve", "--no-such-flag"}, "unknown flag: --no-such-flag"},
		"unknown command": {[]string{"sevre"}, `unknown command "sevre"`},
		"config command":  {[]string{"config", "prnt"}, `unknown command "prnt"`},
		"not for gateway": {[]string{"gateway", "--prefill-peer", "x"}, "unknown flag: --prefill-peer"},
		"argument":        {[]string{"serve", "now"}, `unknown command "now"`},
		"bad number":      {[]string{"serve", "--window-tokens", "x"}, `--window-tokens "x": invalid syntax`},
		"bad file":        {[]string{"serve", "--config", filepath.Join(t.TempDir(), "none.yaml")}, "no such file"},
		"port clash":      {[]string{"serve", "--gateway", l.Addr().String(), "--operator", "127.0.0.1:0"}, "gateway.listen = " + l.Addr().String() + " is in use"},
		"bad keys":        {[]string{"serve", "--gateway", "127.0.0.1:0", "--operator", "127.0.0.1:0", "--keys-file", filepath.Join(t.TempDir(), "none")}, "key file"},
		"no certificate":  {[]string{"serve", "--gateway", "0.0.0.0:0"}, "--tls-cert"},
		"absent cert":     {[]string{"serve", "--tls-cert=a", "--tls-key=b", "--tls-ca=c"}, "no such file"},
		"preflight":       {[]string{"serve", "--model", "rolling", "--window-tokens", "1048576", "--pool-tokens", "681280"}, "window 1048576 tokens does not fit the prefill pool of 681280 tokens"},
		"bench report":    {[]string{"bench", "--json", filepath.Join(t.TempDir(), "none", "x")}, "--json: open"},
		"bench width":     {[]string{"bench", "--width", "2"}, "width 2 must lie between 0 and 1"},
		"zero workers":    {[]string{"serve", "--workers", "0"}, `--workers "0": that is no value`},
		"too large pools": {[]string{"serve", "--pool-tokens", "2000000000"}, "lower --pool-tokens"},
		"congestion":      {[]string{"serve", "--congestion-control", "nosuch"}, `congestion control "nosuch"`},
		"too many ranks":  {[]string{"serve", "--prefill-ranks", "3", "--operator", "127.0.0.1:0"}, "4 heads over 3 ranks"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := finish(t, c.args...)
			require.Equal(t, exitUsage, code, stderr)
			require.Empty(t, stdout, "nothing is announced")
			require.Contains(t, stderr, c.want)
			for line := range strings.Lines(stderr) {
				require.True(t, strings.HasPrefix(line, "kvfence: ") || strings.HasPrefix(line, "time="), line)
			}
		})
	}
}

func TestRun_ConfigPrint_ShowsWhatIsInForce(t *testing.T) {
	code, stdout, stderr := finish(t, "config", "print", "--role=prefill", "--window-tokens=128")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "window_tokens: 128")
	require.Contains(t, stdout, "page_digests: \"on\"")
	code, stdout, stderr = finish(t, "version")
	require.Zero(t, code, stderr)
	code, again, stderr := finish(t, "--version")
	require.Zero(t, code, stderr)
	require.Equal(t, stdout, again)
	code, _, stderr = finish(t, "status", "--operator", "127.0.0.1:1")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "no node answers at operator.listen = 127.0.0.1:1")
}

// serving starts kvfence serve and returns it with the gateway's and the operator's address once it is ready.
func serving(t *testing.T, args ...string) (cmd *exec.Cmd, gateway, operator string) {
	t.Helper()
	cmd = command(t, append([]string{"serve", "--gateway", "127.0.0.1:0", "--operator", "127.0.0.1:0"}, args...)...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	s := bufio.NewScanner(out)
	for operator == "" || gateway == "" {
		require.True(t, s.Scan(), "it ended early")
		if f := strings.Fields(s.Text()); len(f) == 2 {
			switch f[0] {
			case "gateway":
				gateway = f[1]
			case "operator":
				operator = f[1]
			}
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + operator + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == 200
	}, patience, 10*time.Millisecond)
	return cmd, gateway, operator
}

func ask(t *testing.T, gateway, body string) (int, string) {
	t.Helper()
	resp, err := http.Post("http://"+gateway+"/v1/completions", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(b)
}

func TestServe_AskedAndTerminated_AnswersAndExits0(t *testing.T) {
	cmd, gateway, operator := serving(t)
	status, body := ask(t, gateway, `{"model":"kvfence-transformer","prompt":"Hello","max_tokens":16,"temperature":0}`)
	require.Equal(t, 200, status, body)
	code, stdout, stderr := finish(t, "status", "--operator", operator)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "succeeded 1  failed 0")
	require.Contains(t, stdout, "active choices 0")
	code, _, stderr = finish(t, "status", "--operator", gateway)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "is no operator listener")
	require.Contains(t, stdout, "pool kv    free 512  held 0  revoking 0  quarantined 0  of 512 pages")
	code, stdout, stderr = finish(t, "status", "--json", "--operator", operator)
	require.Zero(t, code, stderr)
	var doc map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
	requireSnakeCase(t, "", doc)
	rank := doc["node"].(map[string]any)["decode"].(map[string]any)["ranks"].([]any)[0].(map[string]any)
	require.Equal(t, 512.0, rank["pools"].(map[string]any)["kv"].(map[string]any)["free"])
	require.Regexp(t, "^[0-9a-f]{32}$", rank["links"].([]any)[0].(map[string]any)["incarnation"])
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}

// requireSnakeCase looks at every key of a JSON document.
func requireSnakeCase(t *testing.T, path string, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			require.Regexp(t, "^[a-z][a-z0-9]*(_[a-z0-9]+)*$", k, path)
			requireSnakeCase(t, path+"."+k, e)
		}
	case []any:
		for i, e := range v {
			requireSnakeCase(t, fmt.Sprint(path, ".", i), e)
		}
	}
}

// What the start prints to type is what the node as configured takes.
func TestAnnounce_TLSAndKeys_AreInTheCommands(t *testing.T) {
	a := node.Addresses{Gateway: "10.0.0.1:8443", Operator: "10.0.0.1:9090"}
	say := func(change func(*config.Config)) string {
		cfg := config.Config{}
		change(&cfg)
		var out strings.Builder
		announce(&out, cfg.WithDefaults(), a)
		return out.String()
	}
	plain := say(func(*config.Config) {})
	require.Contains(t, plain, "try: curl http://10.0.0.1:8443/v1/completions -H 'Content-Type")
	require.True(t, strings.HasSuffix(plain, "status: kvfence status --operator 10.0.0.1:9090\n"), plain)
	tls := say(func(c *config.Config) {
		c.TLS = config.TLS{Cert: "n.pem", Key: "n.key", CA: "ca.pem"}
		c.Gateway.KeysFile = "keys"
	})
	require.Contains(t, tls, `try: curl --cacert ca.pem -H "Authorization: Bearer $KEY" https://10.0.0.1:8443/v1/completions`)
	require.Contains(t, tls, "status: kvfence status --operator 10.0.0.1:9090 --tls-cert n.pem --tls-key n.key --tls-ca ca.pem\n")
	require.Contains(t, say(func(c *config.Config) { c.Operator.Plain = true }), "--operator 10.0.0.1:9090 --operator-plain\n")
}

func TestServe_SecondSignal_EndsAtOnce(t *testing.T) {
	cmd, gateway, operator := serving(t, "--window-tokens=32768", "--pool-tokens=32768")
	go func() { // takes far longer than this test
		body := `{"model":"kvfence-transformer","max_tokens":16,"prompt":"` + strings.Repeat("x", 30000) + `"}`
		if resp, err := http.Post("http://"+gateway+"/v1/completions", "application/json", strings.NewReader(body)); err == nil {
			_ = resp.Body.Close()
		}
	}()
	require.Eventually(t, func() bool {
		_, stdout, _ := finish(t, "status", "--operator", operator)
		return strings.Contains(stdout, "filling 1  running")
	}, patience, 20*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Eventually(t, func() bool { // it drains
		resp, err := http.Get("http://" + operator + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == 503
	}, patience, 10*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Error(t, cmd.Wait())
	require.Equal(t, exitFailed, cmd.ProcessState.ExitCode())
}
