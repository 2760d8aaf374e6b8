package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// longPath keeps what the parts of make test-long came to the last time; docs/checked.md shows it.
const longPath = "docs/long.json"

// longRun is the last run of one part of make test-long.
type longRun struct {
	Part    string   `json:"part"`
	Commit  string   `json:"commit"` // with a + where the tree was not clean
	Date    string   `json:"date"`   // UTC
	Machine string   `json:"machine"`
	Seconds float64  `json:"seconds"`
	Passed  int      `json:"passed"`
	Failed  int      `json:"failed"`
	Skipped int      `json:"skipped"`
	Figures []string `json:"figures,omitempty"` // the closing lines of its commands
}

// readLong is the record under root; none is an empty one.
func readLong(root string) (runs []longRun, err error) {
	b, err := os.ReadFile(filepath.Join(root, longPath))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &runs); err != nil {
		return nil, fmt.Errorf("%s: %w", longPath, err)
	}
	return runs, nil
}

// recordLong puts a part's result in place of its last one. The order is that of the set.
func recordLong(root string, r result) error {
	runs, err := readLong(root)
	if err != nil {
		return err
	}
	runs = slices.DeleteFunc(runs, func(x longRun) bool { return x.Part == r.part })
	runs = append(runs, longRun{Part: r.part, Commit: commitOf(root), Date: time.Now().UTC().Format(time.DateOnly),
		Machine: fmt.Sprintf("%d cores, %s, %s", runtime.NumCPU(), runtime.GOARCH, runtime.Version()), Seconds: float64(int(r.seconds*10)) / 10,
		Passed: r.passed, Failed: len(r.failures), Skipped: len(r.skips), Figures: r.figures})
	place := func(x longRun) int {
		return slices.IndexFunc(partsOf("long"), func(p part) bool { return p.name == x.Part })
	}
	slices.SortStableFunc(runs, func(a, b longRun) int { return place(a) - place(b) })
	b, err := json.MarshalIndent(runs, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, longPath), append(b, '\n'), 0o644)
}

// commitOf names the commit under root, with a + where files differ from it.
func commitOf(root string) string {
	git := func(args ...string) string {
		c := exec.Command("git", args...)
		c.Dir = root
		out, err := c.Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	at := git("rev-parse", "--short", "HEAD")
	if git("status", "--porcelain", "--untracked-files=no", "--", ":!"+longPath) != "" {
		at += "+"
	}
	return at
}

// closing is a writer that keeps the last line with something in it.
type closing struct{ line, part []byte }

func (c *closing) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			c.part = append(c.part, b...)
			break
		}
		c.part = append(c.part, b[:end]...)
		if len(bytes.TrimSpace(c.part)) > 0 {
			c.line = append(c.line[:0], c.part...)
		}
		c.part, b = c.part[:0], b[end+1:]
	}
	return n, nil
}

// String is that line; an unfinished one counts.
func (c *closing) String() string {
	if len(bytes.TrimSpace(c.part)) > 0 {
		return strings.TrimSpace(string(c.part))
	}
	return strings.TrimSpace(string(c.line))
}
