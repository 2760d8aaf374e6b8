package explain

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// Measures of the SVG form, in pixels.
const (
	svgLane   = 92  // between two lines of life
	svgLeft   = 84  // of the first one
	svgLine   = 17  // height of a line of text
	svgGap    = 9   // between two rows
	svgTop    = 66  // of the first row, below the names
	svgChar   = 6.6 // width of a character, generously
	svgMargin = 20
)

// svgStyle serves bright and dark pages; nothing outside of the file is needed.
const svgStyle = `text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1f2328}.h{font-weight:600}.a{font:600 12px ui-monospace,Menlo,Consolas,monospace}` +
	`.s{fill:#57606a}.n{fill:#8c959f}.l{stroke:#d0d7de}.m{stroke:#0969da;stroke-width:1.5;fill:none}.d{stroke:#8c959f;stroke-dasharray:4 3;fill:none}.p{fill:#0969da}.c{stroke:#cf222e;stroke-width:2.5}` +
	`.r{fill:#f6f8fa}.x{fill:#ffebe9;stroke:#cf222e}.bg{fill:#ffffff}` +
	`@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9198a1}.l{stroke:#30363d}.m{stroke:#58a6ff}.p{fill:#58a6ff}.r{fill:#161b22}.x{fill:#3c1618;stroke:#f85149}.bg{fill:#0d1117}}`

// svg is the picture while it is drawn.
type svg struct {
	d    *Diagram
	b    strings.Builder
	y    []int // of each row's first line
	text int   // x of the text beside the lines of life
	wide int   // the longest text beside them, in characters
}

// SVG is the diagram as a picture that needs nothing else: a line of life for each participant, a row for each step; a message goes from
// the step that sends it to the step in which it arrives.
func (d *Diagram) SVG() string {
	p := &svg{d: d, text: svgLeft + len(d.lanes)*svgLane - svgLane/2}
	y := svgTop
	for i := range d.rows {
		p.y = append(p.y, y+svgLine)
		y += svgLine*(1+len(rowText(&d.rows[i]))) + svgGap
	}
	lifeEnd := y
	p.lifelines(lifeEnd)
	for i := range d.rows {
		p.row(i)
	}
	bottom := p.closing(lifeEnd + svgGap)
	width := max(p.text+int(float64(p.wide)*svgChar), svgMargin+int(float64(utf8.RuneCountInString(d.title))*svgChar)) + svgMargin
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t">`+"\n",
		width, bottom, width, bottom)
	title := orElse(d.title, "A counterexample")
	if len(d.last) > 0 {
		title += ": " + strings.Join(d.last, " ")
	}
	head += "<title id=\"t\">" + html.EscapeString(title) + "</title>\n<style>" + svgStyle + "</style>\n"
	head += `<defs><marker id="h" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="p" d="M0 0L8 4L0 8z"/></marker></defs>` + "\n"
	head += fmt.Sprintf(`<rect class="bg" width="%d" height="%d"/>`+"\n", width, bottom)
	return head + p.b.String() + "</svg>\n"
}

// rowText is the lines of text of a row behind its first.
func rowText(r *row) (out []string) {
	if r.says != "" {
		out = append(out, r.says)
	}
	for _, t := range r.told {
		out = append(out, "- "+t)
	}
	return out
}

func laneX(i int) int { return svgLeft + i*svgLane }

func (p *svg) printf(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

// write puts a text at a place and remembers how wide the column beside the lines becomes.
func (p *svg) write(class string, x, y int, text string) {
	p.printf(`<text class="%s" x="%d" y="%d">%s</text>`, class, x, y, html.EscapeString(text))
	if x >= p.text {
		p.wide = max(p.wide, utf8.RuneCountInString(text)+(x-p.text)/6)
	}
}

func (p *svg) lifelines(end int) {
	if p.d.title != "" {
		p.printf(`<text class="h" x="%d" y="18">%s</text>`, svgMargin, html.EscapeString(p.d.title))
	}
	for i, name := range p.d.lanes {
		first, second, _ := strings.Cut(name, " ")
		p.printf(`<text class="h" x="%d" y="40" text-anchor="middle">%s</text>`, laneX(i), html.EscapeString(first))
		if second != "" {
			p.printf(`<text class="h" x="%d" y="55" text-anchor="middle">%s</text>`, laneX(i), html.EscapeString(second))
		}
		p.printf(`<path class="l" d="M%d 60V%d"/>`, laneX(i), end)
	}
}

func (p *svg) row(i int) {
	r := &p.d.rows[i]
	y := p.y[i]
	p.printf(`<text class="n" x="%d" y="%d" text-anchor="end">%d</text>`, svgMargin+14, y, r.number)
	for _, a := range r.arrows {
		p.arrow(r, a, y-4)
	}
	for _, at := range r.at {
		if x := laneX(at); r.crash {
			p.printf(`<path class="c" d="M%d %dl10 10m0 -10l-10 10"/>`, x-5, y-9)
		} else {
			p.printf(`<circle class="p" cx="%d" cy="%d" r="4"/>`, x, y-4)
		}
	}
	p.write("a", p.text, y, r.action)
	for j, t := range rowText(r) {
		class := "t"
		if j == 0 && r.says != "" {
			class = "s"
		}
		p.write(class, p.text+12, y+svgLine*(j+1), t)
	}
}

// arrow draws one arrow. What is sent and arrives later is drawn by the row in which it arrives; what never arrives ends half-way.
func (p *svg) arrow(r *row, a arrow, y int) {
	x1, x2, y1 := laneX(a.from), laneX(a.to), y
	class, head := "m", ` marker-end="url(#h)"`
	switch {
	case a.dashed && r.received:
		return
	case a.dashed:
		x2 = x1 + (x2-x1)*6/10
		class, head = "d", ""
	case a.sent >= 0:
		y1 = p.y[a.sent] - 4
	}
	if x2 > x1 && !a.dashed {
		x2 -= 5
	} else if !a.dashed {
		x2 += 5
	}
	p.printf(`<path class="%s" d="M%d %dL%d %d"%s/>`, class, x1, y1, x2, y, head)
}

// closing writes what stands at the end and the broken property, and returns the height of the picture.
func (p *svg) closing(y int) int {
	if len(p.d.end) > 0 {
		y += svgLine
		p.printf(`<text class="h" x="%d" y="%d">At the end</text>`, svgMargin, y)
		for _, e := range p.d.end {
			y += svgLine
			p.write("t", svgMargin+12, y, "- "+e)
			p.fit(svgMargin+12, "- "+e)
		}
		y += svgGap
	}
	longest := 0
	for _, l := range p.d.last {
		longest = max(longest, utf8.RuneCountInString(l))
		p.fit(svgMargin+12, l)
	}
	p.printf(`<rect class="x" x="%d" y="%d" width="%d" height="%d" rx="6"/>`, svgMargin, y, int(float64(longest)*svgChar)+24, svgLine*len(p.d.last)+12)
	for i, l := range p.d.last {
		class := "t"
		if i == 0 {
			class = "h"
		}
		p.write(class, svgMargin+12, y+svgLine*(i+1)+2, l)
	}
	return y + svgLine*len(p.d.last) + 12 + svgMargin
}

// fit makes room for a text that begins left of the column beside the lines.
func (p *svg) fit(x int, text string) {
	p.wide = max(p.wide, utf8.RuneCountInString(text)-int(float64(p.text-x)/svgChar)+2)
}
