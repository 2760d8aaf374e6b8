package node

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"kvfence/impl/config"
	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/impl/gateway"
	"kvfence/impl/node/api"
	"kvfence/impl/trace"
	"kvfence/spec"
)

// ErrStopped is wrapped when the node ended itself: an invariant broke, a fence could not be done, or a contract inside the
// process was broken. It served nothing after that.
var ErrStopped = errors.New("node stopped itself")

// Node is one process: a prefill side, a decode side, a gateway, or all of them. Safe for concurrent use.
type Node struct {
	cfg     config.Config
	log     *slog.Logger
	metrics *metrics
	creds   *credentials
	device  device.Device // nil: host memory
	trace   *trace.Writer
	prefill *prefillSide
	decode  *decodeSide
	gate    *gateway.Gateway
	client  *api.Client

	gateLn, operatorLn net.Listener
	servers            []*http.Server
	wg                 sync.WaitGroup

	mu       sync.Mutex
	draining bool
	stopped  error
	stop     chan struct{} // closed when the node stopped itself

	closing sync.Once
	ended   chan struct{} // closed when Close begins
	closed  error         // what Close returned
}

// Start checks cfg (with its defaults), binds every address and then lets everything run. What fails is said before anything is
// announced. The node runs until Close.
func Start(cfg config.Config, log *slog.Logger) (*Node, error) { return StartOn(nil, cfg, log) }

// ErrDevice is wrapped where pools on a device and the transport do not go together.
var ErrDevice = errors.New("transport cannot move pages of a device")

// movable refuses transports that need pages which the host can address: shm maps them in another process, and what that process may do with an exported
// mapping of device memory is set by itself; verbs registers them.
func movable(on device.Device, kind string) error {
	if on != nil && kind != "tcp" {
		return fmt.Errorf("%w: transport.kind = %s, pools on %s; tcp can", ErrDevice, kind, on.Name())
	}
	return nil
}

// StartOn is Start with all pools on a device; nil is host memory. The device stays the caller's to close, after the node. A node whose device is lost stops
// itself: nothing of its pools is handed out again.
func StartOn(on device.Device, cfg config.Config, log *slog.Logger) (_ *Node, err error) {
	if err := errors.Join(cfg.Validate(), movable(on, cfg.Transport.Kind), preflight(cfg, on)); err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, log: log, metrics: newMetrics(), device: on, stop: make(chan struct{}), ended: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	if n.creds, err = loadCredentials(cfg.TLS, log); err != nil {
		return nil, err
	}
	if err = n.openTrace(); err != nil {
		return nil, err
	}
	if err = n.bind(); err != nil {
		return nil, err
	}
	return n, n.run()
}

// preflight leaves the room for pools on a device to the device.
func preflight(cfg config.Config, on device.Device) error {
	err := congestion(cfg)
	if on == nil {
		err = errors.Join(memoryFits(cfg, machineMemory()), err)
	}
	if cfg.Sizes.AllowWindowOverPool {
		return err
	}
	return errors.Join(Preflight(cfg), err)
}

func (n *Node) openTrace() error {
	if n.cfg.TraceFile == "" {
		return nil
	}
	f, err := os.OpenFile(n.cfg.TraceFile, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("%w: trace_file: %w", config.ErrConfig, err)
	}
	n.trace = trace.NewWriter(f)
	return nil
}

// bind opens all listeners and makes the machines.
func (n *Node) bind() (err error) {
	epoch := time.Now()
	if n.cfg.RunsPrefill() {
		if n.prefill, err = newPrefillSide(n.cfg, n.log, epoch, n.trace, n.metrics, n.creds, n.device, n.fail); err != nil {
			return err
		}
	}
	if n.cfg.RunsDecode() {
		if n.decode, err = newDecodeSide(n.cfg, n.log, epoch, n.trace, n.metrics, n.creds, n.device, n.fail); err != nil {
			return err
		}
	}
	if n.cfg.RunsGateway() {
		if n.gateLn, err = listen("gateway.listen", n.cfg.Gateway.Listen); err != nil {
			return err
		}
		if err = n.makeGateway(); err != nil {
			return err
		}
	}
	n.operatorLn, err = listen("operator.listen", n.cfg.Operator.Listen)
	return err
}

// maxPrompt is the longest prompt that the inner API reads at all: above any window, so that admission says why.
func maxPrompt(cfg config.Config) int { return min(2*int(cfg.Sizes.Window)+4096, spec.MaxPrompt) }

func (n *Node) makeGateway() (err error) {
	c := n.cfg
	deps := gateway.Deps{Log: n.log.With("role", "gateway"), Registry: n.metrics.registry, Now: time.Now, Rand: rand.Reader}
	if !c.Gateway.Plain {
		deps.TLS = n.creds.publicServer()
	}
	if n.decode != nil {
		deps.Backend = api.NewLocal(n.decode, maxPrompt(c))
	} else {
		cc := api.ClientConfig{BaseURL: c.Gateway.Upstream}
		if n.creds != nil {
			cc.EachTLS = func() *tls.Config { return n.creds.client(c.Gateway.UpstreamAs) }
		}
		if n.client, err = api.NewClient(cc); err != nil {
			return fmt.Errorf("%w: gateway.upstream: %w", config.ErrConfig, err)
		}
		deps.Backend = n.client
	}
	gc := gateway.Config{
		Listen: c.Gateway.Listen, AllowPlain: c.Gateway.Plain, KeysFile: c.Gateway.KeysFile, WindowTokens: int(c.Sizes.Window),
		MaxActive: c.Bounds.Running, MaxWaiting: c.Bounds.Queue, RequestTimeout: c.Timeouts.Request, DrainTimeout: max(c.Timeouts.Drain, time.Millisecond),
	}
	if c.Gateway.HeaderProxy != "" {
		gc.HeaderProxies = []string{c.Gateway.HeaderProxy}
	}
	n.gate, err = gateway.New(gc, deps)
	return err
}

// run starts everything that was bound.
func (n *Node) run() error {
	if n.prefill != nil {
		n.prefill.start()
	}
	if n.decode != nil {
		peers := n.cfg.Decode.Peers
		if n.prefill != nil {
			peers = []config.Peer{{Name: n.cfg.Prefill.Name, Addresses: []string{n.prefill.control.Addr().String()}, Ranks: n.cfg.Prefill.Ranks}}
		}
		n.decode.start(peers)
		if err := n.serveAPI(); err != nil {
			return err
		}
	}
	h, err := n.operator()
	if err != nil {
		return err
	}
	n.serve("operator", n.operatorLn, h)
	n.watchDevice()
	if n.gate != nil {
		n.wg.Go(func() {
			if err := n.gate.Serve(context.Background(), n.gateLn); err != nil {
				n.log.Error("gateway ended", "err", err)
			}
		})
	}
	return nil
}

// serveAPI lets gateways in other processes speak to the decode leader.
func (n *Node) serveAPI() error {
	if n.decode.api == nil {
		return nil
	}
	hc := api.HandlerConfig{Service: n.decode, MaxPromptTokens: maxPrompt(n.cfg)}
	if names := n.cfg.Decode.Gateways; len(names) > 0 {
		hc.Authorize = func(r *http.Request) error {
			if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
				return ErrIdentity
			}
			return anyName(r.TLS.PeerCertificates[0], names)
		}
	}
	h, err := api.NewHandler(hc)
	if err != nil {
		return err
	}
	n.serve("decode.api", n.decode.api, h)
	return nil
}

// serve answers HTTP on l, with mutual TLS where certificates are given.
func (n *Node) serve(name string, l net.Listener, h http.Handler) {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(n.log.Handler(), slog.LevelDebug)}
	n.servers = append(n.servers, s)
	tlsOn := n.creds != nil && !(name == "operator" && (n.cfg.Operator.Plain || config.Loopback(n.cfg.Operator.Listen)))
	if tlsOn {
		s.TLSConfig = n.creds.server()
	}
	n.wg.Go(func() {
		var err error
		if tlsOn {
			err = s.ServeTLS(l, "", "")
		} else {
			err = s.Serve(l)
		}
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			n.log.Error("listener ended", "listener", name, "err", err)
		}
	})
}

// fail ends the node for a reason of its own: nothing is served any more; the fences that the machine asked for go on.
func (n *Node) fail(s core.Stop, who string) {
	if n.device != nil && n.device.Err() != nil && who != onDevice { // what it is a consequence of
		s.Broken = fmt.Sprintf("%s (%s: %v)", s.Broken, n.device.Name(), n.device.Err())
	}
	n.metrics.stop(who)
	n.log.Error("STOP: the node serves nothing more", "machine", who, "invariant", s.Invariant, "broken", s.Broken)
	if d := n.decode; d != nil { // also when it was prefill's machine: the process ends
		d.halted.Store(true)
		d.box.put(d.halt)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped == nil {
		n.stopped = fmt.Errorf("%w: %s: %s", ErrStopped, who, s.Broken)
		close(n.stop)
	}
}

// Stopped is closed when the node stopped itself; Err says why.
func (n *Node) Stopped() <-chan struct{} { return n.stop }

// Err is why the node stopped itself, or nil.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stopped
}

// Ready says why the node cannot serve now, or nil.
func (n *Node) Ready(ctx context.Context) error {
	if err := n.Err(); err != nil {
		return err
	}
	if n.isDraining() {
		return errors.New("draining")
	}
	if n.decode != nil {
		if _, reason := n.decode.pair(); reason != "" {
			return errors.New(reason)
		}
	}
	if n.gate != nil {
		return n.gate.Ready(ctx)
	}
	return nil
}

func (n *Node) isDraining() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.draining
}

// Status is a snapshot.
func (n *Node) Status(ctx context.Context) Status {
	s := Status{Role: string(n.cfg.Role), Draining: n.isDraining(), Ready: true}
	if err := n.Ready(ctx); err != nil {
		s.Ready, s.Reason = false, err.Error()
	}
	if err := n.Err(); err != nil {
		s.Stopped = err.Error()
	}
	if n.prefill != nil {
		s.Prefill = n.prefill.status()
	}
	if n.decode != nil {
		s.Decode = n.decode.status()
	}
	return s
}

// Addresses are the bound addresses by setting, for people and tests.
type Addresses struct{ Gateway, Operator, API, Control string }

// Addresses returns what is bound; empty where the role has none.
func (n *Node) Addresses() (a Addresses) {
	a.Operator = n.operatorLn.Addr().String()
	if n.gateLn != nil {
		a.Gateway = n.gateLn.Addr().String()
	}
	if n.decode != nil && n.decode.api != nil {
		a.API = n.decode.api.Addr().String()
	}
	if n.prefill != nil {
		a.Control = n.prefill.control.Addr().String()
	}
	return a
}
