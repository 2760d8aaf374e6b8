package spec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// HeaderBytes is the size of the fixed header: magic [4], version u16, kind u16, body length u32, from [16], to [16],
// epoch u64, mark u64, checksum u32. The checksum is CRC-32C over the first 60 bytes and the body.
const HeaderBytes = 64

const (
	magic      = "KVF1"
	checksumAt = HeaderBytes - 4
)

// The reasons for which bytes are not a message. Each parse or append that fails wraps exactly one of them.
var (
	ErrTruncated   = errors.New("message is cut short")
	ErrTrailing    = errors.New("bytes behind the message's end")
	ErrMagic       = errors.New("not a kvfence message")
	ErrVersion     = errors.New("another protocol version")
	ErrOversize    = errors.New("message is too large")
	ErrChecksum    = errors.New("message checksum differs")
	ErrUnknownKind = errors.New("unknown message kind")
	ErrRange       = errors.New("field is out of range")
)

// FieldError names the field that broke its rule; it wraps ErrRange or ErrTruncated.
type FieldError struct {
	Kind     Kind
	Field    string
	Why      string
	sentinel error
}

// Error is "<sentinel>: <kind>.<field>: <why>".
func (e *FieldError) Error() string {
	return fmt.Sprintf("%v: %s.%s: %s", e.sentinel, e.Kind, e.Field, e.Why)
}

// Unwrap is the sentinel.
func (e *FieldError) Unwrap() error { return e.sentinel }

// KindError carries the kind that this version does not know, so that the receiver can answer Refused; it wraps ErrUnknownKind.
type KindError struct{ Kind Kind }

// Error names the number.
func (e *KindError) Error() string { return fmt.Sprintf("%v %d", ErrUnknownKind, uint16(e.Kind)) }

// Unwrap is ErrUnknownKind.
func (e *KindError) Unwrap() error { return ErrUnknownKind }

// VersionError carries the version that a peer speaks; it wraps ErrVersion.
type VersionError struct{ Theirs uint16 }

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%v: ours %d, theirs %d", ErrVersion, Version, e.Theirs)
}

// Unwrap is ErrVersion.
func (e *VersionError) Unwrap() error { return ErrVersion }

// checksum is the CRC-32C of both; crc32 makes its table once.
func checksum(header, body []byte) uint32 {
	t := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(header, t), t, body)
}

// AppendEnvelope appends e as it goes over the wire. What it accepts, ParseEnvelope returns equal (with nil for empty lists, and
// texts for people cut at MaxText). On error b comes back as it was, with one of the errors above.
func AppendEnvelope(b []byte, e Envelope) ([]byte, error) {
	return appendEnvelope(b, e, nil)
}

func appendEnvelope(b []byte, e Envelope, rows *[]wireRow) ([]byte, error) {
	if e.Body == nil {
		return b, fmt.Errorf("%w: no body", ErrUnknownKind)
	}
	kind := e.Body.Kind()
	codec, ok := codecOf(kind)
	if !ok {
		return b, &KindError{kind}
	}
	if err := checkHeader(e.Header, kind); err != nil {
		return b, err
	}
	start := len(b)
	out := append(b, magic...)
	out = binary.LittleEndian.AppendUint16(out, Version)
	out = binary.LittleEndian.AppendUint16(out, uint16(kind))
	out = binary.LittleEndian.AppendUint32(out, 0)
	out = append(out, e.From[:]...)
	out = append(out, e.To[:]...)
	out = binary.LittleEndian.AppendUint64(out, uint64(e.Epoch))
	out = binary.LittleEndian.AppendUint64(out, uint64(e.Mark))
	out = binary.LittleEndian.AppendUint32(out, 0)
	c := cursor{mode: appending, kind: kind, buf: out, base: start + HeaderBytes, rows: rows}
	if !codec.append(&c, e.Body) {
		return b, fmt.Errorf("%w: %T is not a message value", ErrUnknownKind, e.Body)
	}
	if c.err != nil {
		return b, c.err
	}
	n := len(c.buf) - start - HeaderBytes
	if n > MaxBody {
		return b, fmt.Errorf("%w: %s of %d bytes, %d at most", ErrOversize, kind, n, MaxBody)
	}
	header, body := c.buf[start:start+HeaderBytes], c.buf[start+HeaderBytes:]
	binary.LittleEndian.PutUint32(header[8:], uint32(n))
	binary.LittleEndian.PutUint32(header[checksumAt:], checksum(header[:checksumAt], body))
	return c.buf, nil
}

// ParseEnvelope reads the one message that b holds, all of it. The message owns its slices; b may be used again. Once the header
// is whole and its checksum holds, the header is returned also with an error of the kind or body, so that it can be answered.
func ParseEnvelope(b []byte) (Envelope, error) {
	p, err := parsePrefix(b, MaxBody)
	if err != nil {
		return Envelope{}, err
	}
	switch n := uint64(len(b) - HeaderBytes); {
	case n < uint64(p.body):
		return Envelope{}, fmt.Errorf("%w: %s of %d bytes, %d are there", ErrTruncated, p.kind, p.body, n)
	case n > uint64(p.body):
		return Envelope{}, fmt.Errorf("%w: %s of %d bytes, %d are there", ErrTrailing, p.kind, p.body, n)
	}
	header, body := b[:HeaderBytes], b[HeaderBytes:]
	if got, want := checksum(header[:checksumAt], body), binary.LittleEndian.Uint32(header[checksumAt:]); got != want {
		return Envelope{}, fmt.Errorf("%w: computed %08x, carried %08x", ErrChecksum, got, want)
	}
	e := Envelope{Header: Header{
		From: Incarnation(header[12:28]), To: Incarnation(header[28:44]),
		Epoch: Epoch(binary.LittleEndian.Uint64(header[44:])), Mark: LeaseID(binary.LittleEndian.Uint64(header[52:])),
	}}
	codec, ok := codecOf(p.kind)
	if !ok {
		return e, &KindError{p.kind}
	}
	if err := checkHeader(e.Header, p.kind); err != nil {
		return e, err
	}
	c := cursor{mode: parsing, kind: p.kind, buf: body}
	m := codec.parse(&c)
	if c.err == nil && c.at != len(body) {
		c.err = fmt.Errorf("%w: %s has %d bytes behind its last field", ErrTrailing, p.kind, len(body)-c.at)
	}
	if c.err != nil {
		return e, c.err
	}
	e.Body = m
	return e, nil
}

func checkHeader(h Header, k Kind) error {
	if h.From.IsZero() {
		return &FieldError{k, "from", "no incarnation", ErrRange}
	}
	if h.To.IsZero() && k != KindConnect {
		return &FieldError{k, "to", "no incarnation; only a connect may leave it out", ErrRange}
	}
	return nil
}

// prefix is what the first bytes of a header say about the message's size.
type prefix struct {
	kind Kind
	body uint32
}

// parsePrefix checks magic, version and length; the rest of b is not looked at.
func parsePrefix(b []byte, maxBody uint32) (prefix, error) {
	if len(b) < HeaderBytes {
		return prefix{}, fmt.Errorf("%w: %d bytes of a header of %d", ErrTruncated, len(b), HeaderBytes)
	}
	if string(b[:4]) != magic {
		return prefix{}, fmt.Errorf("%w: it begins with %x", ErrMagic, b[:4])
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v != Version {
		return prefix{}, &VersionError{v}
	}
	p := prefix{Kind(binary.LittleEndian.Uint16(b[6:])), binary.LittleEndian.Uint32(b[8:])}
	if p.body > maxBody {
		return prefix{}, fmt.Errorf("%w: %s of %d bytes, %d at most", ErrOversize, p.kind, p.body, maxBody)
	}
	return p, nil
}
