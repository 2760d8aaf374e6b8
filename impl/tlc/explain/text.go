package explain

import (
	"fmt"
	"slices"
	"strings"
)

// Columns of the text form.
const (
	laneWidth = 10
	laneStart = 8
)

// Text is the diagram as lines of text: participants as columns, each step as a row with its arrows, its action and what changed.
func (d *Diagram) Text() string {
	var b strings.Builder
	if d.title != "" {
		b.WriteString(d.title + "\n\n")
	}
	if len(d.lanes) > 0 {
		b.WriteString(d.header())
	}
	for i := range d.rows {
		r := &d.rows[i]
		fmt.Fprintf(&b, "%s  %s\n", d.lines(r), r.action)
		if r.says != "" {
			fmt.Fprintf(&b, "%s    %s\n", d.lines(nil), r.says)
		}
		for _, t := range r.told {
			fmt.Fprintf(&b, "%s    - %s\n", d.lines(nil), t)
		}
	}
	b.WriteString("\n")
	if len(d.end) > 0 {
		b.WriteString("At the end:\n")
		for _, e := range d.end {
			b.WriteString("  - " + e + "\n")
		}
		b.WriteString("\n")
	}
	for _, l := range d.last {
		b.WriteString(l + "\n")
	}
	return b.String()
}

// header is the names of the participants, in two lines.
func (d *Diagram) header() string {
	up, down := []byte(strings.Repeat(" ", laneStart+len(d.lanes)*laneWidth)), []byte(strings.Repeat(" ", laneStart+len(d.lanes)*laneWidth))
	for i, name := range d.lanes {
		first, second, _ := strings.Cut(name, " ")
		first, second = first[:min(len(first), laneWidth-1)], second[:min(len(second), laneWidth-1)]
		copy(up[column(i)-len(first)/2:], first)
		copy(down[column(i)-len(second)/2:], second)
	}
	text := strings.TrimRight(string(up), " ") + "\n"
	if second := strings.TrimRight(string(down), " "); second != "" {
		text += second + "\n"
	}
	return text
}

func column(lane int) int { return laneStart + lane*laneWidth }

// lines is the lines of life, with what happens in r over them.
func (d *Diagram) lines(r *row) string {
	cells := []byte(strings.Repeat(" ", laneStart+max(0, len(d.lanes)-1)*laneWidth+1))
	for i := range d.lanes {
		cells[column(i)] = '|'
	}
	if r == nil {
		return string(cells)
	}
	copy(cells, fmt.Sprintf("%4d", r.number))
	arrows := slices.Clone(r.arrows) // the longest first, so that every head is seen
	slices.SortStableFunc(arrows, func(x, y arrow) int { return y.length() - x.length() })
	for _, a := range arrows {
		drawArrow(cells, a)
	}
	for _, i := range r.at {
		cells[column(i)] = '*'
		if r.crash {
			cells[column(i)] = 'X'
		}
	}
	return string(cells)
}

func (a arrow) length() int { return max(a.from-a.to, a.to-a.from) }

// drawArrow draws between two columns: dashed for what is only sent.
func drawArrow(cells []byte, a arrow) {
	from, to, step, head := column(a.from), column(a.to), 1, byte('>')
	if to < from {
		step, head = -1, '<'
	}
	for x := from + step; x != to; x += step {
		if !a.dashed || (x-from)%2 != 0 {
			cells[x] = '-'
		} else if cells[x] != '|' {
			cells[x] = ' '
		}
	}
	cells[to-step] = head
}
