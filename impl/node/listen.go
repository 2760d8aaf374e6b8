package node

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// ErrListen is wrapped when an address cannot be bound. Nothing is announced before it is bound.
var ErrListen = errors.New("cannot listen")

// listen binds addr for the setting that names it.
func listen(setting, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, listenError(setting, addr, err)
	}
	return l, nil
}

// listenError is one clear line.
func listenError(setting, addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: %s = %s is in use by another process: stop it or choose another address", ErrListen, setting, addr)
	}
	return fmt.Errorf("%w: %s = %s: %w", ErrListen, setting, addr, err)
}

// serverSide wraps an accepted connection in mutual TLS, or leaves it plain. The handshake is the caller's, under a deadline.
func serverSide(nc net.Conn, creds *credentials) net.Conn {
	if cfg := creds.server(); cfg != nil {
		return tls.Server(nc, cfg)
	}
	return nc
}
