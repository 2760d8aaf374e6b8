package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"

	"kvfence/model"
	"kvfence/proofs/dump"
)

// A state is compared by what its text says. Each normal form of a variable has a number, the same for both sides; the numbers of all
// variables in the order of the TLA+ text, hashed, name the state. The hash is the first 128 bits of SHA-256: that two of n states
// share one has a chance of n*n / 2^129.

// digest names a state.
type digest [16]byte

func digestOf(numbers []uint32, scratch []byte) digest {
	scratch = scratch[:0]
	for _, n := range numbers {
		scratch = binary.LittleEndian.AppendUint32(scratch, n)
	}
	sum := sha256.Sum256(scratch)
	return digest(sum[:16])
}

// values numbers the normal forms of each variable. It is safe for concurrent use.
type values struct {
	mu      sync.Mutex
	names   []string         // variables in the order of the TLA+ text
	place   map[string]int   // of a variable in names
	numbers []map[string]int // by variable: normal form -> number
	texts   [][]string       // by variable and number
}

func newValues() *values {
	v := &values{place: map[string]int{}}
	for i, x := range model.Variables() {
		v.names = append(v.names, x.Name)
		v.place[x.Name] = i
		v.numbers = append(v.numbers, map[string]int{})
	}
	v.texts = make([][]string, len(v.names))
	return v
}

func (v *values) number(variable int, normal string) uint32 {
	v.mu.Lock()
	defer v.mu.Unlock()
	n, ok := v.numbers[variable][normal]
	if !ok {
		n = len(v.texts[variable])
		v.numbers[variable][normal] = n
		v.texts[variable] = append(v.texts[variable], normal)
	}
	return uint32(n)
}

// difference lists the variables that differ, before and after.
func (v *values) difference(from, to []uint32) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []string
	for i := range v.names {
		if from[i] != to[i] {
			out = append(out, fmt.Sprintf("%s: %s -> %s", v.names[i], v.texts[i][from[i]], v.texts[i][to[i]]))
		}
	}
	return out
}

// labels reads TLC's labels. What it has read of a variable once it knows by the bytes.
type labels struct {
	v       *values
	order   []int // place in names of the variable that came at this place last time
	known   []map[string]uint32
	seen    []int // turn in which a variable came last
	turn    int
	numbers []uint32
	scratch []byte
}

func newLabels(v *values) *labels {
	l := &labels{v: v, numbers: make([]uint32, len(v.names)), order: make([]int, len(v.names)), seen: make([]int, len(v.names))}
	for range v.names {
		l.known = append(l.known, map[string]uint32{})
	}
	return l
}

// read gives the numbers of a label's variables; they stay until the next call.
func (l *labels) read(label []byte) ([]uint32, error) {
	rest, ok := bytes.CutPrefix(label, []byte(`/\\ `))
	if !ok {
		return nil, fmt.Errorf("%w: a state begins with %.40q", dump.ErrDump, label)
	}
	l.turn++
	count := 0
	for at := 0; ok; at++ {
		var part []byte
		part, rest, ok = bytes.Cut(rest, []byte(`\n/\\ `))
		name, raw, is := bytes.Cut(part, []byte(" = "))
		if !is || at >= len(l.v.names) {
			return nil, fmt.Errorf("%w: %.60q is no variable, or one too many", dump.ErrDump, part)
		}
		i := l.order[at]
		if string(name) != l.v.names[i] {
			if i, is = l.v.place[string(name)]; !is {
				return nil, fmt.Errorf("%w: the model has no variable %q", dump.ErrDump, name)
			}
			l.order[at] = i
		}
		if l.seen[i] == l.turn {
			return nil, fmt.Errorf("%w: variable %s comes twice", dump.ErrDump, name)
		}
		l.seen[i] = l.turn
		count++
		n, is := l.known[i][string(raw)]
		if !is {
			text, err := model.Normal(dump.Unescape(string(raw)))
			if err != nil {
				return nil, fmt.Errorf("%w: %s: %w", dump.ErrDump, name, err)
			}
			n = l.v.number(i, text)
			l.known[i][string(raw)] = n
		}
		l.numbers[i] = n
	}
	if count != len(l.v.names) {
		return nil, fmt.Errorf("%w: a state lacks variables: %s", dump.ErrDump, l.lacking())
	}
	return l.numbers, nil
}

func (l *labels) lacking() string {
	var out []string
	for i, n := range l.v.names {
		if l.seen[i] != l.turn {
			out = append(out, n)
		}
	}
	return strings.Join(out, ", ")
}

// reader gives the numbers of the model's states. What it has seen of a variable once it knows by the cells. Each goroutine needs its own.
type reader struct {
	v       *values
	twin    *model.Twin
	vars    []model.Variable
	cells   [][]model.Index
	known   []map[string]uint32
	numbers []uint32
	scratch []byte
}

func newReader(v *values, twin *model.Twin) *reader {
	r := &reader{v: v, twin: twin, vars: model.Variables(), numbers: make([]uint32, len(v.names))}
	for _, x := range r.vars {
		var cells []model.Index
		twin.Settings.Each(x, func(at model.Index) { cells = append(cells, at) })
		r.cells = append(r.cells, cells)
		r.known = append(r.known, map[string]uint32{})
	}
	return r
}

// read gives the numbers of a state's variables; they stay until the next call.
func (r *reader) read(s *model.State) []uint32 {
	for i, x := range r.vars {
		r.scratch = r.scratch[:0]
		for _, at := range r.cells[i] {
			r.scratch = append(r.scratch, x.Get(s, at))
		}
		n, ok := r.known[i][string(r.scratch)]
		if !ok {
			n = r.v.number(i, r.twin.Value(s, x.Name))
			r.known[i][string(r.scratch)] = n
		}
		r.numbers[i] = n
	}
	return r.numbers
}

func (r *reader) digest(s *model.State) digest { return digestOf(r.read(s), r.scratch) }
