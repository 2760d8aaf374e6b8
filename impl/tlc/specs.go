package tlc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	tla "kvfence/TLA"
)

// tableFile is written from the manifest, for people.
const tableFile = "configurations.md"

// DefaultDir is where the specifications are looked for, from the folder in which the program was started.
const DefaultDir = "TLA"

// Specs is the specifications, wherever they lie, and their manifest.
type Specs struct {
	*Manifest
	Files fs.FS
	Dir   string // "": those that the program was built with, which cannot be written
}

var (
	// ErrNoSpecs says that a folder has no specifications.
	ErrNoSpecs = errors.New("no specifications")
	// ErrBuiltIn says that the specifications of the program itself were to be changed.
	ErrBuiltIn = errors.New("the specifications are those that the program was built with; name the folder to write with --dir")
)

// Open reads the specifications in dir. With "" it takes DefaultDir if that has a manifest, else those of the program.
func Open(dir string) (*Specs, error) {
	s := &Specs{Dir: dir}
	if dir == "" {
		if _, err := os.Stat(filepath.Join(DefaultDir, manifestFile)); err == nil {
			s.Dir = DefaultDir
		}
	}
	s.Files = fs.FS(tla.Files)
	if s.Dir != "" {
		s.Files = os.DirFS(s.Dir)
	}
	var err error
	s.Manifest, err = readManifest(s.Files)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s: it has no %s; leave --dir out for those that the program was built with", ErrNoSpecs, s.Dir, manifestFile)
	}
	return s, err
}

// Where says where the specifications lie.
func (s *Specs) Where() string {
	if s.Dir == "" {
		return "the program itself"
	}
	return s.Dir
}

func configFile(c *Configuration) string { return "cfg/" + c.Name + ".cfg" }

// compareFile says whether the committed .cfg file, which people use with java alone, is the one that was run.
func (s *Specs) compareFile(c *Configuration, text string) []string {
	raw, err := fs.ReadFile(s.Files, configFile(c))
	if err != nil || string(raw) != text {
		return []string{configFile(c) + " is not what the manifest says; run kvfence spec check --write"}
	}
	return nil
}

// Save rewrites the manifest, all .cfg files and the table, and removes .cfg files that no configuration has.
func (s *Specs) Save() error {
	if s.Dir == "" {
		return ErrBuiltIn
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s.Manifest); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.Dir, manifestFile), b.Bytes(), 0o644); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(s.Dir, "cfg"), 0o755); err != nil {
		return err
	}
	var files []string
	for i := range s.Configurations {
		c := &s.Configurations[i]
		text, err := s.ConfigText(c)
		if err != nil {
			return err
		}
		file := filepath.Join(s.Dir, filepath.FromSlash(configFile(c)))
		files = append(files, file)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(s.Dir, tableFile), []byte(s.Table()), 0o644); err != nil {
		return err
	}
	there, err := filepath.Glob(filepath.Join(s.Dir, "cfg", "*.cfg"))
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

// Table lists all configurations with what is expected of them.
func (m *Manifest) Table() string {
	var b strings.Builder
	b.WriteString("# Configurations\n\nWritten by `kvfence spec check --write` from `manifest.json`; do not edit.\n\n")
	b.WriteString("| configuration | what it is | checked | exit | outcome |\n| --- | --- | --- | --- | --- |\n")
	for i := range m.Configurations {
		c := &m.Configurations[i]
		about := c.About
		if c.Long {
			about += " (long)"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d | %s |\n", c.Name, about, strings.Join(append(slices.Clone(c.Check), c.Steps...), ", "), c.Expect.Exit, c.expected())
	}
	return b.String()
}

// expected is c's expectation in words.
func (c *Configuration) expected() string {
	e := c.Expect
	switch {
	case e.Violated != "":
		return fmt.Sprintf("%s broken, %d states long", e.Violated, e.Trace)
	case c.Simulation():
		num, depth, _ := c.runs()
		return fmt.Sprintf("nothing in random runs (%s, depth %d)", num, depth)
	}
	return fmt.Sprintf("%d states, depth %d", e.Distinct, e.Depth)
}

// List is one line a configuration: name, expectation, what it is.
func (m *Manifest) List() string {
	var b strings.Builder
	for i := range m.Configurations {
		c := &m.Configurations[i]
		long := ""
		if c.Long {
			long = " (long)"
		}
		fmt.Fprintf(&b, "%-26s %-46s %s%s\n", c.Name, c.expected(), c.About, long)
	}
	return b.String()
}

// compareTable says whether the committed table is the manifest's.
func (s *Specs) compareTable() error {
	raw, err := fs.ReadFile(s.Files, tableFile)
	if err != nil || string(raw) != s.Table() {
		return fmt.Errorf("%w: %s is not what the manifest says; run kvfence spec check --write", ErrDiffers, tableFile)
	}
	return nil
}
