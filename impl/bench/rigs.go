//go:build linux

package bench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"kvfence/impl/config"
	"kvfence/impl/core"
	"kvfence/impl/node"
	"kvfence/spec"
)

// nodeConfig is the configuration of both ends: a node's own defaults but for what is measured.
func (c config0) nodeConfig(digests bool, window uint32) config.Config {
	var n config.Config
	n.Prefill.Control, n.Prefill.Data = "127.0.0.1:0", "127.0.0.1:0"
	n.Transport.Kind, n.Transport.CongestionControl, n.Transport.Streams, n.Transport.SocketDir = "tcp", c.Congestion, c.Streams, c.Dir
	n.Sizes.Window, n.Guards.PageDigests = window, config.Off
	n.Timeouts.Liveness, n.Timeouts.Progress = 30*time.Second, time.Minute
	if digests {
		n.Guards.PageDigests = config.On
	}
	switch c.Suite {
	case "tls":
		n.TLS = certFiles(c.Dir)
	case "shm":
		n.Transport.Kind = "shm"
	}
	return n.WithDefaults()
}

// rigConfig is a rig's, with what its leader hears in heard.
func (c config0) rigConfig(page, pool int, digests bool, shared bool, heard *ear, log io.Writer) node.RigConfig {
	l := layoutOf(page, pool, shared)
	return node.RigConfig{
		Config: c.nodeConfig(digests, l.Shape.Pages*pageTokens), Layouts: []spec.Layout{l},
		Log:    slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError})),
		Leader: heard.hear, Stopped: heard.stop,
	}
}

// said is a message of a rank to its leader, and when it was said.
type said struct {
	msg core.SideMsg
	at  int64
}

// ear collects what a rank says. hear never blocks: nobody asks for more at once than it has room for.
type ear struct {
	said chan said
	over chan error
}

func newEar() *ear { return &ear{make(chan said, 1<<16), make(chan error, 1)} }

func (e *ear) hear(m core.SideMsg) {
	at, err := monotonic()
	if err != nil {
		e.stop(err)
	}
	select {
	case e.said <- said{m, at}:
	default:
		e.stop(fmt.Errorf("%w: nobody listens to the rank", ErrBench))
	}
}

func (e *ear) stop(err error) {
	select {
	case e.over <- err:
	default:
	}
}

// waitBound is how long anything that takes milliseconds may take.
const waitBound = 60 * time.Second

// waitFor returns the next message of type M. What says that it will not come is an error; other messages are passed over.
func waitFor[M core.SideMsg](ctx context.Context, e *ear) (m M, at int64, err error) {
	t := time.NewTimer(waitBound)
	defer t.Stop()
	for {
		select {
		case s := <-e.said:
			if m, ok := s.msg.(M); ok {
				return m, s.at, nil
			}
			if bad := failure(s.msg); bad != nil {
				return m, 0, bad
			}
		case err := <-e.over:
			return m, 0, err
		case <-ctx.Done():
			return m, 0, ctx.Err()
		case <-t.C:
			return m, 0, fmt.Errorf("%w: no %T came", ErrBench, m)
		}
	}
}

// failure is what a message says of a request or link that cannot go on.
func failure(m core.SideMsg) error {
	switch m := m.(type) {
	case core.LeaseFailed:
		return fmt.Errorf("%w: lease failed: %s: %s", ErrBench, m.Cause, m.Detail)
	case core.NoPlan:
		return fmt.Errorf("%w: no plan: %s: %s", ErrBench, m.Cause, m.Detail)
	case core.NoRoom, core.SourceNoRoom:
		return fmt.Errorf("%w: %T: pages have not come back", ErrBench, m)
	case core.PeerDown, core.PeerRefused, core.RankEnding, core.JobStopped:
		return fmt.Errorf("%w: %T: %+v", ErrBench, m, m)
	}
	return nil
}
