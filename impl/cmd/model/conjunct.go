package main

import (
	"fmt"
	"slices"
	"strings"
)

// dropConjunct drops in the TLA+ text what the pin drops in the model: a guard becomes TRUE, the variables of an update stay.
// It looks at the modules that root extends, and wants the conjunct once.
func dropConjunct(files map[string]string, root string, p pin) error {
	want, with := p.Guard, "TRUE"
	if p.Guard == "" {
		want, with = p.Update, "UNCHANGED <<"+strings.Join(p.variables(), ", ")+">>"
	}
	done := 0
	for _, name := range extended(files, root) {
		lines := strings.Split(files[name], "\n")
		for i, line := range lines {
			if defines(line, p.Action) {
				done += replaceConjunct(lines, i+1, want, with)
			}
		}
		files[name] = strings.Join(lines, "\n")
	}
	if done != 1 {
		return fmt.Errorf("%w: %s: the TLA+ text of %s has the conjunct %q %d times", errPins, p.Name, p.Action, want, done)
	}
	return nil
}

// extended is the files of a module and of all that it extends, as far as they are there.
func extended(files map[string]string, module string) []string {
	out := []string{module + ".tla"}
	for i := 0; i < len(out); i++ {
		for line := range strings.Lines(files[out[i]]) {
			list, ok := strings.CutPrefix(line, "EXTENDS ")
			if !ok {
				continue
			}
			for name := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' }) {
				if _, there := files[name+".tla"]; there && !slices.Contains(out, name+".tla") {
					out = append(out, name+".tla")
				}
			}
		}
	}
	return out
}

// defines says whether a line begins the definition of an action.
func defines(line, action string) bool {
	rest, ok := strings.CutPrefix(line, action)
	return ok && (strings.HasPrefix(rest, "(") || strings.HasPrefix(rest, " ==")) && strings.Contains(rest, "==")
}

// replaceConjunct looks through the conjuncts of a definition whose body begins at a line, and says how many it replaced.
func replaceConjunct(lines []string, at int, want, with string) (done int) {
	for at < len(lines) && strings.HasPrefix(lines[at], "  ") {
		end := at + 1
		for end < len(lines) && strings.HasPrefix(lines[end], "   ") {
			end++
		}
		if text, ok := strings.CutPrefix(squeezed(lines[at:end]), `/\ `); ok && text == want {
			lines[at] = `  /\ ` + with
			for i := at + 1; i < end; i++ {
				lines[i] = `     \* dropped`
			}
			done++
		}
		at = end
	}
	return done
}

// squeezed is text without comments and with single blanks.
func squeezed(lines []string) string {
	var all []string
	for _, l := range lines {
		code, _, _ := strings.Cut(l, `\*`)
		all = append(all, strings.Fields(code)...)
	}
	return strings.Join(all, " ")
}
