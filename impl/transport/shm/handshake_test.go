//go:build linux

package shm

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

func TestListen_Socket_IsForItsOwnerOnly(t *testing.T) {
	g := newRig(t)
	st, err := os.Stat(g.e.Address())
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	_, err = Listen(ExporterConfig{Path: g.e.Address()})
	require.ErrorIs(t, err, unix.EADDRINUSE)
	_, err = os.Stat(g.e.Address())
	require.NoError(t, err, "a failed bind must not take another's socket away")
	_, err = Listen(ExporterConfig{Path: filepath.Join(t.TempDir(), strings.Repeat("x", 120))})
	require.Error(t, err)
	require.NoError(t, g.e.Close())
	_, err = os.Stat(g.e.Address())
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = g.e.Offer(testLink(9), g.sink)
	require.ErrorIs(t, err, ErrClosed)
}

func TestDial_WrongKeyOrLink_IsRefusedAndTheLinkStaysOpenable(t *testing.T) {
	g := newRig(t)
	before := descriptors(t)
	for _, change := range []func(l *transport.LinkInfo){
		func(l *transport.LinkInfo) { l.Key[5] ^= 1 },
		func(l *transport.LinkInfo) { l.Epoch = 2 },
		func(l *transport.LinkInfo) { l.Decode[3] = 1 },
		func(l *transport.LinkInfo) { l.Prefill = spec.Incarnation{} },
	} {
		cfg := g.config(newReaderSink())
		change(&cfg.Link)
		_, err := Dial(context.Background(), cfg)
		require.ErrorIs(t, err, transport.ErrAuth)
		require.ErrorIs(t, <-g.refused, transport.ErrAuth)
	}
	require.Equal(t, before, descriptors(t))
	none(t, g.sink.opened, "opened without the key")
	g.dial(g.config(newReaderSink()))
}

func TestDial_SecondReaderOfALink_IsRefused(t *testing.T) {
	g := newRig(t)
	g.dial(g.config(newReaderSink()))
	_, err := Dial(context.Background(), g.config(newReaderSink()))
	require.ErrorIs(t, err, transport.ErrAuth)
	require.ErrorIs(t, <-g.refused, ErrTwin)
	_, err = g.e.Offer(testLink(1), g.sink)
	require.ErrorIs(t, err, ErrTwin)
}

func TestDial_ShutLink_IsRefused(t *testing.T) {
	g := newRig(t)
	g.x.Shut()
	_, err := Dial(context.Background(), g.config(newReaderSink()))
	require.ErrorIs(t, err, transport.ErrAuth)
	require.ErrorIs(t, <-g.refused, ErrClosed)
}

func TestDial_SourcePageHoldsAnotherNonce_IsRefused(t *testing.T) {
	for name, change := range map[string]func(page []byte){
		"nonce":       func(p []byte) { p[atNonce] ^= 1 },
		"epoch":       func(p []byte) { p[atEpoch] ^= 1 },
		"incarnation": func(p []byte) { p[atPrefill] ^= 1 },
		"magic":       func(p []byte) { p[0] ^= 1 },
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			change(g.x.page.page)
			_, err := Dial(context.Background(), g.config(newReaderSink()))
			require.ErrorIs(t, err, ErrNonce)
			require.Error(t, <-g.refused)
			none(t, g.sink.opened, "opened")
		})
	}
}

// stranger speaks the reader's side by hand, up to where the test wants to lie.
func stranger(t *testing.T, g *rig) (*script, *control, []byte) {
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: g.e.Address(), Net: "unixpacket"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	own, err := newControl(testLink(1))
	require.NoError(t, err)
	t.Cleanup(func() { _ = own.close() })
	s := &script{conn: c, key: testLink(1).Key}
	_, _, err = s.receive(helloBytes, 0, nil)
	require.NoError(t, err)
	l := testLink(1)
	return s, own, claim{l.Prefill, l.Decode, l.Epoch, own.nonce()}.encode()
}

func TestExporter_ReaderPageHoldsAnotherNonce_DoesNotOpen(t *testing.T) {
	g := newRig(t)
	s, own, body := stranger(t, g)
	own.page[atNonce] ^= 1
	require.NoError(t, s.send(body, int(own.file.Fd())))
	require.ErrorIs(t, <-g.refused, ErrNonce)
	none(t, g.sink.opened, "opened")
	g.dial(g.config(newReaderSink()))
}

func TestExporter_ReaderDidNotReadTheNonce_DoesNotOpen(t *testing.T) {
	g := newRig(t)
	s, own, body := stranger(t, g)
	require.NoError(t, s.send(body, int(own.file.Fd())))
	_, files, err := s.receive(tableBytes, -1, nil)
	require.NoError(t, err)
	closeAll(files)
	require.NoError(t, s.send(make([]byte, nonceBytes)))
	require.ErrorIs(t, <-g.refused, ErrNonce)
	none(t, g.sink.opened, "opened")
}

func TestExporter_BadClaims_AreRefusedWithoutLeak(t *testing.T) {
	g := newRig(t)
	pipeR, pipeW, err := os.Pipe()
	require.NoError(t, err)
	defer pipeR.Close()
	defer pipeW.Close()
	open, err := unix.MemfdCreate("unsealed", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	defer unix.Close(open)
	require.NoError(t, unix.Ftruncate(open, pageBytes))
	for name, say := range map[string]func(s *script, own *control, body []byte) error{
		"no descriptor":   func(s *script, own *control, body []byte) error { return s.send(body) },
		"two descriptors": func(s *script, own *control, body []byte) error { return s.send(body, open, open) },
		"a pipe":          func(s *script, own *control, body []byte) error { return s.send(body, int(pipeR.Fd())) },
		"unsealed page":   func(s *script, own *control, body []byte) error { return s.send(body, open) },
		"short":           func(s *script, own *control, body []byte) error { return s.send(body[:20], int(own.file.Fd())) },
		"long": func(s *script, own *control, body []byte) error {
			return s.send(append(body, 0), int(own.file.Fd()))
		},
		"far too long": func(s *script, own *control, body []byte) error {
			return s.send(make([]byte, 4000), int(own.file.Fd()))
		},
		"many descriptors": func(s *script, own *control, body []byte) error {
			many := make([]int, 60)
			for i := range many {
				many[i] = open
			}
			return s.send(body, many...)
		},
		"no MAC": func(s *script, own *control, body []byte) error {
			_, _, err := s.conn.WriteMsgUnix(append(body, make([]byte, macBytes)...), unix.UnixRights(int(own.file.Fd())), nil)
			return err
		},
		"hangs up": func(s *script, own *control, body []byte) error { return nil },
	} {
		before := descriptors(t)
		func() {
			c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: g.e.Address(), Net: "unixpacket"})
			require.NoError(t, err, name)
			own, err := newControl(testLink(1))
			require.NoError(t, err, name)
			s := &script{conn: c, key: testLink(1).Key}
			_, _, err = s.receive(helloBytes, 0, nil)
			require.NoError(t, err, name)
			l := testLink(1)
			require.NoError(t, say(s, own, claim{l.Prefill, l.Decode, l.Epoch, own.nonce()}.encode()), name)
			if name == "hangs up" {
				require.NoError(t, c.Close())
			}
			require.Error(t, <-g.refused, name)
			_ = c.Close()
			require.NoError(t, own.close())
		}()
		require.Equal(t, before, descriptors(t), name)
	}
	none(t, g.sink.opened, "opened")
	g.dial(g.config(newReaderSink()))
}

// A packet of another attempt does not authenticate: the challenge differs.
func TestExporter_ReplayedClaim_IsRefused(t *testing.T) {
	g := newRig(t)
	first, own, body := stranger(t, g)
	first.step++
	packet := append(body, first.mac(body)...)
	second, _, _ := stranger(t, g)
	_, _, err := second.conn.WriteMsgUnix(packet, unix.UnixRights(int(own.file.Fd())), nil)
	require.NoError(t, err)
	require.ErrorIs(t, <-g.refused, transport.ErrAuth)
}

func TestDial_LyingExporter_IsRefusedWithoutLeak(t *testing.T) {
	small, err := unix.MemfdCreate("small", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	f := os.NewFile(uintptr(small), "small")
	defer f.Close()
	require.NoError(t, f.Truncate(pageBytes))
	for name, lie := range map[string]func(p *[spec.ComponentCount]*device.Shared){
		"longer":          func(p *[spec.ComponentCount]*device.Shared) { p[spec.KV].Bytes.Region.Length += 4096 },
		"shorter":         func(p *[spec.ComponentCount]*device.Shared) { p[spec.KV].Bytes.Region.Length -= 4096 },
		"beyond the file": func(p *[spec.ComponentCount]*device.Shared) { p[spec.KV].Bytes.Region.Offset = 1 << 40 },
		"negative offset": func(p *[spec.ComponentCount]*device.Shared) { p[spec.KV].Bytes.Region.Offset = -4096 },
		"odd offset":      func(p *[spec.ComponentCount]*device.Shared) { p[spec.KV].Bytes.Region.Offset = 64 },
		"huge offset":     func(p *[spec.ComponentCount]*device.Shared) { p[spec.KV].Bytes.Region.Offset = 1<<63 - 4096 },
		"tags elsewhere":  func(p *[spec.ComponentCount]*device.Shared) { p[spec.KV].Tags.Region.Offset += 4096 },
		"small file": func(p *[spec.ComponentCount]*device.Shared) {
			p[spec.KV].Bytes.File, p[spec.KV].Bytes.Sealed = f, false
		},
		"says it is sealed": func(p *[spec.ComponentCount]*device.Shared) { p[spec.Aux].Bytes.File = f },
		"lacks a pool":      func(p *[spec.ComponentCount]*device.Shared) { p[spec.Aux] = nil },
		"has one too many":  func(p *[spec.ComponentCount]*device.Shared) { p[spec.State] = p[spec.Aux] },
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, func(c *ExporterConfig) {
				for i, p := range c.Pools {
					if p != nil {
						c.Pools[i] = &device.Shared{Pool: p.Pool, Bytes: p.Bytes, Tags: p.Tags}
					}
				}
				lie(&c.Pools)
			})
			before := descriptors(t)
			_, err := Dial(context.Background(), g.config(newReaderSink()))
			require.ErrorIs(t, err, ErrRegions)
			require.Error(t, <-g.refused)
			require.Equal(t, before, descriptors(t))
			none(t, g.sink.opened, "opened")
		})
	}
}

func TestDial_NobodyListens_IsLost(t *testing.T) {
	_, err := Dial(context.Background(), ReaderConfig{Address: filepath.Join(t.TempDir(), "none"), Link: testLink(1)})
	require.ErrorIs(t, err, transport.ErrStream)
}

// The exporter accepts and says nothing: only the caller's context ends the attempt.
func TestDial_SilentExporter_EndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		c, err := l.AcceptUnix()
		if err == nil {
			defer c.Close()
			cancel()
			_, _, _ = readPacket(c) // until the dialer is gone
		}
	}()
	_, err = Dial(ctx, ReaderConfig{Address: path, Link: testLink(1), Source: layouts(), Memory: destination()})
	require.ErrorIs(t, err, context.Canceled)
}

func TestExporter_StalledHandshakes_TheOldestMakesRoom(t *testing.T) {
	g := newRig(t, func(c *ExporterConfig) { c.MaxHandshakes = 2 })
	a, _, _ := stranger(t, g)
	stranger(t, g)
	none(t, g.refused, "there was room")
	stranger(t, g)
	require.ErrorIs(t, <-g.refused, transport.ErrAuth)
	_, _, err := readPacket(a.conn)
	require.Error(t, err)
	g.dial(g.config(newReaderSink()))
}

func TestExporter_ForeignUserID_IsRefused(t *testing.T) {
	g := newRig(t, func(c *ExporterConfig) { c.UIDs = []uint32{uint32(os.Geteuid()) + 1} })
	before := descriptors(t)
	_, err := Dial(context.Background(), g.config(newReaderSink()))
	require.ErrorIs(t, err, transport.ErrAuth)
	require.ErrorIs(t, <-g.refused, ErrPeer)
	require.Equal(t, before, descriptors(t))
}

func TestLink_OpenedAndClosedOften_LeaksNoDescriptor(t *testing.T) {
	_, err := os.ReadDir(t.TempDir()) // the runtime's poller is open from here on
	require.NoError(t, err)
	newRig(t).close()
	before := descriptors(t)
	g := newRig(t)
	for i := range 20 {
		link := testLink(spec.Epoch(i + 10))
		sink := newExportSink()
		x, err := g.e.Offer(link, sink)
		require.NoError(t, err)
		cfg := g.config(newReaderSink())
		cfg.Link = link
		r, err := Dial(context.Background(), cfg)
		require.NoError(t, err)
		<-sink.opened
		require.NoError(t, r.Close())
		require.ErrorIs(t, <-sink.lost, transport.ErrStream)
		require.NoError(t, x.Close())
		require.NoError(t, x.Close())
		none(t, sink.ended, "its process lives")
	}
	g.close()
	require.Equal(t, before, descriptors(t))
}

// The way before Linux 6.5: the process is opened by its number and must still hold the connection.
func TestOpenByNumber_HungUpConnection_IsRefused(t *testing.T) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(p[0])
	fd, err := openByNumber(p[0], os.Getpid())
	require.NoError(t, err)
	w, err := watchable(fd)
	require.NoError(t, err)
	require.NoError(t, w.close())
	require.Error(t, w.wait())
	require.NoError(t, unix.Close(p[1]))
	before := descriptors(t)
	_, err = openByNumber(p[0], os.Getpid())
	require.Error(t, err)
	require.Equal(t, before, descriptors(t))
	require.False(t, errors.Is(err, ErrPeer), "wrapped once, by the caller")
}
