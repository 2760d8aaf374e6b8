//go:build chaos

package chaos

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
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

// Sizes of every cluster here, unless a shape says otherwise: pools hold about 40 requests at a time, so that requests wait,
// queue and are turned away.
const (
	windowTokens = 1024
	poolTokens   = 16384
	pageTokens   = 16
	modelSeed    = 11
	liveness     = time.Second
	tenantCount  = 50
)

// buildDir holds the binary for as long as the tests run.
var buildDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "kvfence-chaos") })

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := buildDir(); err == nil {
		_ = os.RemoveAll(dir) // what is left is one folder among temporary ones
	}
	os.Exit(code)
}

// built makes the binary once; KVFENCE_CHAOS_BINARY names one that is there.
var built = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("KVFENCE_CHAOS_BINARY"); path != "" {
		return path, nil
	}
	dir, err := buildDir()
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

// shape is what a cluster is made of. The zero value of a field is the plain case.
type shape struct {
	transport       string // "": tcp
	prefill, decode int    // ranks of each prefill side and of the decode side; 0: 1
	tls             bool   // mutual TLS on loopback, https at the gateway
	noDigests       bool
	plainData       bool          // data streams without TLS
	net             *hosts        // prefill nodes in namespace a, decode node and gateway in b, with mutual TLS; nil: loopback
	liveness        time.Duration // 0: the package's
	request         time.Duration // time for one request; 0: 15 s
	extra           []string      // flags of every node
}

func (s shape) String() string {
	kind := s.transport
	if s.secure() {
		kind += "+tls"
	}
	if s.plainData {
		kind += "+plain-data"
	}
	if s.noDigests {
		kind += "-digests"
	}
	return fmt.Sprintf("%s/%dx%d", kind, s.prefill, s.decode)
}

func (s shape) secure() bool { return s.tls || s.net != nil }

func (s shape) filled() shape {
	s.transport = orElse(s.transport, "tcp")
	s.prefill, s.decode = orElse(s.prefill, 1), orElse(s.decode, 1)
	s.liveness, s.request = orElse(s.liveness, liveness), orElse(s.request, 15*time.Second)
	return s
}

func orElse[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}

// cluster is two prefill nodes, a decode node and a gateway, each a process.
type cluster struct {
	t               *testing.T
	shape           shape
	dir, bin        string
	front           front
	auth            *authority
	places          map[string]place // by node
	prefills        []*proc
	decode, gateway *proc
	all             []*proc // in order of starting
	tenants         []string
	keys            map[string]string
}

// place is where a node runs and listens.
type place struct {
	ns                               string // network namespace a or b; "": the test's own
	control, data, api, operator, gw string
}

// places gives every node its addresses.
func (s shape) places(t *testing.T) map[string]place {
	if s.net == nil {
		p := ports(t, 10, 1+max(s.prefill, s.decode))
		return map[string]place{
			"p1": {control: p[0], data: p[1], operator: p[2]}, "p2": {control: p[3], data: p[4], operator: p[5]},
			"d1": {api: p[6], operator: p[7]}, "g1": {gw: p[8], operator: p[9]},
		}
	}
	at := func(ip string, port int) string { return fmt.Sprintf("%s:%d", ip, port) }
	const lo = "127.0.0.1"
	return map[string]place{
		"p1": {ns: "a", control: at(addrPrefill, 7100), data: at(addrPrefill, 7110), operator: at(lo, 9101)},
		"p2": {ns: "a", control: at(addrPrefill, 7200), data: at(addrPrefill, 7210), operator: at(lo, 9102)},
		"d1": {ns: "b", api: at(lo, 7300), operator: at(lo, 9103)}, "g1": {ns: "b", gw: at(s.net.gateway, 8080), operator: at(lo, 9104)},
	}
}

// newCluster starts the processes and waits until they serve.
func newCluster(t *testing.T, s shape) *cluster {
	c := makeCluster(t, s)
	c.begin()
	return c
}

// makeCluster prepares the processes and starts none.
func makeCluster(t *testing.T, s shape) *cluster {
	bin, err := built()
	require.NoError(t, err)
	s = s.filled()
	c := &cluster{t: t, shape: s, dir: workDir(t), bin: bin, places: s.places(t)}
	if s.secure() {
		c.auth = newAuthority(t, c.dir)
	}
	var peers []string
	for _, name := range []string{"p1", "p2"} {
		p := c.places[name]
		c.prefills = append(c.prefills, c.node(name, "prefill", "--prefill-name", name, "--control", p.control, "--data", p.data))
		peers = append(peers, "--prefill-peer", name+"="+p.control)
	}
	c.decode = c.node("d1", "decode", append([]string{"--decode-name", "d1", "--api", c.places["d1"].api}, peers...)...)
	c.gateway = c.frontNode()
	c.all = append(append([]*proc{}, c.prefills...), c.decode, c.gateway)
	return c
}

// node is a process of role prefill or decode.
func (c *cluster) node(name, role string, own ...string) *proc {
	s := c.shape
	argv := append([]string{c.bin, "serve", "--role", role, "--operator", c.places[name].operator, "--transport", s.transport}, own...)
	argv = append(argv, "--prefill-ranks", fmt.Sprint(s.prefill), "--decode-ranks", fmt.Sprint(s.decode), "--window-tokens", fmt.Sprint(windowTokens),
		"--pool-tokens", fmt.Sprint(poolTokens), "--page-tokens", fmt.Sprint(pageTokens), "--model-seed", fmt.Sprint(modelSeed),
		"--liveness", s.liveness.String(), "--request-timeout", s.request.String(), "--log-format", "json")
	if s.noDigests {
		argv = append(argv, "--page-digests", "off")
	}
	if s.plainData {
		argv = append(argv, "--plain-data")
	}
	if os.Getenv("KVFENCE_CHAOS_DIR") != "" {
		argv = append(argv, "--trace", filepath.Join(c.dir, name+".ndjson"))
	}
	return newProc(c.t, c.dir, name, c.placed(name, append(c.certified(name, argv), s.extra...))...)
}

// frontNode is the gateway. In a namespace its clients come over a plain link of the test's own; on loopback it has TLS when the
// cluster has.
func (c *cluster) frontNode() *proc {
	p, scheme, up := c.places["g1"], "http", "http"
	argv := []string{c.bin, "gateway", "--gateway", p.gw, "--operator", p.operator, "--keys-file", c.writeKeys(),
		"--request-timeout", c.shape.request.String(), "--window-tokens", fmt.Sprint(windowTokens), "--log-format", "json"}
	tr := &http.Transport{MaxIdleConnsPerHost: clients}
	if c.shape.secure() {
		up = "https"
		argv = append(argv, "--upstream-as", "d1")
	}
	if c.shape.net != nil {
		argv = append(argv, "--gateway-plain")
	} else if c.shape.tls {
		scheme = "https"
		roots := x509.NewCertPool()
		roots.AddCert(c.auth.cert)
		tr.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	argv = append(argv, "--upstream", up+"://"+c.places["d1"].api)
	c.front = front{url: scheme + "://" + p.gw, client: &http.Client{Transport: tr}}
	c.t.Cleanup(tr.CloseIdleConnections)
	return newProc(c.t, c.dir, "g1", c.placed("g1", c.certified("g1", argv))...)
}

// certified adds a certificate of the node's own.
func (c *cluster) certified(name string, argv []string) []string {
	if c.auth == nil {
		return argv
	}
	cert, key := c.auth.issue(name, "127.0.0.1")
	return append(argv, "--tls-cert", cert, "--tls-key", key, "--tls-ca", c.auth.ca())
}

// placed puts a command into its node's namespace.
func (c *cluster) placed(name string, argv []string) []string {
	if ns := c.places[name].ns; ns != "" {
		return c.shape.net.argv(ns, argv...)
	}
	return argv
}

// begin starts everything and waits until the gateway is ready.
func (c *cluster) begin() {
	c.launch()
	c.waitReady(60 * time.Second)
}

// launch starts processes (none named: all), and ends all with the test.
func (c *cluster) launch(only ...*proc) {
	if len(only) == 0 {
		only = c.all
	}
	c.t.Cleanup(func() {
		for _, p := range c.all {
			p.kill()
			if c.t.Failed() {
				c.t.Logf("=== end of %s's log\n%s", p.name, p.tail(3000))
			}
		}
	})
	for _, p := range only {
		p.start()
	}
}

func (c *cluster) writeKeys() string {
	c.keys = map[string]string{}
	var b strings.Builder
	for i := range tenantCount {
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
		r, err := c.front.client.Get(c.front.url + "/readyz")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	}, within, 50*time.Millisecond, "the gateway did not become ready")
}

// heal restarts whatever is dead.
func (c *cluster) heal() {
	for _, p := range c.all {
		if !p.alive() {
			p.start()
		}
	}
}

// waitLinks waits until the decode node has open links with every rank of a prefill side.
func (c *cluster) waitLinks(peer string, within time.Duration) {
	require.Eventually(c.t, func() bool {
		s, err := c.status("d1")
		if err != nil || s.Decode == nil || len(s.Decode.Ranks) == 0 {
			return false
		}
		for _, r := range s.Decode.Ranks {
			open := 0
			for _, l := range r.Links {
				if l.State == "open" && (l.Name == peer || strings.HasPrefix(l.Name, peer+"/")) {
					open++
				}
			}
			if open != c.shape.prefill {
				return false
			}
		}
		return true
	}, within, 50*time.Millisecond, "no open links with %s", peer)
}
