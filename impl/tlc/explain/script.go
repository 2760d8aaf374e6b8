package explain

import (
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A script is a specification that takes the protocol's own actions in a fixed order, as Incident.tla does. Its variable now says what
// has just happened, and step is its place.
const (
	scriptVariable = "now"
	stepVariable   = "step"
)

var (
	placeOf = regexp.MustCompile(`line (\d+), col (\d+) to line (\d+), col (\d+) of module (\w+)`)
	called  = regexp.MustCompile(`\b([A-Z]\w*)\(([^()]*)\)`)
)

// inScript reads at the place of the specification that TLC names which action of the protocol is taken there: as it is written, and what
// is known of it; or nothing.
func (b *builder) inScript(where string) (string, *action) {
	f := placeOf.FindStringSubmatch(where)
	if f == nil || b.modules == nil {
		return "", nil
	}
	raw, err := fs.ReadFile(b.modules, f[5]+".tla")
	if err != nil {
		return "", nil
	}
	calls := called.FindAllStringSubmatch(cut(string(raw), number(f[1]), number(f[2]), number(f[3]), number(f[4])), -1)
	for _, c := range slices.Backward(calls) {
		if a := b.actionOf(c[1]); a.from != nowhere {
			return c[0], a
		}
	}
	return "", nil
}

// cut is the text from one line and column to another, which count from 1; "" where there is no such place.
func cut(text string, line1, col1, line2, col2 int) string {
	lines := strings.Split(text, "\n")
	if line1 < 1 || line2 > len(lines) || line1 > line2 || col1 < 1 || col2 > len(lines[line2-1]) || col1 > len(lines[line1-1]) {
		return ""
	}
	lines = lines[line1-1 : line2]
	lines[len(lines)-1] = lines[len(lines)-1][:col2]
	if len(lines) == 1 && col1 > col2 {
		return ""
	}
	lines[0] = lines[0][col1-1:]
	return strings.Join(lines, "\n")
}

func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return n
}

// whereChanged is the lanes at which variables changed, for an action of which nothing is known.
func (b *builder) whereChanged(diff []change) (lanes []int) {
	for _, c := range diff {
		x := b.variableOf(c.variable)
		if x == nil || x.quiet {
			continue
		}
		var ranks []string
		for i, k := range c.at {
			if i < len(x.keys) && x.keys[i] == 'k' {
				ranks = append(ranks, k.String())
			}
		}
		for _, l := range b.lanesOf(x.place, ranks) {
			if !slices.Contains(lanes, l) {
				lanes = append(lanes, l)
			}
		}
	}
	slices.Sort(lanes)
	return lanes
}
