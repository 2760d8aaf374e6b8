package spec

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// text is a string: length u16, then that many bytes, limit at most. Bytes are not interpreted.
func text[T ~string](c *cursor, name string, v *T, limit int) {
	n := uint16(min(len(*v), math.MaxUint16))
	u16(c, name+".len", &n, 0, uint16(limit))
	c.note(name, 0, "bytes")
	switch c.mode {
	case parsing:
		*v = T(c.take(name, int(n)))
	case appending:
		c.buf = append(c.buf, *v...)
	}
}

// clipped is a text for people: too long a one is cut when it is sent, at the border of a character, never refused there.
func (c *cursor) clipped(name string, v *string) {
	if c.mode == appending && len(*v) > MaxText {
		n := MaxText
		for n > MaxText-utf8.UTFMax && !utf8.RuneStart((*v)[n]) {
			n--
		}
		*v = (*v)[:n]
	}
	text(c, name, v, MaxText)
}

// word is a text of a closed set.
func word[T ~string](c *cursor, name string, v *T, known func(T) bool) {
	text(c, name, v, MaxName)
	switch {
	case c.mode == describing:
		c.noteCheck(name, "not a known word")
	case c.err == nil && !known(*v):
		c.fail(ErrRange, name, fmt.Sprintf("not a known word: %q", string(*v)))
	}
}

// count is the length of a list: u32, limit at most, and no more than the rest of the body can hold at each bytes an element.
func (c *cursor) count(name string, n, limit, each int) int {
	v := uint32(min(n, math.MaxUint32))
	u32(c, name+".count", &v, 0, uint32(limit))
	if c.mode == parsing && c.err == nil && uint64(v)*uint64(each) > uint64(len(c.buf)-c.at) {
		c.fail(ErrTruncated, name, fmt.Sprintf("%d elements of %d bytes or more, %d bytes left", v, each, len(c.buf)-c.at))
	}
	if c.err != nil || c.mode == describing {
		return 0
	}
	return int(v)
}

// list is a count and that many elements of each bytes or more. An empty list is parsed as nil.
func list[T any](c *cursor, name string, v *[]T, limit, each int, elem func(*cursor, *T)) {
	n := c.count(name, len(*v), limit, each)
	if c.mode == describing {
		var zero T
		c.note(name, 0, "the elements below")
		c.path = append(c.path, step{name + "[]", 0})
		elem(c, &zero)
		c.path = c.path[:len(c.path)-1]
		c.at = 0
		return
	}
	if c.mode == parsing && n > 0 {
		*v = make([]T, n)
	}
	c.path = append(c.path, step{name, 0})
	for i := 0; i < n && c.err == nil; i++ {
		c.path[len(c.path)-1].index = i
		elem(c, &(*v)[i])
	}
	c.path = c.path[:len(c.path)-1]
}

// group is a structure within a message.
func group[T any](c *cursor, name string, v *T, fields func(*cursor, *T)) {
	c.path = append(c.path, step{name, -1})
	fields(c, v)
	c.path = c.path[:len(c.path)-1]
}

// run is a list whose elements are all alike and many: width bytes each, moved in one loop.
func run[T any](c *cursor, name string, v *[]T, limit, width int, what string, get func([]byte) T, put func([]byte, T) []byte) {
	n := c.count(name, len(*v), limit, width)
	c.note(name, 0, what)
	if c.err != nil || n == 0 {
		return
	}
	switch c.mode {
	case parsing:
		b := c.take(name, n*width)
		out := make([]T, n)
		for i := range out {
			out[i] = get(b[i*width : i*width+width])
		}
		*v = out
	case appending:
		for _, e := range *v {
			c.buf = put(c.buf, e)
		}
	}
}

// tokens is a list of token ids, 4 bytes each. Their range is the vocabulary's, and admission's to check.
func (c *cursor) tokens(name string, v *[]int32) {
	run(c, name, v, MaxPrompt, 4, "signed 32-bit numbers",
		func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) },
		func(b []byte, t int32) []byte { return binary.LittleEndian.AppendUint32(b, uint32(t)) })
}

// digests is a list of byte digests, 8 bytes each.
func (c *cursor) digests(name string, v *[]uint64) {
	run(c, name, v, MaxLeasePages, 8, "u64 each", binary.LittleEndian.Uint64, binary.LittleEndian.AppendUint64)
}

// pages is a list of pages with generations: page u32, generation u64.
func pages[T GrantedPage | SourcePage](c *cursor, name string, v *[]T) {
	run(c, name, v, MaxLeasePages, 12, "page u32 and generation u64 each",
		func(b []byte) T {
			return T(GrantedPage{Page: PageID(binary.LittleEndian.Uint32(b)), Gen: Generation(binary.LittleEndian.Uint64(b[4:]))})
		},
		func(b []byte, e T) []byte {
			p := GrantedPage(e)
			b = binary.LittleEndian.AppendUint32(b, uint32(p.Page))
			return binary.LittleEndian.AppendUint64(b, uint64(p.Gen))
		})
}
