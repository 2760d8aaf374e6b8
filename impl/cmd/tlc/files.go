package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tableFile is written from the manifest, for people.
const tableFile = "configurations.md"

func (c *configuration) file(dir string) string { return filepath.Join(dir, "cfg", c.Name+".cfg") }

// compareFile says whether the committed .cfg file, which people use with java alone, is the one that was run.
func compareFile(dir string, c *configuration, text string) []string {
	raw, err := os.ReadFile(c.file(dir))
	if err != nil || string(raw) != text {
		return []string{c.file(dir) + " is not what the manifest says; run with -write"}
	}
	return nil
}

// save rewrites the manifest, all .cfg files and the table, and removes .cfg files that no configuration has.
func (m *manifest) save(dir string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(m); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), b.Bytes(), 0o644); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "cfg"), 0o755); err != nil {
		return err
	}
	var files []string
	for i := range m.Configurations {
		c := &m.Configurations[i]
		text, err := m.configText(c)
		if err != nil {
			return err
		}
		files = append(files, c.file(dir))
		if err := os.WriteFile(c.file(dir), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, tableFile), []byte(m.table()), 0o644); err != nil {
		return err
	}
	there, err := filepath.Glob(filepath.Join(dir, "cfg", "*.cfg"))
	if err != nil {
		return err
	}
	for _, f := range there {
		if !slices.Contains(files, f) {
			if err := os.Remove(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// table lists all configurations with what is expected of them.
func (m *manifest) table() string {
	var b strings.Builder
	b.WriteString("# Configurations\n\nWritten by `go run ./impl/cmd/tlc -write` from `manifest.json`; do not edit.\n\n")
	b.WriteString("| configuration | what it is | checked | exit | outcome |\n| --- | --- | --- | --- | --- |\n")
	for _, c := range m.Configurations {
		about := c.About
		if c.Long {
			about += " (long)"
		}
		e := c.Expect
		outcome := fmt.Sprintf("%d states, depth %d", e.Distinct, e.Depth)
		switch {
		case e.Violated != "":
			outcome = fmt.Sprintf("%s broken, %d states long", e.Violated, e.Trace)
		case c.Simulate != "":
			outcome = fmt.Sprintf("nothing in random runs (%s, depth %d)", c.Simulate, c.Depth)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d | %s |\n", c.Name, about, strings.Join(append(slices.Clone(c.Check), c.Steps...), ", "), e.Exit, outcome)
	}
	return b.String()
}

// compareTable says whether the committed table is the manifest's.
func (m *manifest) compareTable(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, tableFile))
	if err != nil || string(raw) != m.table() {
		return fmt.Errorf("%w: %s is not what the manifest says; run with -write", errDiffers, tableFile)
	}
	return nil
}
