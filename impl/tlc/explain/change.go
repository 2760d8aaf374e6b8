package explain

// change is one difference between two states: a variable, or a function at a key, has another value (op '='), or a set has gained ('+')
// or lost ('-') a member.
type change struct {
	variable      string
	op            byte
	at            []value // the keys, tuples taken apart; of a set's member its parts
	before, after value   // of '='
}

// changes lists what differs, by variable in order of name.
func changes(before, after *state) (out []change) {
	for i, name := range after.names {
		if old, ok := before.get(name); ok {
			out = append(out, differ(name, nil, old, after.vars[i])...)
		}
	}
	return out
}

func differ(name string, at []value, old, now value) (out []change) {
	if old.String() == now.String() {
		return nil
	}
	switch {
	case old.kind == set && now.kind == set:
		return append(missing(name, '-', at, old, now), missing(name, '+', at, now, old)...)
	case isFunction(old) && isFunction(now) && len(old.elems) == len(now.elems):
		for i := range now.elems {
			was, ok := old.at(now.key(i).String())
			if !ok {
				return []change{{name, '=', at, old, now}}
			}
			out = append(out, differ(name, append(at[:len(at):len(at)], now.key(i).flat()...), was, now.elems[i])...)
		}
		return out
	}
	return []change{{name, '=', at, old, now}}
}

func isFunction(v value) bool { return v.kind == function || v.kind == tuple }

// missing lists the members of have that other has not.
func missing(name string, op byte, at []value, have, other value) (out []change) {
	there := make([]string, 0, len(other.elems))
	for _, e := range other.elems {
		there = append(there, e.String())
	}
	for _, e := range have.elems {
		if !contains(there, e.String()) {
			out = append(out, change{name, op, append(at[:len(at):len(at)], e.flat()...), value{}, value{}})
		}
	}
	return out
}
