package model

import (
	"errors"
	"fmt"
	"strings"
)

// ErrValue means that a text is no value in TLC's syntax, as far as states of the specifications use it.
var ErrValue = errors.New("model: not a TLC value")

// deepest is how far values may be nested: those of states are nested three deep.
const deepest = 32

// Normal brings one value in TLC's syntax into the normal form that text.go describes. Line ends count as blanks. Records,
// intervals and sequences of other forms are refused with ErrValue.
func Normal(tlc string) (string, error) {
	p := valueParser{rest: tlc}
	v, err := p.value(0)
	if err != nil {
		return "", err
	}
	if p.blanks(); p.rest != "" {
		return "", fmt.Errorf("%w: %q follows a value", ErrValue, p.rest)
	}
	return v, nil
}

type valueParser struct{ rest string }

func (p *valueParser) blanks() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// take skips blanks and then token, if it stands there.
func (p *valueParser) take(token string) bool {
	p.blanks()
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *valueParser) value(depth int) (string, error) {
	switch {
	case depth > deepest:
		return "", fmt.Errorf("%w: nested too deep", ErrValue)
	case p.take("<<"):
		parts, err := p.list(">>", depth)
		return "<<" + strings.Join(parts, ", ") + ">>", err
	case p.take("{"):
		parts, err := p.list("}", depth)
		return setText(parts), err
	case p.take("("):
		return p.function(depth)
	case p.take(`"`):
		text, rest, ok := strings.Cut(p.rest, `"`)
		if p.rest = rest; !ok || strings.ContainsAny(text, "\\\n") {
			return "", fmt.Errorf("%w: string %q", ErrValue, text)
		}
		return `"` + text + `"`, nil
	}
	n := 0
	for n < len(p.rest) && isName(rune(p.rest[n])) {
		n++
	}
	if n == 0 {
		return "", fmt.Errorf("%w: at %q", ErrValue, p.rest)
	}
	word := p.rest[:n]
	p.rest = p.rest[n:]
	return word, nil
}

// list reads values with commas between them up to the closing token.
func (p *valueParser) list(end string, depth int) ([]string, error) {
	if p.take(end) {
		return nil, nil
	}
	var parts []string
	for {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		parts = append(parts, v)
		if p.take(end) {
			return parts, nil
		}
		if !p.take(",") {
			return nil, fmt.Errorf("%w: at %q", ErrValue, p.rest)
		}
	}
}

func (p *valueParser) function(depth int) (string, error) {
	var keys, values []string
	for {
		k, err := p.value(depth + 1)
		if err != nil {
			return "", err
		}
		if !p.take(":>") {
			return "", fmt.Errorf("%w: at %q", ErrValue, p.rest)
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return "", err
		}
		keys, values = append(keys, k), append(values, v)
		if p.take(")") {
			return functionText(keys, values), nil
		}
		if !p.take("@@") {
			return "", fmt.Errorf("%w: at %q", ErrValue, p.rest)
		}
	}
}
