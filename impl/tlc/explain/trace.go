// Package explain turns a counterexample, as TLC prints it, into a sequence diagram in text and in SVG: a line for each participant, a row
// for each step with the action's name, its parameters as far as the change of the variables tells them, what changed in plain words, and
// last the property that broke. It knows the variables and actions of Transfer.tla and Pull.tla by name; of any other specification
// it prints the changes as they are. It runs nothing. kvfence spec and impl/tlc/examples call it.
// Read next: trace.go (what TLC prints), change.go, words.go, diagram.go, text.go, svg.go.
package explain

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// Trace is one counterexample.
type Trace struct {
	Property string // the property that it breaks; "" where TLC does not name it
	Broken   string // TLC's sentence about that
	Cycle    int    // the number of the state to which the last one goes back; 0: none
	Stutters bool   // the behaviour ends by doing nothing for ever
	states   []state
}

// Len is the number of states.
func (t *Trace) Len() int { return len(t.states) }

// state is one state with the name of the action that led to it.
type state struct {
	number int
	action string // "" for the first
	where  string // where the specification has it, as TLC says it
	names  []string
	vars   []value // of names, which are sorted
}

func (s *state) get(name string) (value, bool) {
	i := sort.SearchStrings(s.names, name)
	if i < len(s.names) && s.names[i] == name {
		return s.vars[i], true
	}
	return value{}, false
}

// ErrNoTrace says that a text has no counterexample.
var ErrNoTrace = errors.New("no counterexample of TLC's in this text")

// maxInput bounds what Parse reads.
const maxInput = 64 << 20

var (
	brokenLine  = regexp.MustCompile(`^Error: (.*\b(?:violated|Deadlock reached)\b.*)$`)
	brokenName  = regexp.MustCompile(`^(?:Invariant|Action property|Temporal property) (\w+) `)
	stateLine   = regexp.MustCompile(`^(?:State )?(\d+): <([A-Za-z_]\w*)?(.*)>$`)
	stutterLine = regexp.MustCompile(`^(?:State )?\d+: Stuttering`)
	backLine    = regexp.MustCompile(`^(?:\d+: )?Back to state:? (\d+)`)
	bindingLine = regexp.MustCompile(`^(?:/\\ )?([A-Za-z_]\w*) = (.*)$`)
)

// Parse reads the first counterexample in what TLC printed. Errors: ErrNoTrace, ErrValue.
func Parse(r io.Reader) (*Trace, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxInput {
		return nil, fmt.Errorf("%w: it is longer than %d MiB", ErrNoTrace, maxInput>>20)
	}
	p := parser{trace: &Trace{}}
	for i, line := range strings.Split(string(raw), "\n") {
		done, err := p.line(strings.TrimRight(line, "\r"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if done {
			break
		}
	}
	if err := p.close(); err != nil {
		return nil, err
	}
	if len(p.trace.states) == 0 {
		return nil, fmt.Errorf("%w: there is no line like \"State 1: <Initial predicate>\"; give what TLC printed for a configuration that fails, "+
			"such as kvfence spec trace NAME --raw prints", ErrNoTrace)
	}
	return p.trace, nil
}

// parser is the place between two lines.
type parser struct {
	trace   *Trace
	in      bool   // a state is open
	pending string // the variable whose value is not finished
	text    string // its value so far
}

// line takes one line and says whether the counterexample is over.
func (p *parser) line(line string) (done bool, err error) {
	switch f := stateLine.FindStringSubmatch(line); {
	case f != nil:
		n, _ := strconv.Atoi(f[1]) // digits, by the pattern
		action := f[2]
		if len(p.trace.states) == 0 {
			action = "" // "Initial predicate"
		}
		if err := p.open(n, action); err != nil {
			return false, err
		}
		p.trace.states[len(p.trace.states)-1].where = f[3]
		return false, nil
	case len(p.trace.states) > 0 && stutterLine.MatchString(line):
		p.trace.Stutters = true
		return true, nil
	case len(p.trace.states) > 0 && backLine.MatchString(line):
		p.trace.Cycle, _ = strconv.Atoi(backLine.FindStringSubmatch(line)[1]) // digits, by the pattern
		return true, nil
	}
	if f := brokenLine.FindStringSubmatch(line); f != nil && len(p.trace.states) == 0 {
		p.trace.Broken = f[1]
		if n := brokenName.FindStringSubmatch(f[1]); n != nil {
			p.trace.Property = n[1]
		}
		if strings.Contains(line, "by the initial state") {
			return false, p.open(1, "")
		}
		return false, nil
	}
	if !p.in {
		return len(p.trace.states) > 0 && strings.Contains(line, "states generated"), nil
	}
	if f := bindingLine.FindStringSubmatch(line); f != nil {
		if err := p.bind(); err != nil {
			return false, err
		}
		p.pending, p.text = f[1], f[2]
		return false, nil
	}
	if strings.TrimSpace(line) == "" {
		return false, p.close()
	}
	if p.pending == "" {
		return false, fmt.Errorf("%w: %.40q is no variable of a state", ErrValue, line)
	}
	p.text += "\n" + line
	return false, nil
}

// open begins a state.
func (p *parser) open(n int, action string) error {
	if err := p.close(); err != nil {
		return err
	}
	p.in = true
	p.trace.states = append(p.trace.states, state{number: n, action: action})
	return nil
}

// close ends the state that is open, if one is. TLC may print only what changed (-difftrace): the rest is as before.
func (p *parser) close() error {
	if err := p.bind(); err != nil || !p.in {
		return err
	}
	p.in = false
	last := len(p.trace.states) - 1
	s := &p.trace.states[last]
	if last > 0 {
		before := &p.trace.states[last-1]
		for i, name := range before.names {
			if !contains(s.names, name) {
				s.names, s.vars = append(s.names, name), append(s.vars, before.vars[i])
			}
		}
	}
	sort.Sort((*byName)(s))
	return nil
}

// bind ends the value that is being read, if one is.
func (p *parser) bind() error {
	if p.pending == "" {
		return nil
	}
	v, err := parseValue(p.text)
	if err != nil {
		return fmt.Errorf("variable %s: %w", p.pending, err)
	}
	s := &p.trace.states[len(p.trace.states)-1]
	s.names, s.vars = append(s.names, p.pending), append(s.vars, v)
	p.pending, p.text = "", ""
	return nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// byName sorts the variables of a state.
type byName state

func (s *byName) Len() int           { return len(s.names) }
func (s *byName) Less(i, j int) bool { return s.names[i] < s.names[j] }
func (s *byName) Swap(i, j int) {
	s.names[i], s.names[j] = s.names[j], s.names[i]
	s.vars[i], s.vars[j] = s.vars[j], s.vars[i]
}
