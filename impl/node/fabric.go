package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kvfence/impl/config"
	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/impl/transport/tcp"
	"kvfence/impl/transport/verbs"
	"kvfence/spec"
)

// A push fabric is what tcp and verbs have in common for a node: prefill listens and expects links, decode dials them.

// dataListener is prefill's end of a push fabric.
type dataListener interface {
	Addr() string
	Expect(transport.LinkInfo, transport.SourceSink) (transport.Source, error)
	Close() error
}

// pushDialer is decode's.
type pushDialer interface {
	Dial(ctx context.Context, addr string, info transport.LinkInfo, g *transport.Grants, sink transport.TargetSink, stream tcp.Options) (transport.Target, error)
}

// tcpDialer dials data streams.
type tcpDialer struct{}

func (tcpDialer) Dial(ctx context.Context, addr string, info transport.LinkInfo, g *transport.Grants, sink transport.TargetSink, stream tcp.Options) (transport.Target, error) {
	return tcp.Dial(ctx, addr, info, g, sink, stream)
}

// isVerbs reports whether pages travel over RDMA.
func isVerbs(cfg config.Config) bool { return cfg.Transport.Kind == "verbs" }

// openVerbs opens the rails of one rank for its pools.
// What this build or machine lacks is said before its devices are looked at.
func openVerbs(cfg config.Config, mem device.Memory, target bool, stream tcp.Options) (*verbs.Adapter, error) {
	if err := verbs.Library(); err != nil {
		return nil, fmt.Errorf("transport.kind verbs: %w", err)
	}
	opts, err := verbsOptions(cfg.Transport.Verbs)
	if err != nil {
		return nil, err
	}
	opts.Target, opts.Stream = target, stream
	a, err := verbs.Open(opts, mem)
	if err != nil {
		return nil, fmt.Errorf("transport.kind verbs: %w", err)
	}
	return a, nil
}

// verbsOptions reads a section that Validate has passed; only what the machine has is found out here.
func verbsOptions(v config.Verbs) (o verbs.Options, err error) {
	o = verbs.Options{
		Leases: verbs.Leases(v.Leases), RetryCount: v.RetryCount, Timeout: v.TimeoutExponent, RNRRetry: v.RNRRetry,
		SendDepth: v.SendDepth, NoticeDepth: v.NoticeDepth, BusyPoll: v.BusyPoll.Enabled(),
	}
	if v.MTU != "auto" {
		o.MTU, err = strconv.Atoi(v.MTU)
	}
	gid := verbs.GIDAuto
	if v.GIDIndex != "auto" {
		n, e := strconv.Atoi(v.GIDIndex)
		gid, err = n, errors.Join(err, e)
	}
	for _, d := range v.Devices {
		name, port, has := strings.Cut(d, ":")
		n := uint64(1)
		if has {
			var e error
			n, e = strconv.ParseUint(port, 10, 8)
			err = errors.Join(err, e)
		}
		o.Rails = append(o.Rails, verbs.Rail{Device: name, Port: uint8(n)})
	}
	if err != nil {
		return o, fmt.Errorf("%w: transport.verbs: %w", config.ErrConfig, err)
	}
	if len(o.Rails) == 0 {
		chosen, err := verbs.ChooseRails("/sys", v.Near, v.MaxRails)
		if err != nil {
			return o, fmt.Errorf("transport.verbs.devices: %w", err)
		}
		for _, c := range chosen {
			o.Rails = append(o.Rails, c.Rail)
		}
	}
	for i := range o.Rails {
		o.Rails[i].GID = gid
	}
	return o, nil
}

// settle lets the adapters take back the rights of revoked leases that cover pages which are about to be handed out, whose writers have said that they are
// done. It reports whether nothing of them is left.
func (l *targetLink) settle(c spec.Component, pages []spec.PageID) bool {
	leases := l.grants.Strays(c, pages)
	l.push.each(func(t transport.Target) {
		if s, can := t.(transport.Settler); can {
			s.Settle(leases)
		}
	})
	return len(l.grants.Strays(c, pages)) == 0
}
