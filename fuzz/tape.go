package fuzz

import "encoding/binary"

// Tape turns fuzzed bytes into decisions. Behind its end every decision is the first one, so that a shorter input is a simpler run.
type Tape struct {
	b    []byte
	read int
}

// NewTape reads decisions from b, which is not copied.
func NewTape(b []byte) *Tape { return &Tape{b: b} }

// Over reports whether the tape has been read to its end.
func (t *Tape) Over() bool { return t.read >= len(t.b) }

// Byte is the next byte, 0 behind the end.
func (t *Tape) Byte() byte {
	if t.Over() {
		return 0
	}
	t.read++
	return t.b[t.read-1]
}

// N is a decision among n, at least 1 and at most 256: 0 to n-1.
func (t *Tape) N(n int) int { return int(t.Byte()) % n }

// One reports one choice of n.
func (t *Tape) One(n int) bool { return t.N(n) == n-1 }

// Uint64 is eight bytes.
func (t *Tape) Uint64() uint64 {
	var b [8]byte
	for i := range b {
		b[i] = t.Byte()
	}
	return binary.LittleEndian.Uint64(b[:])
}

// Bytes are the next n bytes, fewer at the end.
func (t *Tape) Bytes(n int) []byte {
	n = min(n, len(t.b)-t.read)
	t.read += n
	return t.b[t.read-n : t.read]
}
