package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"kvfence/spec"
)

// Errors of reading.
var (
	// ErrLine is wrapped by what is said of a line that is no line of a trace; the text names its number.
	ErrLine = errors.New("not a line of a trace")
	// ErrTorn is wrapped when the last line has no end: the process was ended while it wrote, or still writes.
	ErrTorn = errors.New("the last line is torn")
)

// maxLine bounds a line.
const maxLine = 64 << 20

// Reader reads a trace line by line. Not safe for concurrent use.
type Reader struct {
	r      *bufio.Reader
	number int
	part   []byte // of a line that has not ended
}

// NewReader reads r.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 1<<20)} }

// Number is the number of the last line that was read, from 1.
func (t *Reader) Number() int { return t.number }

// Next reads one line into l, which must be empty. io.EOF after the last whole line: more may come later, and Next may be called again.
// Torn then says whether a line has begun. Any other error wraps ErrLine.
func (t *Reader) Next(l *spec.TraceLine) error {
	for {
		b, err := t.r.ReadSlice('\n')
		if len(t.part) > 0 || err != nil {
			t.part = append(t.part, b...)
			b = t.part
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if len(t.part) > maxLine {
				return fmt.Errorf("%w: line %d has more than %d bytes", ErrLine, t.number+1, maxLine)
			}
			continue
		case err != nil:
			return err
		}
		t.number++
		err = parse(b, l)
		t.part = t.part[:0]
		if err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrLine, t.number, err)
		}
		return nil
	}
}

// Torn is ErrTorn with the line's number if a line has begun and not ended.
func (t *Reader) Torn() error {
	if len(t.part) == 0 {
		return nil
	}
	return fmt.Errorf("%w: line %d, %d bytes", ErrTorn, t.number+1, len(t.part))
}

// parse takes known fields only, and nothing behind the object.
func parse(b []byte, l *spec.TraceLine) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(l); err != nil {
		return err
	}
	if rest := bytes.TrimSpace(b[d.InputOffset():]); len(rest) > 0 {
		return fmt.Errorf("%d bytes behind the object", len(rest))
	}
	if l.Machine == "" || l.Event.Kind == "" || l.Node.IsZero() && l.Machine != spec.TraceWorld {
		return errors.New("no machine, node or event")
	}
	return nil
}
