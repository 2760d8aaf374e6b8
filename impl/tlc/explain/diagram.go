package explain

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Diagram is a counterexample as a sequence of rows over the lines of its participants.
type Diagram struct {
	title string
	lanes []string // names of the participants, two words of one line each
	rows  []row
	end   []string // what stands when the property is broken
	last  []string // the property, and what it says
}

// row is one step.
type row struct {
	number   int
	action   string // with its parameters
	says     string // what the action means
	told     []string
	at       []int // lanes where it happens
	arrows   []arrow
	crash    bool
	received bool // what it sends arrives in a later row
}

// arrow goes from one lane to another. sent is the row in which a received message went out, or -1.
type arrow struct {
	from, to int
	dashed   bool // sent; whether it arrives is another step's matter
	sent     int
}

// lane is a line of the diagram while it is built: a place, and for prefill ranks which.
type lane struct {
	place place
	rank  string
}

// builder makes a diagram of a trace.
type builder struct {
	trace     *Trace
	modules   fs.FS // the specification, or nil
	pull      bool
	variables []variable
	actions   []action
	lanes     []lane
	sent      map[string]int // message -> row in which it went out last
	rows      []row
}

// Draw makes the diagram. about is a line of title that says where the counterexample comes from; it may be empty. modules has the
// specification's files, from which an action that TLC names by the script that it is a part of is read; it may be nil.
func Draw(t *Trace, about string, modules fs.FS) *Diagram {
	b := &builder{trace: t, modules: modules, sent: map[string]int{}}
	first := &t.states[0]
	if _, ok := first.get("copying"); ok {
		b.pull, b.variables, b.actions = true, pullVariables(), pullActions()
	} else if _, ok := first.get("pst"); ok {
		b.variables, b.actions = transferVariables(), transferActions()
	}
	b.findLanes()
	for i := 1; i < len(t.states); i++ {
		b.step(i)
	}
	d := &Diagram{title: about, rows: b.rows}
	b.dropLanes(d)
	d.end = b.standing()
	d.last = b.verdict()
	return d
}

// findLanes lists all lines that there may be, from left to right.
func (b *builder) findLanes() {
	if len(b.variables) == 0 {
		return
	}
	if b.pull {
		b.lanes = []lane{{decodeRank, ""}, {prefillRank, ""}, {pages, ""}}
		return
	}
	b.lanes = []lane{{client, ""}, {decodeLeader, ""}, {prefillLeader, ""}, {decodeRank, ""}}
	pinc, _ := b.trace.states[0].get("pinc")
	var ranks []string
	for i := range pinc.elems {
		ranks = append(ranks, pinc.key(i).String())
	}
	slices.Sort(ranks)
	for _, r := range ranks {
		b.lanes = append(b.lanes, lane{prefillRank, r})
	}
	b.lanes = append(b.lanes, lane{fabric, ""}, lane{pages, ""})
}

// roles is the values that a step's changes have for each role, each once, in order.
type roles [128][]string

func (r *roles) add(role byte, v string) {
	if role < 128 && !slices.Contains(r[role], v) {
		r[role] = append(r[role], v)
	}
}

// step makes the row of the step into state i.
func (b *builder) step(i int) {
	before, after := &b.trace.states[i-1], &b.trace.states[i]
	diff := changes(before, after)
	r := b.rolesOf(diff)
	a := b.actionOf(after.action)
	line := row{number: after.number, action: after.action + params(a, r), says: a.says, told: b.tell(diff), crash: a.how == crashes}
	if a.from == nowhere && len(b.actions) > 0 {
		if written, known := b.inScript(after.where); known != nil {
			a, line.action, line.says, line.crash = known, written, known.says, known.how == crashes
		} else if known := b.bySign(diff); known != nil {
			a, line.action, line.says, line.crash = known, known.name+params(known, r), known.says, known.how == crashes
		}
	}
	if line.action == "" {
		line.action = "(a step without a name)"
	}
	if now, ok := after.get(scriptVariable); ok {
		line.says = now.String()
	}
	b.connect(&line, a, r, after)
	if len(line.at) == 0 {
		line.at = b.whereChanged(diff)
	}
	b.rows = append(b.rows, line)
}

// actionOf is what is known of an action; of one that is not known, its name.
func (b *builder) actionOf(name string) *action {
	for i := range b.actions {
		if b.actions[i].name == name {
			return &b.actions[i]
		}
	}
	return &action{name: name}
}

func (b *builder) variableOf(name string) *variable {
	for i := range b.variables {
		if b.variables[i].name == name {
			return &b.variables[i]
		}
	}
	return nil
}

// rolesOf collects what the changes tell of the action's parameters.
func (b *builder) rolesOf(diff []change) *roles {
	r := &roles{}
	for _, c := range diff {
		x := b.variableOf(c.variable)
		if x == nil || len(x.keys) != len(c.at) {
			continue
		}
		for i, k := range c.at {
			r.add(x.keys[i], k.String())
		}
		if c.op != '=' || x.value == "" {
			continue
		}
		switch role, now := x.value[0], c.after.String(); role {
		case 'O':
			for _, v := range []string{c.before.String(), now} {
				if v != "0" {
					r.add('l', v)
				}
			}
		case 't', 'i', 'e', 'm', 'v', 'z', 'q', 'g', 'n', 'a', 'f':
			r.add(role, now)
		}
	}
	return r
}

// params are the parameters of a that the changes tell.
func params(a *action, r *roles) string {
	var parts []string
	for _, f := range []byte(a.formals) {
		values := r[byte(unicode.ToLower(rune(f)))]
		switch many := unicode.IsUpper(rune(f)); {
		case len(values) == 0 || len(values) > 1 && !many:
		case f == 'y' || f == 'z':
			parts = append(parts, values[0])
		case len(values) == 1:
			parts = append(parts, strings.ToLower(string(rune(f)))+"="+values[0])
		default:
			parts = append(parts, strings.ToLower(string(rune(f)))+"={"+strings.Join(values, ", ")+"}")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// tell is the changes in words, in the order of the variables.
func (b *builder) tell(diff []change) []string {
	var loud, quiet, unknown []string
	for i := range b.variables {
		x := &b.variables[i]
		for _, c := range diff {
			if c.variable != x.name || moved(c, diff) {
				continue
			}
			text := x.tell(c)
			switch {
			case text == "":
				unknown = append(unknown, plain(c))
			case x.quiet:
				quiet = append(quiet, text)
			default:
				loud = append(loud, text)
			}
		}
	}
	for _, c := range diff {
		if b.variableOf(c.variable) == nil && c.variable != scriptVariable && c.variable != stepVariable {
			unknown = append(unknown, plain(c))
		}
	}
	if loud = append(loud, unknown...); len(loud) == 0 {
		return quiet
	}
	return loud
}

// moved says whether c is a member that left one set for another one; the other one tells it.
func moved(c change, diff []change) bool {
	return c.op == '-' && slices.ContainsFunc(diff, func(d change) bool {
		return d.op == '+' && d.variable != c.variable && value{kind: tuple, elems: d.at}.String() == value{kind: tuple, elems: c.at}.String()
	})
}

// connect sets where the row happens and its arrows.
func (b *builder) connect(line *row, a *action, r *roles, after *state) {
	ranks := r['k']
	if len(ranks) == 0 && !b.pull && len(r['l']) == 1 {
		ranks = owing(after, r['l'][0])
	}
	from, to := b.lanesOf(a.from, ranks), b.lanesOf(a.to, ranks)
	line.at = from
	if a.how == receives {
		line.at = to
	}
	for _, f := range from {
		for _, t := range to {
			key := b.message(a, r, f, t)
			x := arrow{from: f, to: t, dashed: a.how == sends, sent: -1}
			if at, ok := b.sent[key]; ok && a.how == receives && key != "" {
				x.sent = at
				b.rows[at].received = true
			}
			if a.how == sends && key != "" {
				b.sent[key] = len(b.rows)
			}
			line.arrows = append(line.arrows, x)
		}
	}
}

// message tells one message from another: its kind, the prefill rank at one of its ends, and the values of its roles.
func (b *builder) message(a *action, r *roles, from, to int) string {
	kind, keys, _ := strings.Cut(a.message, " ")
	if kind == "" {
		return ""
	}
	for _, k := range []byte(keys) {
		switch {
		case k == 'k':
			kind += " " + b.lanes[from].rank + b.lanes[to].rank
		case len(r[k]) == 1:
			kind += " " + r[k][0]
		default:
			return ""
		}
	}
	return kind
}

// lanesOf is the lanes of a place; of prefill ranks those that are named.
func (b *builder) lanesOf(p place, ranks []string) (out []int) {
	for i, l := range b.lanes {
		if l.place == p && (p != prefillRank || b.pull || slices.Contains(ranks, l.rank)) {
			out = append(out, i)
		}
	}
	return out
}

// owing is the ranks that owe a part of a lease.
func owing(s *state, lease string) (ranks []string) {
	owes, _ := s.get("owes")
	for i, e := range owes.elems {
		if k := owes.key(i).flat(); e.String() == "TRUE" && len(k) == 2 && k[0].String() == lease {
			ranks = append(ranks, k[1].String())
		}
	}
	return ranks
}

// dropLanes leaves out the lines at which nothing happens.
func (b *builder) dropLanes(d *Diagram) {
	used := make([]bool, len(b.lanes))
	for _, r := range d.rows {
		for _, i := range r.at {
			used[i] = true
		}
		for _, a := range r.arrows {
			used[a.from], used[a.to] = true, true
		}
	}
	place := make([]int, len(b.lanes))
	for i, l := range b.lanes {
		place[i] = len(d.lanes)
		if used[i] {
			d.lanes = append(d.lanes, l.name())
		}
	}
	for i := range d.rows {
		r := &d.rows[i]
		for j := range r.at {
			r.at[j] = place[r.at[j]]
		}
		for j := range r.arrows {
			r.arrows[j].from, r.arrows[j].to = place[r.arrows[j].from], place[r.arrows[j].to]
		}
	}
}

func (l lane) name() string {
	switch l.place {
	case client:
		return "client"
	case decodeLeader:
		return "decode leader"
	case prefillLeader:
		return "prefill leader"
	case decodeRank:
		return "decode rank"
	case prefillRank:
		return strings.TrimSpace("prefill " + l.rank)
	case fabric:
		return "fabric"
	}
	return "pages"
}

// verdict names the property that is broken and says what it means.
func (b *builder) verdict() (out []string) {
	t := b.trace
	switch {
	case t.Stutters:
		out = append(out, "From here on nothing happens any more.")
	case t.Cycle > 0:
		out = append(out, "From here on it goes as from step "+strconv.Itoa(t.Cycle)+" on, for ever.")
	}
	name := t.Property
	if name == "" {
		return append(out, orElse(t.Broken, "This is the end of the trace."))
	}
	out = append(out, name+" is broken.")
	if m := Meaning(name); m != "" {
		out = append(out, m)
	}
	return out
}

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}
