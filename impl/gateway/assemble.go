package gateway

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"kvfence/impl/node/api"
)

// piece is the text of one choice that may go out, and the tokens that are now
// wholly in it.
type piece struct {
	text   string
	tokens []placed
}

// placed is a token with the offset, in characters of the answer, where it begins.
type placed struct {
	api.Token
	offset int
}

// assembler turns one choice's tokens into text. It keeps back what may turn out to
// be a stop sequence, and bytes of a character that is not complete; bytes that cannot
// be UTF-8 become U+FFFD, one each. Not safe for concurrent use.
type assembler struct {
	tok     Tokenizer
	stops   [][]byte
	stopped bool

	held    []byte // may begin a stop sequence
	partial []byte // begins a character

	waiting []queued // tokens not yet wholly in the text
	in      int      // bytes that came in
	out     int      // bytes that are in the text
	runes   int      // characters in the text
}

type queued struct {
	token      api.Token
	start, end int // of its bytes
}

func newAssembler(tok Tokenizer, stops []string) *assembler {
	a := &assembler{tok: tok}
	for _, s := range stops {
		a.stops = append(a.stops, []byte(s))
	}
	return a
}

// push takes the next token. After a stop sequence everything is dropped.
func (a *assembler) push(t api.Token) piece {
	if a.stopped {
		return piece{}
	}
	b := a.tok.Bytes(t.ID)
	a.waiting = append(a.waiting, queued{t, a.in, a.in + len(b)})
	a.in += len(b)
	a.held = append(a.held, b...)
	if at := firstStop(a.held, a.stops); at >= 0 {
		a.stopped = true
		cut := a.held[:at]
		a.held = nil
		return a.emit(cut, true)
	}
	free := len(a.held) - heldBack(a.held, a.stops)
	p := a.emit(a.held[:free], false)
	a.held = a.held[free:]
	return p
}

// finish gives out what was kept back: no stop sequence and no character came of it.
func (a *assembler) finish() piece {
	if a.stopped {
		return piece{}
	}
	p := a.emit(a.held, true)
	a.held = nil
	return p
}

// firstStop is the index of the earliest stop sequence in b, or -1.
func firstStop(b []byte, stops [][]byte) int {
	first := -1
	for _, s := range stops {
		if at := bytes.Index(b, s); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

// heldBack is the length of the longest end of b that begins a stop sequence.
func heldBack(b []byte, stops [][]byte) int {
	longest := 0
	for _, s := range stops {
		for n := min(len(s)-1, len(b)); n > longest; n-- {
			if bytes.HasPrefix(s, b[len(b)-n:]) {
				longest = n
				break
			}
		}
	}
	return longest
}

// emit turns bytes into characters; last says that no more will complete them.
func (a *assembler) emit(b []byte, last bool) piece {
	data := append(a.partial, b...)
	var text strings.Builder
	base, done := a.out, 0
	var starts []int // of each character in data
	for done < len(data) {
		if !last && !utf8.FullRune(data[done:]) {
			break
		}
		r, size := utf8.DecodeRune(data[done:])
		starts = append(starts, done)
		text.WriteRune(r)
		done += size
	}
	a.partial = append([]byte(nil), data[done:]...)
	a.out = base + done
	p := piece{text: text.String(), tokens: a.release(base, starts)}
	a.runes += len(starts)
	return p
}

// release takes the tokens whose bytes are all in the text now. base is where the
// characters at starts begin.
func (a *assembler) release(base int, starts []int) []placed {
	var out []placed
	char := 0
	for len(a.waiting) > 0 && a.waiting[0].end <= a.out {
		q := a.waiting[0]
		a.waiting = a.waiting[1:]
		for char < len(starts) && base+starts[char] <= q.start {
			char++
		}
		// The character that q begins in; a token without bytes stands before the next.
		offset := a.runes + char
		if char > 0 && (q.end > q.start || base+starts[char-1] == q.start) {
			offset--
		}
		out = append(out, placed{q.token, offset})
	}
	return out
}
