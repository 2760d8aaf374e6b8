//go:build chaos

package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// hosts are network namespaces of the test's own: a for the prefill nodes, b for the decode node and the gateway, joined by a veth
// pair that can be set down and up. With a wire there is a third one between them, m, and two pairs: what a sends arrives at one
// end in m, and the test carries it to the other. The test itself lives in the namespace it was started in and reaches b over a
// pair of its own.
type hosts struct {
	t       *testing.T
	prefix  string
	linkA   string // a's interface
	gateway string // b's address towards the test
	inM     [2]string
	hasWire bool
}

// Addresses of the link between a and b; nobody else sees them.
const (
	addrPrefill = "10.213.0.1"
	addrDecode  = "10.213.0.2"
)

var hostsMade atomic.Int64

// newHosts makes the namespaces, or skips with the reason.
func newHosts(t *testing.T, wire bool) *hosts {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	for _, tool := range []string{"ip", "ethtool"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed (make setup, as root)")
		}
	}
	h := &hosts{t: t, prefix: fmt.Sprintf("kv%d%c", os.Getpid()%100000, 'a'+rune(hostsMade.Add(1)%26)), hasWire: wire}
	if out, err := exec.Command("ip", "netns", "add", h.ns("a")).CombinedOutput(); err != nil {
		t.Skipf("network namespaces are not to be had here: %s", out)
	}
	t.Cleanup(func() {
		for _, x := range []string{"a", "b", "m"} {
			_ = exec.Command("ip", "netns", "del", h.ns(x)).Run() // m is there only with a wire
		}
	})
	h.ip("netns", "add", h.ns("b"))
	h.linkA = h.prefix + "p"
	linkB := h.prefix + "d"
	if wire {
		h.ip("netns", "add", h.ns("m"))
		h.inM = [2]string{h.prefix + "x", h.prefix + "y"}
		h.pair("a", h.linkA, "m", h.inM[0])
		h.pair("b", linkB, "m", h.inM[1])
	} else {
		h.pair("a", h.linkA, "b", linkB)
	}
	h.in("a", "ip", "addr", "add", addrPrefill+"/24", "dev", h.linkA)
	h.in("b", "ip", "addr", "add", addrDecode+"/24", "dev", linkB)
	h.ip("link", "add", h.prefix+"t", "type", "veth", "peer", "name", h.prefix+"g", "netns", h.ns("b"))
	own := fmt.Sprintf("10.213.%d.", 1+os.Getpid()%250) // a network of this process's own: others may run the same tests here
	h.gateway = own + "1"
	h.ip("addr", "add", own+"2/24", "dev", h.prefix+"t")
	h.in("b", "ip", "addr", "add", h.gateway+"/24", "dev", h.prefix+"g")
	h.ip("link", "set", h.prefix+"t", "up")
	h.up("b", h.prefix+"g")
	h.up("a", "lo")
	h.up("b", "lo")
	return h
}

// pair joins two namespaces. Where frames pass through the test, the kernel may neither leave checksums to the device nor send
// frames longer than the device's.
func (h *hosts) pair(x, nameX, y, nameY string) {
	h.ip("link", "add", nameX, "netns", h.ns(x), "type", "veth", "peer", "name", nameY, "netns", h.ns(y))
	for _, end := range [][2]string{{x, nameX}, {y, nameY}} {
		if h.hasWire {
			h.in(end[0], "ethtool", "-K", end[1], "tx", "off", "sg", "off", "tso", "off", "gso", "off", "gro", "off")
		}
		h.up(end[0], end[1])
	}
}

func (h *hosts) up(x, link string) { h.in(x, "ip", "link", "set", link, "up") }

func (h *hosts) ns(x string) string { return h.prefix + "-" + x }

func (h *hosts) ip(args ...string) {
	out, err := exec.Command("ip", args...).CombinedOutput()
	require.NoError(h.t, err, "ip %s: %s", strings.Join(args, " "), out)
}

func (h *hosts) in(x string, argv ...string) {
	h.ip(append([]string{"netns", "exec", h.ns(x)}, argv...)...)
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
	h.in("a", "ip", "link", "set", h.linkA, state)
}

// inside runs f on a thread that is in namespace x; sockets that f makes stay there. The thread comes back: processes that it
// started would be killed with it.
func (h *hosts) inside(x string, f func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer home.Close()
	there, err := os.Open(filepath.Join("/run/netns", h.ns(x)))
	if err != nil {
		return err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	err = f()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return back // the thread stays locked: nobody else may use it
	}
	runtime.UnlockOSThread()
	return err
}
