package explain

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrValue says that a text is no value as TLC prints it.
var ErrValue = errors.New("no TLA+ value")

// kind is the shape of a value.
type kind int

const (
	atom     kind = iota // a number, a string, a truth value, a model value
	tuple                // << >>: a function from 1..n
	set                  // { }
	function             // ( :> @@ ) and records
)

// value is a value that TLC printed. Of a function, keys[i] goes to elems[i].
type value struct {
	kind  kind
	text  string // of an atom, without quotes
	elems []value
	keys  []value
}

// maxDepth bounds the nesting of values that are read.
const maxDepth = 100

// scanner reads one value from the front of s.
type scanner struct {
	s     string
	depth int
}

// parseValue reads one value that is the whole text.
func parseValue(text string) (value, error) {
	sc := scanner{s: text}
	v, err := sc.value()
	if sc.space(); err == nil && sc.s != "" {
		err = fmt.Errorf("%w: %.20q is left behind it", ErrValue, sc.s)
	}
	return v, err
}

func (sc *scanner) space() { sc.s = strings.TrimLeft(sc.s, " \t\r\n") }

// take steps over a token if it comes next.
func (sc *scanner) take(token string) bool {
	sc.space()
	rest, ok := strings.CutPrefix(sc.s, token)
	if ok {
		sc.s = rest
	}
	return ok
}

func (sc *scanner) value() (value, error) {
	sc.depth++
	defer func() { sc.depth-- }()
	if sc.depth > maxDepth {
		return value{}, fmt.Errorf("%w: nested too deep", ErrValue)
	}
	switch {
	case sc.take("<<"):
		elems, err := sc.list(">>")
		return value{kind: tuple, elems: elems}, err
	case sc.take("{"):
		elems, err := sc.list("}")
		return value{kind: set, elems: elems}, err
	case sc.take("("):
		return sc.pairs(":>", "@@", ")")
	case sc.take("["):
		return sc.pairs("|->", ",", "]")
	}
	return sc.atom()
}

func (sc *scanner) list(end string) (elems []value, err error) {
	for first := true; !sc.take(end); first = false {
		if !first && !sc.take(",") {
			return nil, fmt.Errorf("%w: no %q before %.20q", ErrValue, end, sc.s)
		}
		v, err := sc.value()
		if err != nil {
			return nil, err
		}
		elems = append(elems, v)
	}
	return elems, nil
}

func (sc *scanner) pairs(arrow, between, end string) (value, error) {
	f := value{kind: function}
	for first := true; !sc.take(end); first = false {
		if !first && !sc.take(between) {
			return f, fmt.Errorf("%w: no %q before %.20q", ErrValue, end, sc.s)
		}
		k, err := sc.value()
		if err != nil {
			return f, err
		}
		if !sc.take(arrow) {
			return f, fmt.Errorf("%w: no %q before %.20q", ErrValue, arrow, sc.s)
		}
		v, err := sc.value()
		if err != nil {
			return f, err
		}
		f.keys, f.elems = append(f.keys, k), append(f.elems, v)
	}
	return f, nil
}

// atom is a word, a number, a string, or an interval, which TLC prints for sets of numbers.
func (sc *scanner) atom() (value, error) {
	sc.space()
	if strings.HasPrefix(sc.s, `"`) {
		end := strings.IndexByte(sc.s[1:], '"')
		if end < 0 {
			return value{}, fmt.Errorf("%w: a string has no end", ErrValue)
		}
		v := value{text: sc.s[1 : 1+end]}
		sc.s = sc.s[end+2:]
		return v, nil
	}
	n := 0
	for n < len(sc.s) && (isWord(sc.s[n]) || n == 0 && sc.s[0] == '-') {
		n++
	}
	if n == 0 {
		return value{}, fmt.Errorf("%w before %.20q", ErrValue, sc.s)
	}
	v := value{text: sc.s[:n]}
	sc.s = sc.s[n:]
	if sc.take("..") {
		last, err := sc.atom()
		return interval(v, last), err
	}
	return v, nil
}

// maxInterval bounds how many members an interval is written out with.
const maxInterval = 1000

func interval(first, last value) value {
	a, err1 := strconv.Atoi(first.text)
	b, err2 := strconv.Atoi(last.text)
	if err1 != nil || err2 != nil || b-a >= maxInterval {
		return value{text: first.text + ".." + last.text}
	}
	v := value{kind: set}
	for ; a <= b; a++ {
		v.elems = append(v.elems, value{text: strconv.Itoa(a)})
	}
	return v
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// String is v in TLA+, without the quotes of strings.
func (v value) String() string {
	var parts []string
	for i, e := range v.elems {
		if v.kind == function {
			parts = append(parts, v.keys[i].String()+" :> "+e.String())
			continue
		}
		parts = append(parts, e.String())
	}
	switch v.kind {
	case tuple:
		return "<<" + strings.Join(parts, ", ") + ">>"
	case set:
		return "{" + strings.Join(parts, ", ") + "}"
	case function:
		return "(" + strings.Join(parts, " @@ ") + ")"
	}
	return v.text
}

// key is the i-th argument of a tuple or function.
func (v value) key(i int) value {
	if v.kind == function {
		return v.keys[i]
	}
	return value{text: strconv.Itoa(i + 1)}
}

// flat is the members of a tuple, or v alone.
func (v value) flat() []value {
	if v.kind == tuple {
		return v.elems
	}
	return []value{v}
}

// at is the value of a function at a key as it is printed, and whether there is one.
func (v value) at(key string) (value, bool) {
	for i := range v.elems {
		if (v.kind == function || v.kind == tuple) && v.key(i).String() == key {
			return v.elems[i], true
		}
	}
	return value{}, false
}
