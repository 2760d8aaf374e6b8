package tla2smt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Finite is a configuration of TLC: the members of sorts and of constants that are sets, and the values of the others, as
// SMT-LIB terms. With it and Options.Bounds every set is finite, so that steps can be compared with TLC's.
type Finite struct {
	Members map[string][]string
	Values  map[string]string
}

// Declare declares sorts, strings and constants with their values; the state's variables are not declared.
func (l *Lower) Declare(f Finite) []string {
	var out []string
	enumerate := func(sort string, members []string) {
		out = append(out, fmt.Sprintf("(declare-datatypes ((%s 0)) (((%s))))", sort, strings.Join(members, ") (")))
	}
	for _, s := range l.Sorts {
		enumerate(s, f.Members[s])
	}
	var names []string
	for _, s := range l.Spec.Strings {
		names = append(names, symbol(s))
	}
	if len(names) > 0 {
		enumerate(sortStr, names)
	}
	for _, c := range l.Sets {
		out = append(out, fmt.Sprintf("(define-fun %s ((x %s)) Bool %s)", c, l.sortOf(l.consts[c].set), among("x", f.Members[c])))
	}
	for _, c := range l.Members {
		out = append(out, fmt.Sprintf("(define-fun %s () %s %s)", c, l.sortOf(l.consts[c].set), f.Values[c]))
	}
	for _, c := range l.Switches {
		out = append(out, fmt.Sprintf("(define-fun %s () Bool %s)", c, f.Values[c]))
	}
	return out
}

func among(x string, members []string) string {
	var any []string
	for _, m := range members {
		any = append(any, equal(x, m))
	}
	return or(any...)
}

// Enumerate lists the members of a set; of SUBSET S as "fun" and its members, in an order of its own.
func (l *Lower) Enumerate(set *Node, f Finite) []string {
	if b, ok := l.opt.Bounds[set.Name]; ok && (set.Kind == Def || set.is("Nat")) {
		var out []string
		for i := b[0]; i <= b[1]; i++ {
			out = append(out, strconv.Itoa(i))
		}
		return out
	}
	switch {
	case set.Kind == Sym:
		return f.Members[set.Name]
	case set.is("BOOLEAN"):
		return []string{"false", "true"}
	case set.is("$SetEnumerate"):
		var out []string
		for _, a := range set.Args {
			out = append(out, l.expr(a, scope{}))
		}
		return out
	case set.is("\\union"):
		out := l.Enumerate(set.Args[0], f)
		for _, x := range l.Enumerate(set.Args[1], f) {
			if !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
		return out
	}
	l.fail("the members of %s", set)
	return nil
}

// Choices lists the values of a parameter as terms, with the definitions that the terms of subsets need.
func (l *Lower) Choices(p Parameter, f Finite) (terms, definitions []string) {
	if !p.Set.is("SUBSET") {
		return l.Enumerate(p.Set, f), nil
	}
	all := l.Enumerate(p.Set.Args[0], f)
	sort := l.sortOf(p.Set.Args[0])
	for bits := range 1 << len(all) {
		var in []string
		for i, m := range all {
			if bits&(1<<i) != 0 {
				in = append(in, m)
			}
		}
		name := fmt.Sprintf("subset!%s!%d", p.Name, bits)
		terms = append(terms, name)
		definitions = append(definitions, fmt.Sprintf("(define-fun %s ((x %s)) Bool %s)", name, sort, among("x", in)))
	}
	return terms, definitions
}

// Keys lists the members of a variable's domain as lists of terms: one empty list for a scalar.
func (l *Lower) Keys(v string, f Finite) [][]string {
	keys := [][]string{nil}
	for _, d := range l.Shapes[v].Domain {
		if d.Kind == Bind {
			d = underlying(d)
		}
		var next [][]string
		for _, k := range keys {
			for _, x := range l.Enumerate(d, f) {
				next = append(next, append(slices.Clone(k), x))
			}
		}
		keys = next
	}
	return keys
}

// Define defines a variable by its values: of a function by key, of a relation by its members, of a scalar under the empty key. A
// key is the terms of Keys with spaces between.
func (l *Lower) Define(v string, values map[string]string, keys [][]string) string {
	sh := l.Shapes[v]
	var decl, xs []string
	for i, s := range sh.Args {
		xs = append(xs, fmt.Sprintf("a!%d", i))
		decl = append(decl, fmt.Sprintf("(a!%d %s)", i, s))
	}
	if len(keys) == 0 { // on an empty domain
		return fmt.Sprintf("(declare-fun %s (%s) %s)", v, strings.Join(sh.Args, " "), sh.Result)
	}
	body := ""
	for _, k := range keys {
		val := values[strings.Join(k, " ")]
		if val == "" && sh.Relation {
			val = "false"
		}
		if body == "" {
			body = val
			continue
		}
		var same []string
		for i, x := range k {
			same = append(same, equal(xs[i], x))
		}
		body = fmt.Sprintf("(ite %s %s %s)", and(same...), val, body)
	}
	return fmt.Sprintf("(define-fun %s (%s) %s %s)", v, strings.Join(decl, " "), sh.Result, body)
}

// Primed is the application of a variable's new value to a key.
func (l *Lower) Primed(v string, key []string) string {
	if len(key) == 0 {
		return v + "!"
	}
	return "(" + v + "! " + strings.Join(key, " ") + ")"
}

// Guard is the conjunction of an opened action's guards.
func (a *Action) Guard() string { return and(a.Guards...) }
