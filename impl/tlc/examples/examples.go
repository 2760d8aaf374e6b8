// Package examples keeps docs/counterexamples: for each guard that a configuration drops, what TLC finds without it, as a page with a
// sequence diagram, and an index. It compares those pages with what TLC finds now, and, without running TLC, with the manifest. It does
// not draw (impl/tlc/explain) nor run (impl/tlc). kvfence spec trace --all-guards writes, kvfence spec check --counterexamples and the
// tests compare. Read next: guards.go.
package examples

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kvfence/impl/tlc"
	"kvfence/impl/tlc/explain"
)

// IndexFile is the index of the folder.
const IndexFile = "README.md"

// incident is the configuration that runs the disclosed fault step by step.
const incident = "Incident"

// Kept says whether a counterexample of c is kept: c drops a guard, or it is the incident step by step.
func Kept(c *tlc.Configuration) bool { return c.Guard() || c.Name == incident }

// settings is what c has in place of its module's own constants, in order.
func settings(c *tlc.Configuration) string {
	var out []string
	for k, v := range c.Constants {
		out = append(out, "`"+k+" = "+v+"`")
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// head is the part of a page that the configuration and the outcome decide: the property that is broken, and how many states it takes.
func head(m *tlc.Manifest, c *tlc.Configuration, broken string, states int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nWritten by `kvfence spec trace --all-guards`; do not edit.\n\n", c.Name)
	if g := guardOf(c); g != "" {
		fmt.Fprintf(&b, "Without the guard: **%s**.\n\n", g)
	}
	fmt.Fprintf(&b, "%s.\n\n", c.About)
	fmt.Fprintf(&b, "| | |\n| --- | --- |\n| broken | `%s` |\n", broken)
	if says := explain.Meaning(broken); says != "" {
		fmt.Fprintf(&b, "| which says | %s |\n", says)
	}
	fmt.Fprintf(&b, "| states | %d |\n| configuration | `TLA/cfg/%s.cfg` of module %s |\n", states, c.Name, m.Modules[c.Module].Model)
	fmt.Fprintf(&b, "| turned off | %s |\n| all settings | %s |\n", orNothing(c.Off(m), "nothing"), settings(c))
	fmt.Fprintf(&b, "| see it again | `kvfence spec trace %s` |\n\n![The sequence](%s.svg)\n\n", c.Name, c.Name)
	return b.String()
}

func orNothing(list []string, nothing string) string {
	if len(list) == 0 {
		return nothing
	}
	return "`" + strings.Join(list, "`, `") + "`"
}

// Page is the page of c and its picture, of what TLC found for it.
func Page(s *tlc.Specs, c *tlc.Configuration, got tlc.Outcome) (page, picture string, err error) {
	trace, err := explain.Parse(strings.NewReader(got.Output))
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", c.Name, err)
	}
	top := head(s.Manifest, c, got.Violated, got.Trace)
	text := explain.Draw(trace, "", s.Files).Text()
	return top + "```text\n" + text + "```\n", explain.Draw(trace, c.Name+": "+c.About, s.Files).SVG(), nil
}

// Compare lists how the pages of c in dir differ from what TLC found now.
func Compare(dir string, s *tlc.Specs, c *tlc.Configuration, got tlc.Outcome) []string {
	if !Kept(c) {
		return nil
	}
	page, picture, err := Page(s, c, got)
	if err != nil {
		return []string{err.Error()}
	}
	var diff []string
	for _, f := range [...]struct{ name, text string }{{c.Name + ".md", page}, {c.Name + ".svg", picture}} {
		if raw, err := os.ReadFile(filepath.Join(dir, f.name)); err != nil || string(raw) != f.text {
			diff = append(diff, filepath.Join(dir, f.name)+" is not what TLC finds now; run kvfence spec trace --all-guards")
		}
	}
	return diff
}

// Stale lists what in dir the manifest does not say, without running TLC: pages with another property, length or settings, pages that
// are not there, files too many, an index that differs.
func Stale(dir string, m *tlc.Manifest) (bad []string, err error) {
	files := []string{IndexFile}
	for i := range m.Configurations {
		c := &m.Configurations[i]
		if !Kept(c) {
			continue
		}
		top := head(m, c, c.Expect.Violated, c.Expect.Trace)
		page, picture := c.Name+".md", c.Name+".svg"
		files = append(files, page, picture)
		if raw, err := os.ReadFile(filepath.Join(dir, page)); err != nil || !strings.HasPrefix(string(raw), top) {
			bad = append(bad, page+" is not of the manifest's "+c.Name)
		}
		if _, err := os.Stat(filepath.Join(dir, picture)); err != nil {
			bad = append(bad, picture+" is not there")
		}
	}
	if raw, err := os.ReadFile(filepath.Join(dir, IndexFile)); err != nil || string(raw) != Index(m) {
		bad = append(bad, IndexFile+" is not the manifest's")
	}
	there, err := os.ReadDir(dir)
	for _, f := range there {
		if !slices.Contains(files, f.Name()) {
			bad = append(bad, f.Name()+" is of no configuration")
		}
	}
	return bad, err
}

var (
	// ErrOtherFiles says that a folder has files that are no pages of counterexamples, so that it is not written into.
	ErrOtherFiles = errors.New("the folder has other files")
	// ErrNotKept says that a configuration drops no guard, so that no page of it is kept.
	ErrNotKept = errors.New("no page is kept of this configuration")
)

// Write runs the configurations that o names, or every one whose counterexample is kept, o.Jobs at a time, and writes their pages and the
// index into dir. Pages of configurations that are gone are removed. Where an outcome is not the manifest's, its page is written all the
// same, and the error is tlc.ErrDiffers. Other errors: ErrOtherFiles, ErrNotKept.
func Write(ctx context.Context, s *tlc.Specs, o tlc.Options, dir string, out io.Writer) error {
	began := time.Now()
	if err := prepare(dir); err != nil {
		return err
	}
	var kept []string
	for i := range s.Configurations {
		if c := &s.Configurations[i]; Kept(c) {
			kept = append(kept, c.Name)
		}
	}
	for _, name := range o.Names {
		if !slices.Contains(kept, name) {
			return fmt.Errorf("%w: %s", ErrNotKept, name)
		}
	}
	if len(o.Names) == 0 {
		o.Names = kept
	}
	o.Examine = func(c *tlc.Configuration, got tlc.Outcome) []string {
		page, picture, err := Page(s, c, got)
		if err == nil {
			err = errors.Join(os.WriteFile(filepath.Join(dir, c.Name+".md"), []byte(page), 0o644), os.WriteFile(filepath.Join(dir, c.Name+".svg"), []byte(picture), 0o644))
		}
		if err != nil {
			return []string{err.Error()}
		}
		return nil
	}
	err := s.Check(ctx, o, out)
	if err != nil && !errors.Is(err, tlc.ErrDiffers) {
		return err
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, IndexFile), []byte(Index(s.Manifest)), 0o644), prune(dir, kept)); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d counterexamples written to %s, %d are kept, %.0f s\n", len(o.Names), dir, len(kept), time.Since(began).Seconds())
	return err
}

// prepare makes the folder, and refuses one that holds something else.
func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	there, err := os.ReadDir(dir)
	for _, f := range there {
		if ext := filepath.Ext(f.Name()); ext != ".md" && ext != ".svg" || f.IsDir() {
			return fmt.Errorf("%w: %s has %s; name a folder for counterexamples alone", ErrOtherFiles, dir, f.Name())
		}
	}
	return err
}

// prune removes the pages of configurations that are not named.
func prune(dir string, names []string) error {
	there, err := os.ReadDir(dir)
	for _, f := range there {
		name := strings.TrimSuffix(f.Name(), filepath.Ext(f.Name()))
		if f.Name() != IndexFile && (strings.HasPrefix(name, "off-") || name == incident) && !slices.Contains(names, name) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, f.Name())))
		}
	}
	return err
}

// Index is the folder's README: the guards of the design page with their counterexamples, then the others.
func Index(m *tlc.Manifest) string {
	var b strings.Builder
	b.WriteString("# Counterexamples\n\nWritten by `kvfence spec trace --all-guards`; do not edit. For each guard of the design page: what the model checker finds when it is\n" +
		"dropped, the shortest one, step by step. Prevention guards are dropped with detection off, detection guards with a planted fault; the column\n" +
		"*turned off* says all that is off. How to read a page: a column for each participant, a row for each step; `*- - >` is a message that goes out,\n" +
		"`-->*` one that arrives, `X` a crash or a planted fault. Behind it the action with what is known of its parameters: t transfer, l lease, k prefill\n" +
		"rank and its link, p page, c channel, q source page, i incarnation, g generation, e epoch.\n")
	section := func(title string, guards []guard) {
		fmt.Fprintf(&b, "\n## %s\n\n| guard | without it | broken | states | turned off |\n| --- | --- | --- | --- | --- |\n", title)
		for _, g := range guards {
			says := g.says
			for i := range m.Configurations {
				if c := &m.Configurations[i]; Kept(c) && g.has(c) {
					b.WriteString(indexRow(m, c, says))
					says = ""
				}
			}
		}
	}
	if c, err := m.Find(incident); err == nil {
		fmt.Fprintf(&b, "\nThe disclosed incident, step by step: [%s](%s.md).\n", c.About, c.Name)
	}
	section("Prevention", preventionGuards())
	section("Detection", detectionGuards())
	b.WriteString("\n## Guards of the specification beside those of the page\n\n| guard | without it | broken | states | turned off |\n| --- | --- | --- | --- | --- |\n")
	for i := range m.Configurations {
		if c := &m.Configurations[i]; c.Guard() && guardOf(c) == "" {
			b.WriteString(indexRow(m, c, ""))
		}
	}
	return b.String()
}

func indexRow(m *tlc.Manifest, c *tlc.Configuration, guard string) string {
	return fmt.Sprintf("| %s | [%s](%s.md) | %s | %d | %s |\n", guard, c.About, c.Name, c.Expect.Violated, c.Expect.Trace, orNothing(c.Off(m), ""))
}
