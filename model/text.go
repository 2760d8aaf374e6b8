package model

import (
	"slices"
	"strconv"
	"strings"
)

// The normal form of values, which Value and Text write and Normal makes of TLC's output:
//
//	numbers, TRUE and FALSE, model values      as they are
//	strings                                    "in quotes"
//	tuples, and functions with domain 1..n     <<a, b>>
//	other functions                            (k :> v @@ k :> v), pairs sorted by the text of their keys
//	sets                                       {a, b}, elements sorted by their text
//
// Sorted means byte by byte. One blank stands after each comma and on both sides of :> and @@, none elsewhere.

// Each calls do with every index of the variable's domains, the last coordinate fastest.
func (w *Settings) Each(v Variable, do func(at Index)) {
	var low, high, at Index
	for i, d := range v.Of {
		low[i], high[i] = w.domain(d)
		if at[i] = low[i]; low[i] > high[i] {
			return
		}
	}
	for {
		do(at)
		i := len(v.Of) - 1
		for ; i >= 0 && at[i] == high[i]; i-- {
			at[i] = low[i]
		}
		if i < 0 {
			return
		}
		at[i]++
	}
}

// Domain is the numbers from low to high that stand for the elements of a set of the TLA+ text, as a Variable or a Param names it.
func (w *Settings) Domain(set string) (low, high uint8) { return w.domain(set) }

// element is the text of one element of a domain; elements outside it are numbers.
func (w *Settings) element(domain string, v uint8) string {
	var names []string
	switch domain {
	case "Page":
		names = w.Page
	case "Rank":
		names = w.Rank
	case "Chan":
		names = w.Chan
	case "Tenant":
		names = w.Tenant
	case "Adapter":
		names = w.Adapter
	case "Prefix":
		names = w.Prefix
	case "BOOLEAN":
		names = boolNames[:]
	}
	if int(v) < len(names) {
		return names[v]
	}
	if words := stringsOf(domain); int(v) < len(words) {
		return strconv.Quote(words[v])
	}
	return strconv.Itoa(int(v))
}

// stringsOf is the strings of a domain that has strings.
func stringsOf(domain string) []string {
	switch domain {
	case "Lead":
		return leadNames[:]
	case "Cause":
		return causeNames[:]
	case "HTTP":
		return httpNames[:]
	case "Dst":
		return dstNames[:]
	case "Pst":
		return pstNames[:]
	case "View":
		return viewNames[:]
	case "Sst":
		return srcNames[:]
	case "Kind":
		return kindNames[:]
	}
	return nil
}

func (w *Settings) tuple(domains []string, at Index) string {
	parts := make([]string, 0, len(domains))
	for i, d := range domains {
		parts = append(parts, w.element(d, at[i]))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "<<" + strings.Join(parts, ", ") + ">>"
}

// Value is the normal form of one variable in s, by its name in the TLA+ text; "" for a name that is none.
func (t *Twin) Value(s *State, variable string) string {
	for _, v := range t.variables {
		if v.Name == variable {
			return t.value(s, v)
		}
	}
	return ""
}

func (t *Twin) value(s *State, v Variable) string {
	w := &t.Settings
	if len(v.Of) == 0 {
		return w.element(v.In, v.Get(s, Index{}))
	}
	var keys, parts []string
	w.Each(v, func(at Index) {
		if x := v.Get(s, at); v.In != "Member" {
			keys = append(keys, w.tuple(v.Of, at))
			parts = append(parts, w.element(v.In, x))
		} else if x != 0 {
			parts = append(parts, w.tuple(v.Of, at))
		}
	})
	if v.In == "Member" {
		return setText(parts)
	}
	return functionText(keys, parts)
}

func setText(elements []string) string {
	slices.Sort(elements)
	return "{" + strings.Join(slices.Compact(elements), ", ") + "}"
}

// functionText is a tuple where the keys are 1 to n, pairs otherwise.
func functionText(keys, values []string) string {
	pairs := make([]string, len(keys))
	tuple := make([]string, len(keys))
	places := 0
	for i, k := range keys {
		pairs[i] = k + " :> " + values[i]
		if n, err := strconv.Atoi(k); err == nil && n >= 1 && n <= len(keys) && tuple[n-1] == "" {
			tuple[n-1], places = values[i], places+1
		}
	}
	if places == len(keys) {
		return "<<" + strings.Join(tuple, ", ") + ">>"
	}
	slices.Sort(pairs)
	return "(" + strings.Join(pairs, " @@ ") + ")"
}

// Text is all variables of s in the order of the TLA+ text, each as "name = value" on a line of its own.
func (t *Twin) Text(s *State) string {
	var b strings.Builder
	for _, v := range t.variables {
		b.WriteString(v.Name + " = " + t.value(s, v) + "\n")
	}
	return b.String()
}
