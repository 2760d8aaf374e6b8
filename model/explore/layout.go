package explore

import (
	"fmt"
	"math/bits"
	"reflect"
	"unsafe"
)

// A state is a fixed number of words in memory, most bits of which never change in one setting. The layout gives each bit that was
// ever seen to differ from the first initial state a place in a key of few words. Places are handed out in the order of discovery
// and never taken back, so that an older key is a newer one with zeros behind: no state is ever encoded again, and the order of
// keys stays. Packing is linear over exclusive or: a successor's key is its parent's, changed by what the changed words pack to.

// aligned is a state on a word's boundary; what lies behind it up to the next word is masked out by layout.solid.
type aligned[S comparable] struct {
	_ [0]uint64
	s S
}

func (a *aligned[S]) words() []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(a)), int(unsafe.Sizeof(*a)/8))
}

// run moves bits of one word of the state to one word of the key.
type run struct {
	mask uint64 // in the state's word
	turn int    // rotation to the left that brings them into place
	dst  int    // word of the key
}

type layout struct {
	solid []uint64 // bits of the state that hold values, without padding
	base  []uint64 // the first initial state
	live  []uint64 // bits that have a place
	runs  [][]run  // by word of the state
	bits  int      // places given
}

// newLayout is the layout of a type, without any place yet.
func newLayout[S comparable]() (*layout, error) {
	var a aligned[S]
	n := len(a.words())
	l := &layout{solid: make([]uint64, n), base: make([]uint64, n), live: make([]uint64, n), runs: make([][]run, n)}
	solid := make([]byte, n*8)
	if err := markSolid(reflect.TypeFor[S](), unsafe.Offsetof(a.s), solid); err != nil {
		return nil, err
	}
	for i := range solid {
		b := (*[8]byte)(unsafe.Pointer(&l.solid[i/8])) // the order of bytes is the machine's, as it is in states
		b[i%8] = solid[i]
	}
	return l, nil
}

// markSolid marks the bytes at which values of a type lie, and refuses types whose value is not in those bytes alone.
func markSolid(t reflect.Type, at uintptr, solid []byte) error {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		for i := range t.Size() {
			solid[at+i] = 0xff
		}
	case reflect.Array:
		for i := range t.Len() {
			if err := markSolid(t.Elem(), at+uintptr(i)*t.Elem().Size(), solid); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if err := markSolid(f.Type, at+f.Offset, solid); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("%w: it has a %s", ErrState, t.Kind())
	}
	return nil
}

// stride is the number of words of a key.
func (l *layout) stride() int { return max((l.bits+63)/64, 1) }

// missing adds to lacks the bits in which words differ from the base and that have no place; it reports whether there are any.
func (l *layout) missing(words, lacks []uint64) bool {
	some := false
	for i, w := range words {
		if x := (w ^ l.base[i]) & l.solid[i] &^ l.live[i]; x != 0 {
			lacks[i] |= x
			some = true
		}
	}
	return some
}

// extend gives places to the bits.
func (l *layout) extend(lacks []uint64) {
	for i, w := range lacks {
		w &^= l.live[i]
		for w != 0 {
			from := bits.TrailingZeros64(w)
			n := bits.TrailingZeros64(^(w >> from)) // neighbours move together
			n = min(n, 64-l.bits%64)
			mask := (^uint64(0) >> (64 - n)) << from
			l.runs[i] = append(l.runs[i], run{mask, (l.bits%64 - from + 64) % 64, l.bits / 64})
			l.live[i] |= mask
			l.bits += n
			w &^= mask
		}
	}
}

// change packs a change of word i of a state into a key.
func (l *layout) change(key []uint64, i int, diff uint64) {
	for _, r := range l.runs[i] {
		key[r.dst] ^= bits.RotateLeft64(diff&r.mask, r.turn)
	}
}

// pack appends the key of a state all of whose bits have places.
func (l *layout) pack(words, key []uint64) {
	clear(key)
	for i, w := range words {
		if d := (w ^ l.base[i]) & l.solid[i]; d != 0 {
			l.change(key, i, d)
		}
	}
}

// unpack writes the state of a key, which may be an older and shorter one.
func (l *layout) unpack(key, words []uint64) {
	for i, rs := range l.runs {
		w := l.base[i]
		for _, r := range rs {
			if r.dst < len(key) {
				w ^= bits.RotateLeft64(key[r.dst], -r.turn) & r.mask
			}
		}
		words[i] = w
	}
}

// hash is the same for a key and for the same key with zeros behind.
func hash(key []uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	c := uint64(0xd6e8feb86659fd93)
	for _, k := range key {
		hi, lo := bits.Mul64(k, c)
		h += hi ^ lo
		c = (c*0xbf58476d1ce4e5b9 + 0x94d049bb133111eb) | 1
	}
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 29
	h *= 0x94d049bb133111eb
	return h ^ h>>32
}
