//go:build chaos

package chaos

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Sizes of every cluster here: pools hold about 40 requests at a time, so that requests wait, queue and are turned away.
const (
	windowTokens = 1024
	poolTokens   = 16384
	pageTokens   = 16
	modelSeed    = 11
	liveness     = time.Second
)

var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "kvfence-chaos")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "kvfence")
	cmd := exec.Command("go", "build", "-o", path, "kvfence/impl/cmd/kvfence")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	return path, nil
})

// cluster is two prefill nodes, a decode node and a gateway, each a process.
type cluster struct {
	t                          *testing.T
	dir                        string
	gatewayURL                 string
	operators                  map[string]string // node -> operator base URL, reached as ops does
	prefills                   []*proc
	decode, gateway            *proc
	tenants                    []string
	keys                       map[string]string
	get                        func(url string) (*http.Response, error)
	processesInOrderOfStarting []*proc
}

// ports hands out loopback ports that were free a moment ago.
func ports(t *testing.T, n int) []string {
	var ls []net.Listener
	var out []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		ls = append(ls, l)
		out = append(out, l.Addr().String())
	}
	for _, l := range ls {
		require.NoError(t, l.Close())
	}
	return out
}

func common(transport string) []string {
	return []string{"--transport", transport, "--window-tokens", fmt.Sprint(windowTokens), "--pool-tokens", fmt.Sprint(poolTokens),
		"--page-tokens", fmt.Sprint(pageTokens), "--model-seed", fmt.Sprint(modelSeed), "--liveness", liveness.String(),
		"--request-timeout", "20s", "--log-format", "json"}
}

// workDir is a folder of the test's own; KVFENCE_CHAOS_DIR names one that stays, with the traces of all nodes in it.
func workDir(t *testing.T) string {
	if d := os.Getenv("KVFENCE_CHAOS_DIR"); d != "" {
		require.NoError(t, os.MkdirAll(d, 0o700))
		return d
	}
	return t.TempDir()
}

func (c *cluster) traced(name string, argv []string) []string {
	if os.Getenv("KVFENCE_CHAOS_DIR") == "" {
		return argv
	}
	return append(argv, "--trace", filepath.Join(c.dir, name+".ndjson"))
}

// newCluster starts the processes on loopback. ranks are the ranks of both prefill sides and of the decode side.
func newCluster(t *testing.T, transport string, prefillRanks, decodeRanks int) *cluster {
	bin, err := binary()
	require.NoError(t, err)
	c := &cluster{t: t, dir: workDir(t), operators: map[string]string{}, get: http.Get}
	p := ports(t, 10)
	base := common(transport)
	var peers []string
	for i := range 2 {
		name := fmt.Sprintf("p%d", i+1)
		argv := append([]string{bin, "serve", "--role", "prefill", "--prefill-name", name, "--control", p[3*i], "--data", p[3*i+1], "--operator", p[3*i+2],
			"--prefill-ranks", fmt.Sprint(prefillRanks)}, base...)
		c.prefills = append(c.prefills, newProc(t, c.dir, name, c.traced(name, argv)...))
		c.operators[name] = "http://" + p[3*i+2]
		peers = append(peers, "--prefill-peer", name+"="+p[3*i])
	}
	c.decode = newProc(t, c.dir, "d1", c.traced("d1", append(append([]string{bin, "serve", "--role", "decode", "--decode-name", "d1", "--api", p[6], "--operator", p[7],
		"--decode-ranks", fmt.Sprint(decodeRanks)}, peers...), base...))...)
	c.operators["d1"] = "http://" + p[7]
	c.gateway = newProc(t, c.dir, "g1", append([]string{bin, "gateway", "--gateway", p[8], "--upstream", "http://" + p[6], "--operator", p[9],
		"--keys-file", c.writeKeys(50), "--request-timeout", "20s"}, "--window-tokens", fmt.Sprint(windowTokens), "--log-format", "json")...)
	c.operators["g1"] = "http://" + p[9]
	c.gatewayURL = "http://" + p[8]
	c.begin()
	return c
}

// begin starts everything and waits until the gateway is ready.
func (c *cluster) begin() {
	all := append(append([]*proc{}, c.prefills...), c.decode, c.gateway)
	c.processesInOrderOfStarting = all
	for _, p := range all {
		p.start()
	}
	c.t.Cleanup(func() {
		for _, p := range all {
			p.kill()
			if c.t.Failed() {
				c.t.Logf("=== end of %s's log\n%s", p.name, p.tail(6000))
			}
		}
	})
	c.waitReady(30 * time.Second)
}

func (c *cluster) writeKeys(n int) string {
	c.keys = map[string]string{}
	var b strings.Builder
	for i := range n {
		tenant := fmt.Sprintf("tenant-%02d", i)
		key := fmt.Sprintf("sk-chaos-%02d-%d", i, os.Getpid())
		sum := sha256.Sum256([]byte(key))
		fmt.Fprintf(&b, "%s:%s\n", tenant, hex.EncodeToString(sum[:]))
		c.tenants = append(c.tenants, tenant)
		c.keys[tenant] = key
	}
	path := filepath.Join(c.dir, "keys")
	require.NoError(c.t, os.WriteFile(path, []byte(b.String()), 0o600))
	return path
}

// waitReady waits until the gateway answers /readyz with 200.
func (c *cluster) waitReady(within time.Duration) {
	require.Eventually(c.t, func() bool {
		r, err := c.get(c.gatewayURL + "/readyz")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	}, within, 50*time.Millisecond, "the gateway did not become ready")
}

// heal resumes and restarts whatever is stopped or dead.
func (c *cluster) heal() {
	for _, p := range c.processesInOrderOfStarting {
		if !p.alive() {
			p.start()
		}
	}
}

// status fetches a node's status document.
func (c *cluster) status(node string) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.operators[node]+"/status", nil)
	if err != nil {
		return nil, err
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	if err != nil {
		return nil, err
	}
	var m map[string]any
	return m, json.Unmarshal(b, &m)
}
