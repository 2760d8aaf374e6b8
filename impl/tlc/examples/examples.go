// Package examples keeps docs/counterexamples: for each guard that a configuration drops, what TLC finds without it, as a page with a
// sequence diagram, and an index. It compares those pages with what TLC finds now, and, without running TLC, with the manifest. It does
// not draw (impl/tlc/explain) nor run (impl/tlc). kvfence spec trace --all-guards writes, kvfence spec check --counterexamples and the
// tests compare. Read next: guards.go.
package examples

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// digest stands for the settings of c: its .cfg file without the comment.
func digest(m *tlc.Manifest, c *tlc.Configuration) (string, error) {
	text, err := m.ConfigText(c)
	if err != nil {
		return "", err
	}
	_, text, _ = strings.Cut(text, "\n")
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8]), nil
}

// head is the part of a page that the manifest alone decides.
func head(m *tlc.Manifest, c *tlc.Configuration) (string, error) {
	hash, err := digest(m, c)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nWritten by `kvfence spec trace --all-guards`; do not edit.\n\n", c.Name)
	if g := guardOf(c); g != "" {
		fmt.Fprintf(&b, "Without the guard: **%s**.\n\n", g)
	}
	fmt.Fprintf(&b, "%s.\n\n", c.About)
	fmt.Fprintf(&b, "| | |\n| --- | --- |\n| broken | `%s` |\n", c.Expect.Violated)
	if says := explain.Meaning(c.Expect.Violated); says != "" {
		fmt.Fprintf(&b, "| which says | %s |\n", says)
	}
	fmt.Fprintf(&b, "| states | %d |\n| configuration | `TLA/cfg/%s.cfg` of module %s, settings %s |\n", c.Expect.Trace, c.Name, m.Modules[c.Module].Model, hash)
	fmt.Fprintf(&b, "| turned off | %s |\n", orNothing(c.Off(m), "nothing"))
	fmt.Fprintf(&b, "| see it again | `kvfence spec trace %s` |\n\n![The sequence](%s.svg)\n\n", c.Name, c.Name)
	return b.String(), nil
}

func orNothing(list []string, nothing string) string {
	if len(list) == 0 {
		return nothing
	}
	return "`" + strings.Join(list, "`, `") + "`"
}

// Page is the page of c and its picture, of what TLC printed for it.
func Page(s *tlc.Specs, c *tlc.Configuration, output string) (page, picture string, err error) {
	trace, err := explain.Parse(strings.NewReader(output))
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", c.Name, err)
	}
	top, err := head(s.Manifest, c)
	if err != nil {
		return "", "", err
	}
	text := explain.Draw(trace, "", s.Files).Text()
	return top + "```text\n" + text + "```\n", explain.Draw(trace, c.Name+": "+c.About, s.Files).SVG(), nil
}

// Compare lists how the pages of c in dir differ from what TLC printed now.
func Compare(dir string, s *tlc.Specs, c *tlc.Configuration, output string) []string {
	if !Kept(c) {
		return nil
	}
	page, picture, err := Page(s, c, output)
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
		top, err := head(m, c)
		if err != nil {
			return nil, err
		}
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

// ErrOtherFiles says that a folder has files that are no pages of counterexamples, so that it is not written into.
var ErrOtherFiles = errors.New("the folder has other files")

// Write runs every configuration whose counterexample is kept, jobs at a time, and writes the pages and the index into dir. Pages of
// configurations that are gone are removed. The outcomes must be the manifest's, else nothing is removed and the error says so.
func Write(ctx context.Context, s *tlc.Specs, o tlc.Options, dir string, out io.Writer) error {
	began := time.Now()
	if err := prepare(dir); err != nil {
		return err
	}
	o.Names = nil
	n := 0
	for i := range s.Configurations {
		if c := &s.Configurations[i]; Kept(c) {
			o.Names = append(o.Names, c.Name)
			n++
		}
	}
	o.Examine = func(c *tlc.Configuration, got tlc.Outcome) []string {
		page, picture, err := Page(s, c, got.Output)
		if err == nil {
			err = errors.Join(os.WriteFile(filepath.Join(dir, c.Name+".md"), []byte(page), 0o644), os.WriteFile(filepath.Join(dir, c.Name+".svg"), []byte(picture), 0o644))
		}
		if err != nil {
			return []string{err.Error()}
		}
		return nil
	}
	if err := s.Check(ctx, o, out); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, IndexFile), []byte(Index(s.Manifest)), 0o644); err != nil {
		return err
	}
	if err := prune(dir, o.Names); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d counterexamples in %s, %.0f s\n", n, dir, time.Since(began).Seconds())
	return nil
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
