package verbs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"kvfence/spec"
)

// Frames of the stream: 0 bytes behind the head u32; 4 kind u8; 5 zero [3]. Integers are little-endian.
const (
	frameHead  = 8
	frameOpen  = 1 // an opening; decode, then prefill
	frameReady = 2 // decode: its queue pairs are connected
	frameKeys  = 3 // decode: keys of a lease's windows
	frameShut  = 4 // prefill: its queue pairs of this epoch are destroyed, nothing of them is sent any more
	frameGone  = 5 // decode: the rights of a lease are taken back; its number u64
)

// ErrFrame is wrapped when a stream carries what no frame is.
var ErrFrame = errors.New("bad frame on a verbs stream")

// maxKeyFrame bounds a frame of keys; longer lists are cut.
const (
	keyHead     = 16
	keyBytes    = 16
	keysInFrame = 4096
	maxFrame    = max(maxOpening, keyHead+keyBytes*keysInFrame)
)

func putFrame(w io.Writer, kind byte, body []byte) error {
	b := make([]byte, frameHead, frameHead+len(body))
	binary.LittleEndian.PutUint32(b, uint32(len(body)))
	b[4] = kind
	_, err := w.Write(append(b, body...))
	return err
}

func getFrame(r io.Reader) (kind byte, body []byte, err error) {
	var h [frameHead]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(h[:])
	if n > maxFrame || h[5]|h[6]|h[7] != 0 || h[4] < frameOpen || h[4] > frameGone || (h[4] == frameOpen && n > maxOpening) || ((h[4] == frameReady || h[4] == frameShut) && n != 0) || (h[4] == frameGone && n != 8) {
		return 0, nil, fmt.Errorf("%w: kind %d of %d bytes", ErrFrame, h[4], n)
	}
	body = make([]byte, n)
	_, err = io.ReadFull(r, body)
	return h[4], body, err
}

// windowKey is the key of one window of a lease: Count neighbouring pages from First, or their tag slots, on one rail.
type windowKey struct {
	Component    spec.Component
	Tags         bool
	Rail         uint8
	First, Count uint32
	Key          uint32
}

// leaseKeys is one frame of a lease's keys; the lease's writes may begin behind the last.
//
//	0 lease u64; 8 last u8; 9 zero [3]; 12 entries u32; then each: 0 component u8; 1 tags u8; 2 rail u8; 3 zero; 4 first u32; 8 count u32; 12 key u32
type leaseKeys struct {
	Lease spec.LeaseID
	Last  bool
	Keys  []windowKey
}

func (k leaseKeys) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, uint64(k.Lease))
	b = le.AppendUint32(b, uint32(bit(k.Last)))
	b = le.AppendUint32(b, uint32(len(k.Keys)))
	for _, w := range k.Keys {
		b = append(b, byte(w.Component), bit(w.Tags), w.Rail, 0)
		b = le.AppendUint32(b, w.First)
		b = le.AppendUint32(b, w.Count)
		b = le.AppendUint32(b, w.Key)
	}
	return b
}

func bit(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// parseKeys reads what append writes and nothing else. Pages are compared with the peer's pools where they are used.
func parseKeys(b []byte) (k leaseKeys, err error) {
	bad := func(what string) (leaseKeys, error) { return leaseKeys{}, fmt.Errorf("%w: keys: %s", ErrFrame, what) }
	if len(b) < keyHead {
		return bad("cut short")
	}
	le := binary.LittleEndian
	n := le.Uint32(b[12:])
	if last := le.Uint32(b[8:]); last > 1 || n > keysInFrame || len(b) != keyHead+keyBytes*int(n) {
		return bad("head")
	}
	k = leaseKeys{Lease: spec.LeaseID(le.Uint64(b)), Last: b[8] == 1, Keys: make([]windowKey, n)}
	if k.Lease == 0 {
		return bad("lease 0")
	}
	for i := range k.Keys {
		e := b[keyHead+keyBytes*i:]
		w := windowKey{spec.Component(e[0]), e[1] == 1, e[2], le.Uint32(e[4:]), le.Uint32(e[8:]), le.Uint32(e[12:])}
		if w.Component >= spec.ComponentCount || e[1] > 1 || w.Rail >= MaxRails || e[3] != 0 || w.Count == 0 || w.First+w.Count < w.First {
			return bad("entry")
		}
		k.Keys[i] = w
	}
	return k, nil
}
