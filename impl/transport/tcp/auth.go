package tcp

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"kvfence/impl/transport"
	"kvfence/spec"
)

// Each stream begins with a mutual challenge, before any data byte. Integers are little-endian.
//
//	dialer   hello, 96 bytes: 0 "KVFH"; 4 version u16; 6 stream u16; 8 streams u16; 10 apart u8; 11 zero [5]; 16 prefill incarnation [16];
//	                          32 decode incarnation [16]; 48 epoch u64; 56 zero [8]; 64 nonce [32]
//	listener 64 bytes: its nonce [32], mac("prefill")
//	dialer   32 bytes: mac("decode")
//	listener 1 byte: 1, when the stream is attached
//
// apart is 1 for a stream that carries no writes itself, for another fabric (ExpectStream), so that the two are never mistaken.
// mac(role) is HMAC-SHA256 with the link's key over "kvfence-tcp-1 ", role, a zero byte, the hello, the listener's nonce, and 32 bytes of
// TLS exporter ("EXPORTER-kvfence-tcp-1"), zero without TLS. So a mac proves the key for this link, epoch, stream, role,
// pair of nonces and TLS session; neither side's answer can be used as the other's. A listener that does not expect the link, or a wrong
// mac, closes without a word. Plain streams are authenticated at their start only: on a network that may alter
// them, use TLS.
const (
	helloBytes = 96
	nonceBytes = 32
	macBytes   = sha256.Size
	helloMagic = 0x4846564b // "KVFH"
)

// hello is what a dialer says of a stream.
type hello struct {
	stream, streams int
	apart           bool
	prefill, decode spec.Incarnation
	epoch           spec.Epoch
	nonce           [nonceBytes]byte
}

func (h hello) put(b []byte) {
	clear(b[:helloBytes])
	binary.LittleEndian.PutUint32(b[0:], helloMagic)
	binary.LittleEndian.PutUint16(b[4:], spec.Version)
	binary.LittleEndian.PutUint16(b[6:], uint16(h.stream))
	binary.LittleEndian.PutUint16(b[8:], uint16(h.streams))
	if h.apart {
		b[10] = 1
	}
	copy(b[16:], h.prefill[:])
	copy(b[32:], h.decode[:])
	binary.LittleEndian.PutUint64(b[48:], uint64(h.epoch))
	copy(b[64:], h.nonce[:])
}

// parseHello reads a hello; one that put would not write is refused.
func parseHello(b []byte) (hello, error) {
	h := hello{
		stream: int(binary.LittleEndian.Uint16(b[6:])), streams: int(binary.LittleEndian.Uint16(b[8:])), apart: b[10] == 1,
		prefill: spec.Incarnation(b[16:32]), decode: spec.Incarnation(b[32:48]),
		epoch: spec.Epoch(binary.LittleEndian.Uint64(b[48:])), nonce: [nonceBytes]byte(b[64:96]),
	}
	var again [helloBytes]byte
	h.put(again[:])
	if !bytes.Equal(again[:], b[:helloBytes]) || h.streams == 0 || h.streams > MaxStreams || h.stream >= h.streams {
		return hello{}, fmt.Errorf("%w: no hello of this version", transport.ErrAuth)
	}
	return h, nil
}

func mac(key [32]byte, role string, hello, nonce, binding []byte) []byte {
	m := hmac.New(sha256.New, key[:])
	for _, b := range [][]byte{[]byte("kvfence-tcp-1 "), []byte(role), {0}, hello, nonce, binding} {
		m.Write(b)
	}
	return m.Sum(nil)
}

// secure puts TLS over c if wanted and returns what to speak over, and the 32 bytes that bind a mac to the session.
func secure(ctx context.Context, c *net.TCPConn, cfg *tls.Config, server bool) (net.Conn, []byte, error) {
	if cfg == nil {
		return c, make([]byte, 32), nil
	}
	t := tls.Client(c, cfg)
	if server {
		t = tls.Server(c, cfg)
	}
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", transport.ErrAuth, err)
	}
	s := t.ConnectionState()
	if s.Version < tls.VersionTLS13 {
		return nil, nil, fmt.Errorf("%w: TLS below 1.3", transport.ErrAuth)
	}
	b, err := s.ExportKeyingMaterial("EXPORTER-kvfence-tcp-1", nil, 32)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", transport.ErrAuth, err)
	}
	return t, b, nil
}

// newWire is the stream's wire once nothing is left of the handshake.
func newWire(conn net.Conn, c *net.TCPConn, spin int) (wire, error) {
	if t, ok := conn.(*tls.Conn); ok {
		return &tlsWire{t: t, c: c}, nil
	}
	return newRawWire(c, spin)
}

// prove is the dialer's half. It returns when the listener has attached the stream.
func prove(conn net.Conn, key [32]byte, h hello, binding []byte) error {
	if _, err := rand.Read(h.nonce[:]); err != nil {
		return err
	}
	var hb [helloBytes]byte
	h.put(hb[:])
	if _, err := conn.Write(hb[:]); err != nil {
		return err
	}
	var answer [nonceBytes + macBytes]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return fmt.Errorf("%w: the listener does not expect this link: %w", transport.ErrAuth, err)
	}
	nonce := answer[:nonceBytes]
	if !hmac.Equal(answer[nonceBytes:], mac(key, "prefill", hb[:], nonce, binding)) {
		return fmt.Errorf("%w: the listener does not hold the key", transport.ErrAuth)
	}
	if _, err := conn.Write(mac(key, "decode", hb[:], nonce, binding)); err != nil {
		return err
	}
	var ready [1]byte
	if _, err := io.ReadFull(conn, ready[:]); err != nil {
		return fmt.Errorf("%w: the listener did not attach the stream (is its transport.kind another?): %w", transport.ErrAuth, err)
	}
	if ready[0] != 1 {
		return fmt.Errorf("%w: the listener answered %d", transport.ErrAuth, ready[0])
	}
	return nil
}

// challenge is the listener's half up to the proof. keyOf finds the key of an expected link.
func challenge(conn net.Conn, binding []byte, keyOf func(hello) ([32]byte, bool)) (hello, error) {
	var hb [helloBytes]byte
	if _, err := io.ReadFull(conn, hb[:]); err != nil {
		return hello{}, err
	}
	h, err := parseHello(hb[:])
	if err != nil {
		return hello{}, err
	}
	key, ok := keyOf(h)
	if !ok {
		return hello{}, fmt.Errorf("%w: nobody expects a link of %s to %s in epoch %d", transport.ErrAuth, h.prefill, h.decode, h.epoch)
	}
	var nonce [nonceBytes]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return hello{}, err
	}
	if _, err := conn.Write(append(nonce[:], mac(key, "prefill", hb[:], nonce[:], binding)...)); err != nil {
		return hello{}, err
	}
	var answer [macBytes]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return hello{}, err
	}
	if !hmac.Equal(answer[:], mac(key, "decode", hb[:], nonce[:], binding)) {
		return hello{}, fmt.Errorf("%w: the dialer does not hold the key", transport.ErrAuth)
	}
	return h, nil
}
