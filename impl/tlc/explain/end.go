package explain

import (
	"fmt"
	"slices"
	"strings"
)

// standing says what stands in the last state, as far as one must know it to see that the property is broken: requests, leases, pages,
// writes that are pending, kernels and tokens; of an unknown specification all variables.
func (b *builder) standing() (out []string) {
	s := &b.trace.states[len(b.trace.states)-1]
	if len(b.variables) == 0 {
		for i, name := range s.names {
			out = append(out, name+" = "+s.vars[i].String())
		}
		return out
	}
	for _, t := range entries(s, "lead") {
		out = append(out, transfer(s, t))
	}
	for _, l := range entries(s, "dst") {
		if state := l.value.String(); state != "new" {
			out = append(out, lease(s, l.key, state))
		}
	}
	for _, p := range entries(s, "own") {
		out = append(out, b.page(s, p.key, p.value))
	}
	if !b.pull {
		out = append(out, b.pending(s)...)
	}
	for _, name := range []string{"krn", "tok", "shr", "copying", "taken"} {
		set, _ := s.get(name)
		x := b.variableOf(name)
		if x == nil {
			continue
		}
		for _, e := range set.elems {
			text := x.tell(change{variable: name, op: '+', at: e.flat()})
			if text != "" && !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out
}

// entry is one argument of a function with its value.
type entry struct {
	key   string
	value value
}

// entries lists a function's arguments and values in the order of the arguments.
func entries(s *state, name string) (out []entry) {
	f, _ := s.get(name)
	if !isFunction(f) {
		return nil
	}
	for i, e := range f.elems {
		out = append(out, entry{f.key(i).String(), e})
	}
	slices.SortStableFunc(out, func(x, y entry) int { return strings.Compare(x.key, y.key) })
	return out
}

// of is the value of a function at a key of one or more parts, or "".
func of(s *state, name string, key ...string) string {
	f, _ := s.get(name)
	at := key[0]
	if len(key) > 1 {
		at = "<<" + strings.Join(key, ", ") + ">>"
	}
	v, _ := f.at(at)
	return v.String()
}

func transfer(s *state, t entry) string {
	text := "transfer " + t.key + ": " + t.value.String()
	if told := of(s, "http", t.key); told != "" && told != "none" {
		text += "; its client was told " + told
	}
	return text
}

// lease says what there is to a lease: its transfer, its tenant if there are several, its state and its holds.
func lease(s *state, l, state string) string {
	text := "lease " + l
	if t := of(s, "tof", l); t != "" && t != "0" {
		text += " of transfer " + t
	}
	if tenants := entries(s, "ten"); slices.ContainsFunc(tenants, func(e entry) bool { return e.value.String() != tenants[0].value.String() }) {
		text += " and tenant " + of(s, "ten", l)
	}
	text += ": " + state
	holds, _ := s.get("hold")
	var by []string
	for i, e := range holds.elems {
		if k := holds.key(i).flat(); len(k) == 2 && k[0].String() == l && e.String() == "TRUE" {
			by = append(by, k[1].String())
		}
	}
	if len(by) > 0 {
		text += "; held until " + strings.Join(by, " and ") + " has answered"
	}
	return text
}

// page says whose a page is and what is in it.
func (b *builder) page(s *state, p string, owner value) string {
	text := "page " + p + ": " + noun('O', owner)
	if b.pull {
		return fmt.Sprintf("%s; it has %s, its tag is %s", text, noun('B', value{text: of(s, "mem", p)}), noun('T', value{text: of(s, "tagl", p)}))
	}
	text += ", in generation " + of(s, "gen", p)
	mem, _ := s.get("mem")
	for i, e := range mem.elems {
		if k := mem.key(i).flat(); len(k) == 2 && k[0].String() == p {
			slot := k[1].String()
			text += fmt.Sprintf("; slot of %s: %s, its tag is %s", slot, noun('B', e), noun('T', value{text: of(s, "tagl", p, slot)}))
		}
	}
	return text
}

// pending lists the writes that are under way, and how far each is.
func (b *builder) pending(s *state) (out []string) {
	for _, at := range [...]struct{ name, says string }{
		{"queued", "is posted, its source not read"}, {"flying", "is on its way"}, {"placing", "was let in and is still to be copied"}, {"unseen", "is being copied"},
	} {
		set, _ := s.get(at.name)
		for _, w := range set.elems {
			if k := w.flat(); len(k) == 5 {
				out = append(out, fmt.Sprintf("a write of %s for lease %s (generation %s) into page %s %s", k[1], k[0], of(s, "gpage", k[0].String(), k[2].String()), k[2], at.says))
			}
		}
	}
	return out
}
