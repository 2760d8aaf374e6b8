package spec

import (
	"encoding/binary"
	"fmt"
	"strconv"
)

// A cursor walks one body. Each message has one walk function, used to parse, to append and to describe it, so that the three
// cannot differ: the same call names the field, its width and its range. The first failure stops all that follows.
type cursor struct {
	mode mode
	kind Kind
	buf  []byte // parsing: the body; appending: the caller's slice, which grows
	at   int    // parsing: the next byte
	base int    // appending: where the body starts in buf
	err  error
	path []step     // the lists that the walk is inside of, for errors
	rows *[]wireRow // describing, or a vector's annotation; nil otherwise
}

type mode uint8

const (
	parsing mode = iota
	appending
	describing
)

// step is one list on the path to a field.
type step struct {
	name  string
	index int
}

// wireRow is one field of a message as it lies on the wire.
type wireRow struct {
	at     int // offset within the body; describing: after the last field of variable length
	bytes  int // 0: variable; -1: no field of its own, a check between others
	field  string
	limits string
	checks []string // what is refused beside the range
}

// fail records the first error, with the field's path.
func (c *cursor) fail(sentinel error, name, why string) {
	if c.err == nil {
		c.err = &FieldError{Kind: c.kind, Field: c.fieldPath(name), Why: why, sentinel: sentinel}
	}
}

func (c *cursor) fieldPath(name string) string {
	p := ""
	for _, s := range c.path {
		if s.index < 0 {
			p += s.name + "."
		} else {
			p += s.name + "[" + strconv.Itoa(s.index) + "]."
		}
	}
	return p + name
}

// require is a condition beside the range of a field. It is not asked when an earlier field has failed.
func (c *cursor) require(name string, ok bool, why string) {
	if c.mode == describing {
		c.noteCheck(name, why)
		return
	}
	if c.err == nil && !ok {
		c.fail(ErrRange, name, why)
	}
}

// noteCheck adds a check to the description of its field, the last one of that name.
func (c *cursor) noteCheck(name, why string) {
	name = c.describedPath(name)
	for i := len(*c.rows) - 1; i >= 0; i-- {
		if r := &(*c.rows)[i]; r.field == name {
			r.checks = append(r.checks, why)
			return
		}
	}
	*c.rows = append(*c.rows, wireRow{field: name, bytes: -1, checks: []string{why}})
}

func (c *cursor) describedPath(name string) string {
	p := ""
	for _, s := range c.path {
		p += s.name + "."
	}
	return p + name
}

// within is the range check of one number.
func within[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *cursor, name string, v, lo, hi T) {
	if c.mode != describing && c.err == nil && (v < lo || v > hi) {
		c.fail(ErrRange, name, fmt.Sprintf("%d is not in %d..%d", uint64(v), uint64(lo), uint64(hi)))
	}
}

// take is the next n bytes of the body, or nil and ErrTruncated.
func (c *cursor) take(name string, n int) []byte {
	if c.err != nil {
		return nil
	}
	if n < 0 || n > len(c.buf)-c.at {
		c.fail(ErrTruncated, name, fmt.Sprintf("%d bytes needed, %d left", n, len(c.buf)-c.at))
		return nil
	}
	b := c.buf[c.at : c.at+n : c.at+n]
	c.at += n
	return b
}

// note records a field for a description or a vector's annotation.
func (c *cursor) note(name string, bytes int, limits string) {
	if c.rows == nil {
		return
	}
	at := c.at
	switch c.mode {
	case describing:
		c.at += bytes
		if bytes == 0 {
			c.at = 0
		}
		name = c.describedPath(name)
	case appending:
		at, name = len(c.buf)-c.base, c.fieldPath(name)
	}
	*c.rows = append(*c.rows, wireRow{at: at, bytes: bytes, field: name, limits: limits})
}

func limits[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *cursor, lo, hi T) string {
	if c.rows == nil {
		return ""
	}
	switch top := hi == ^T(0); {
	case top && lo == 0:
		return "any"
	case top:
		return "at least " + strconv.FormatUint(uint64(lo), 10)
	}
	return strconv.FormatUint(uint64(lo), 10) + ".." + strconv.FormatUint(uint64(hi), 10)
}

func u8[T ~uint8](c *cursor, name string, v *T, lo, hi T) {
	c.note(name, 1, limits(c, lo, hi))
	switch c.mode {
	case parsing:
		if b := c.take(name, 1); b != nil {
			*v = T(b[0])
		}
	case appending:
		c.buf = append(c.buf, byte(*v))
	}
	within(c, name, *v, lo, hi)
}

func u16[T ~uint16](c *cursor, name string, v *T, lo, hi T) {
	c.note(name, 2, limits(c, lo, hi))
	switch c.mode {
	case parsing:
		if b := c.take(name, 2); b != nil {
			*v = T(binary.LittleEndian.Uint16(b))
		}
	case appending:
		c.buf = binary.LittleEndian.AppendUint16(c.buf, uint16(*v))
	}
	within(c, name, *v, lo, hi)
}

func u32[T ~uint32](c *cursor, name string, v *T, lo, hi T) {
	c.note(name, 4, limits(c, lo, hi))
	switch c.mode {
	case parsing:
		if b := c.take(name, 4); b != nil {
			*v = T(binary.LittleEndian.Uint32(b))
		}
	case appending:
		c.buf = binary.LittleEndian.AppendUint32(c.buf, uint32(*v))
	}
	within(c, name, *v, lo, hi)
}

func u64[T ~uint64](c *cursor, name string, v *T, lo, hi T) {
	c.note(name, 8, limits(c, lo, hi))
	switch c.mode {
	case parsing:
		if b := c.take(name, 8); b != nil {
			*v = T(binary.LittleEndian.Uint64(b))
		}
	case appending:
		c.buf = binary.LittleEndian.AppendUint64(c.buf, uint64(*v))
	}
	within(c, name, *v, lo, hi)
}

// flag is a boolean: one byte, 0 or 1.
func (c *cursor) flag(name string, v *bool) {
	var b uint8
	if *v {
		b = 1
	}
	u8(c, name, &b, 0, 1)
	if c.mode == parsing { // a message that is sent may be shared: several links say the same layouts
		*v = b == 1
	}
}

// raw is a field of fixed length, copied as it stands.
func (c *cursor) raw(name string, v []byte) {
	c.note(name, len(v), "any")
	switch c.mode {
	case parsing:
		copy(v, c.take(name, len(v)))
	case appending:
		c.buf = append(c.buf, v...)
	}
}
