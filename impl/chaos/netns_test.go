//go:build chaos

package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hosts are two network namespaces of the test's own, joined by a veth pair that can be set down and up. The test itself lives
// in a third place, the root namespace, and reaches host a over a second pair.
type hosts struct {
	t      *testing.T
	prefix string
}

const (
	addrGateway = "10.213.1.1" // host b's end towards the test
	addrTest    = "10.213.1.2"
	addrPrefill = "10.213.2.1"
	addrDecode  = "10.213.2.2"
)

// newHosts makes the namespaces, or skips with the reason.
func newHosts(t *testing.T) *hosts {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("iproute2 is not installed")
	}
	h := &hosts{t: t, prefix: fmt.Sprintf("kvf%d", os.Getpid()%10000)}
	a, b := h.ns("a"), h.ns("b")
	if out, err := exec.Command("ip", "netns", "add", a).CombinedOutput(); err != nil {
		t.Skipf("network namespaces are not to be had here: %s", out)
	}
	t.Cleanup(func() {
		_ = exec.Command("ip", "netns", "del", a).Run()
		_ = exec.Command("ip", "netns", "del", b).Run()
	})
	h.ip("netns", "add", b)
	h.ip("link", "add", h.prefix+"p", "netns", a, "type", "veth", "peer", "name", h.prefix+"d", "netns", b)
	h.in(a, "ip", "addr", "add", addrPrefill+"/24", "dev", h.prefix+"p")
	h.in(b, "ip", "addr", "add", addrDecode+"/24", "dev", h.prefix+"d")
	h.ip("link", "add", h.prefix+"t", "type", "veth", "peer", "name", h.prefix+"g", "netns", b)
	h.ip("addr", "add", addrTest+"/24", "dev", h.prefix+"t")
	h.in(b, "ip", "addr", "add", addrGateway+"/24", "dev", h.prefix+"g")
	h.ip("link", "set", h.prefix+"t", "up")
	for _, v := range [][2]string{{a, "lo"}, {b, "lo"}, {a, h.prefix + "p"}, {b, h.prefix + "d"}, {b, h.prefix + "g"}} {
		h.in(v[0], "ip", "link", "set", v[1], "up")
	}
	return h
}

func (h *hosts) ns(x string) string { return h.prefix + "-" + x }

func (h *hosts) ip(args ...string) {
	out, err := exec.Command("ip", args...).CombinedOutput()
	require.NoError(h.t, err, "ip %s: %s", strings.Join(args, " "), out)
}

func (h *hosts) in(ns string, argv ...string) {
	h.ip(append([]string{"netns", "exec", ns}, argv...)...)
}

// argv wraps a command so that it runs in namespace x.
func (h *hosts) argv(x string, argv ...string) []string {
	return append([]string{"ip", "netns", "exec", h.ns(x)}, argv...)
}

// cut sets the link between the nodes down, or up again.
func (h *hosts) cut(down bool) {
	state := "up"
	if down {
		state = "down"
	}
	h.in(h.ns("a"), "ip", "link", "set", h.prefix+"p", state)
}
