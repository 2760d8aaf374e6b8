package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"kvfence/impl/config"
)

// ErrIdentity is wrapped when a peer is not who it says it is, by its certificate.
var ErrIdentity = errors.New("peer is not who it claims to be")

// credentials are the node's certificate and the authority it trusts, read again when a file changes. nil means plain.
// Safe for concurrent use.
type credentials struct {
	files config.TLS
	log   *slog.Logger

	mu    sync.Mutex
	stamp [3]fileStamp
	cert  tls.Certificate
	roots *x509.CertPool
}

type fileStamp struct {
	at   time.Time
	size int64
}

// loadCredentials reads the files of t; nil without error if none are given.
func loadCredentials(t config.TLS, log *slog.Logger) (*credentials, error) {
	if !t.Enabled() {
		return nil, nil
	}
	c := &credentials{files: t, log: log}
	if err := c.read(); err != nil {
		return nil, err
	}
	return c, nil
}

// current returns what is in force, after a look at the files. Files that cannot be used leave the old ones in force.
func (c *credentials) current() (tls.Certificate, *x509.CertPool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stamps() != c.stamp {
		if err := c.read(); err != nil {
			c.log.Error("changed certificate files cannot be used; the old ones stay in force", "err", err)
		} else {
			c.log.Info("certificates reloaded", "cert", c.files.Cert)
		}
	}
	return c.cert, c.roots
}

func (c *credentials) stamps() (s [3]fileStamp) {
	for i, f := range []string{c.files.Cert, c.files.Key, c.files.CA} {
		if st, err := os.Stat(f); err == nil {
			s[i] = fileStamp{st.ModTime(), st.Size()}
		}
	}
	return s
}

// read loads the files; on error nothing but the stamp changes, so that a bad file is reported once.
func (c *credentials) read() error {
	c.stamp = c.stamps()
	cert, err := tls.LoadX509KeyPair(c.files.Cert, c.files.Key)
	if err != nil {
		return fmt.Errorf("%w: tls.cert %s, tls.key %s: %w", config.ErrConfig, c.files.Cert, c.files.Key, err)
	}
	pem, err := os.ReadFile(c.files.CA)
	if err != nil {
		return fmt.Errorf("%w: tls.ca: %w", config.ErrConfig, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%w: tls.ca %s holds no certificate", config.ErrConfig, c.files.CA)
	}
	c.cert, c.roots = cert, roots
	return nil
}

// server demands a client certificate of the authority; nil for plain.
func (c *credentials) server() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		cert, roots := c.current()
		return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert}, nil
	}}
}

// publicServer is for clients that prove themselves otherwise (API keys): a certificate is checked if one is shown.
func (c *credentials) publicServer() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		cert, roots := c.current()
		return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{cert}, ClientCAs: roots, ClientAuth: tls.VerifyClientCertIfGiven}, nil
	}}
}

// client dials a server that must be valid for name; nil for plain.
func (c *credentials) client(name string) *tls.Config {
	if c == nil {
		return nil
	}
	cert, roots := c.current()
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, RootCAs: roots, ServerName: name}
}

// anyName checks that a certificate is valid for one of several names.
func anyName(leaf *x509.Certificate, names []string) error {
	for _, n := range names {
		if leaf.VerifyHostname(n) == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: %q is none of %q", ErrIdentity, leaf.DNSNames, names)
}

// serverName is the name that addr's certificate must be valid for: the expected one, or the host.
func serverName(expected, addr string) string {
	if expected != "" {
		return expected
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}

// nodeName is the stable name of one rank: the side's, and behind a slash the rank if there are several.
func nodeName(side string, rank, size int) string {
	if size == 1 {
		return side
	}
	return fmt.Sprintf("%s/%d", side, rank)
}

// vouches checks that the certificate behind a connection is valid for the side of a claimed node name. A plain connection
// (leaf nil) vouches for anybody: it exists on loopback only.
func vouches(leaf *x509.Certificate, name string) error {
	if leaf == nil {
		return nil
	}
	side, _, _ := strings.Cut(name, "/")
	if err := leaf.VerifyHostname(side); err != nil {
		return fmt.Errorf("%w: it says %q: %w", ErrIdentity, name, err)
	}
	return nil
}
