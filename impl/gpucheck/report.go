package gpucheck

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Report is the page of a check.
func Report(results []Result, dry bool, at time.Time, limit time.Duration) string {
	var w strings.Builder
	card := cardOf(results)
	fmt.Fprintf(&w, "# GPU check, %s\n\n", at.Format(time.DateOnly))
	if dry {
		w.WriteString("**Dry run against a fake driver: no GPU. The figures are of an emulation on a CPU and mean nothing.**\n\n")
	}
	fmt.Fprintf(&w, "Card: %s. Limit %v.\n\n| section | seconds | checks | outcome |\n| --- | --- | --- | --- |\n", orUnknown(card), limit)
	for _, r := range results {
		fmt.Fprintf(&w, "| %s | %.1f | %d | %s |\n", r.Section, r.Seconds, r.Checks, cell(verdict(r)))
	}
	w.WriteString("\n| figure | value | goal |\n| --- | --- | --- |\n")
	for _, r := range results {
		for _, f := range r.Rows {
			fmt.Fprintf(&w, "| %s | %.4g %s | %s |\n", cell(f.Name), f.Value, f.Unit, goalOf(f, dry))
		}
	}
	w.WriteString("\n")
	for _, r := range results {
		for _, n := range r.Notes {
			fmt.Fprintf(&w, "- %s: %s.\n", r.Section, cell(n))
		}
		for _, f := range r.Failed {
			fmt.Fprintf(&w, "- %s failed: %s\n", r.Section, cell(f))
		}
	}
	w.WriteString("\nNot part of this check: nodes with pools in device memory, GPUDirect, several cards.\n")
	return w.String()
}

func verdict(r Result) string {
	switch {
	case len(r.Failed) > 0:
		return "**failed**"
	case r.Skipped != "":
		return "skipped: " + r.Skipped
	}
	return "ok"
}

func goalOf(f Row, dry bool) string {
	switch {
	case f.Goal == "":
		return ""
	case dry:
		return f.Goal + ", not judged"
	case f.Met:
		return f.Goal + ", met"
	}
	return f.Goal + ", **missed**"
}

// cell is text that does not end a table's cell.
func cell(s string) string { return strings.NewReplacer("|", "/", "\n", " ").Replace(s) }

func cardOf(results []Result) string {
	for _, r := range results {
		if r.Card != "" {
			return r.Card
		}
	}
	return ""
}

// Found reports whether a section had a card.
func Found(results []Result) bool { return cardOf(results) != "" }

func orUnknown(s string) string {
	if s == "" {
		return "none found"
	}
	return s
}

var notName = regexp.MustCompile(`[^a-z0-9]+`)

// FileName is CHIP-DATE.md.
func FileName(results []Result, at time.Time) string {
	chip, _, _ := strings.Cut(orUnknown(cardOf(results)), ",")
	return strings.Trim(notName.ReplaceAllString(strings.ToLower(chip), "-"), "-") + "-" + at.Format(time.DateOnly) + ".md"
}

// Failed reports whether a section failed. Skips and missed goals are for the reader.
func Failed(results []Result) bool {
	for _, r := range results {
		if len(r.Failed) > 0 {
			return true
		}
	}
	return len(results) == 0
}
