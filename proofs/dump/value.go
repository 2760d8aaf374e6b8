package dump

import (
	"fmt"
	"regexp"
	"strings"
)

// Unescape undoes the escapes of a label.
func Unescape(label string) string {
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n").Replace(label)
}

// Values are the values of a state's variables, from its label.
func Values(label string) (map[string]Value, error) {
	out := map[string]Value{}
	for _, part := range strings.Split(Unescape(label), `/\ `) {
		name, raw, ok := strings.Cut(strings.TrimSpace(part), " = ")
		if !ok {
			continue
		}
		v, err := Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = v
	}
	return out, nil
}

// Kind is the shape of a value.
type Kind byte

// Shapes of values. TLC prints a function on 1..n as a tuple.
const (
	Atom Kind = iota
	Tuple
	Set
	Function
)

// Value is a value as TLC prints it.
type Value struct {
	Kind  Kind
	Text  string  // of an atom; strings keep their quotes
	Items []Value // of a tuple, set or function; a function's are pairs
}

var valueWord = regexp.MustCompile(`<<|>>|:>|@@|[(){}\[\],]|"[^"]*"|-?\d+|\w+`)

// Parse reads one value: atoms, tuples, sets and functions, no records.
func Parse(text string) (Value, error) {
	r := &reader{words: valueWord.FindAllString(text, -1)}
	v := r.value()
	if r.bad || r.at != len(r.words) {
		return Value{}, fmt.Errorf("%w: %.60q is no value", ErrDump, text)
	}
	return v, nil
}

type reader struct {
	words []string
	at    int
	bad   bool // something else stood where it must not
}

func (r *reader) next() string {
	if r.at >= len(r.words) {
		r.bad = true
		return ""
	}
	r.at++
	return r.words[r.at-1]
}

func (r *reader) list(end string) (out []Value) {
	if r.at < len(r.words) && r.words[r.at] == end {
		r.at++
		return nil
	}
	for !r.bad {
		out = append(out, r.value())
		switch w := r.next(); w {
		case end:
			return out
		case ",":
		default:
			r.bad = true
		}
	}
	return nil
}

func (r *reader) function() Value {
	f := Value{Kind: Function}
	for !r.bad {
		key := r.value()
		r.bad = r.next() != ":>" || r.bad
		f.Items = append(f.Items, Value{Kind: Tuple, Items: []Value{key, r.value()}})
		switch r.next() {
		case ")":
			return f
		case "@@":
		default:
			r.bad = true
		}
	}
	return f
}

func (r *reader) value() Value {
	switch w := r.next(); w {
	case "<<":
		return Value{Kind: Tuple, Items: r.list(">>")}
	case "{":
		return Value{Kind: Set, Items: r.list("}")}
	case "(":
		return r.function()
	case ">>", "}", ")", "[", "]", ",", ":>", "@@":
		r.bad = true
		return Value{}
	default:
		return Value{Text: w}
	}
}
