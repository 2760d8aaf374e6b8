package node

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"kvfence/impl/device"
	"kvfence/impl/transport/shm"
	"kvfence/spec"
)

// makeMemory allocates the pools of one rank; free gives them back. Shared pools are sealed memory that a peer may map. A device's are given back with it.
func makeMemory(on device.Device, ls []spec.Layout, shared bool) (mem device.Memory, pools [spec.ComponentCount]*device.Shared, free func() error, err error) {
	free = func() (err error) {
		for _, p := range pools {
			if p != nil {
				err = errors.Join(err, p.Close())
			}
		}
		return err
	}
	for _, l := range ls {
		if !shared {
			if on == nil {
				mem[l.Component], err = device.NewPool(l, nil, nil)
			} else {
				mem[l.Component], err = on.NewPool(l)
			}
			if err != nil {
				return mem, pools, free, err
			}
			continue
		}
		s, err := device.NewSharedPool(l)
		if err != nil {
			return mem, pools, free, errors.Join(err, free())
		}
		pools[l.Component], mem[l.Component] = s, s.Pool
	}
	return mem, pools, free, nil
}

// socketPath is where the prefill rank of an incarnation binds its socket for readers on the same host; both ends derive it.
func socketPath(dir string, inc spec.Incarnation) string {
	return filepath.Join(socketDir(dir), inc.Hex()+".sock")
}

func socketDir(dir string) string {
	if dir != "" {
		return dir
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("kvfence-%d", os.Geteuid()))
}

// makeSocketDir makes the directory, for this user only.
func makeSocketDir(dir string) error {
	dir = socketDir(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("%w: transport.socket_dir: %w", ErrListen, err)
	}
	st, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("%w: transport.socket_dir: %w", ErrListen, err)
	}
	if !st.IsDir() || st.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: transport.socket_dir %s must be a directory that only its owner can write", ErrListen, dir)
	}
	return nil
}

// maxStale bounds the sockets that one start looks at.
const maxStale = 1024

// staleAge is how old a socket must be to be removed: a younger one may be between its bind and its listen.
const staleAge = time.Minute

// removeStale removes sockets in dir that nobody listens on any more: nodes that were killed leave theirs behind.
func removeStale(dir string) error {
	names, err := filepath.Glob(filepath.Join(socketDir(dir), "*.sock"))
	if err != nil {
		return err
	}
	for _, name := range names[:min(len(names), maxStale)] {
		if st, err := os.Stat(name); err != nil || time.Since(st.ModTime()) < staleAge {
			continue
		}
		c, err := net.Dial("unixpacket", name)
		switch {
		case err == nil:
			_ = c.Close() // somebody's
		case errors.Is(err, syscall.ECONNREFUSED):
			if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// bindData gives a prefill rank its memory and the listener of its transport.
func (r *prefillRank) bindData() (err error) {
	cfg := r.side.cfg
	shared := cfg.Transport.Kind == "shm"
	var pools [spec.ComponentCount]*device.Shared
	if r.mem, pools, r.free, err = makeMemory(r.side.device, r.side.layouts[r.rank], shared); err != nil {
		return err
	}
	if !shared {
		return r.listenData(cfg, r.side.creds)
	}
	if err := makeSocketDir(cfg.Transport.SocketDir); err != nil {
		return err
	}
	if err := removeStale(cfg.Transport.SocketDir); err != nil {
		return fmt.Errorf("%w: transport.socket_dir: %w", ErrListen, err)
	}
	r.shm, err = shm.Listen(shm.ExporterConfig{Path: socketPath(cfg.Transport.SocketDir, r.inc), Pools: pools, Refused: func(err error) {
		r.side.metrics.stranger("prefill", strangeReader)
		r.side.log.Warn("reader refused", "rank", r.rank, "err", err)
	}})
	if err != nil {
		return fmt.Errorf("%w: transport.socket_dir: %w", ErrListen, err)
	}
	return nil
}

// dataAddress is what decode dials; empty for pull.
func (r *prefillRank) dataAddress() string {
	if r.data == nil {
		return ""
	}
	return r.data.Addr()
}
