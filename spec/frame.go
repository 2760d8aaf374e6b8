package spec

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// firstRead is how much of a body is read before more is reserved.
const firstRead = 64 << 10

// ReadEnvelope reads one message from a stream. scratch is memory to read into and may be nil; the memory to hand in next time
// comes back, also with an error. It grows to at most twice what has arrived, whatever length the peer names. The end of the
// stream between two messages is io.EOF; within one it is ErrTruncated. After any other error of this package the stream stands
// behind the message if its length could be trusted (ErrUnknownKind, ErrRange, ErrTruncated of a field, ErrTrailing of a field)
// and is of no more use otherwise. Not safe for concurrent use of one stream.
func ReadEnvelope(r io.Reader, scratch []byte) (Envelope, []byte, error) {
	return ReadEnvelopeLimit(r, scratch, MaxBody)
}

// ReadEnvelopeLimit is ReadEnvelope for bodies of at most maxBody bytes, such as MaxHandshakeBody from a peer not known yet.
func ReadEnvelopeLimit(r io.Reader, scratch []byte, maxBody uint32) (Envelope, []byte, error) {
	b := slices.Grow(scratch[:0], HeaderBytes)[:HeaderBytes]
	if n, err := io.ReadFull(r, b); err != nil {
		if n > 0 && errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("%w: %d bytes of a header of %d", ErrTruncated, n, HeaderBytes)
		}
		return Envelope{}, b, err
	}
	p, err := parsePrefix(b, maxBody)
	if err != nil {
		return Envelope{}, b, err
	}
	for want := HeaderBytes + int(p.body); len(b) < want; {
		have := len(b)
		b = slices.Grow(b, min(max(have, firstRead), want-have))
		b = b[:min(cap(b), want)]
		if n, err := io.ReadFull(r, b[have:]); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = fmt.Errorf("%w: %s of %d bytes, %d came", ErrTruncated, p.kind, p.body, have+n-HeaderBytes)
			}
			return Envelope{}, b, err
		}
	}
	e, err := ParseEnvelope(b)
	return e, b, err
}
