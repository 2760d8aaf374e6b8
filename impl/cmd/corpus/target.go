package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
)

// module is the path under which the engine keeps what it finds.
const module = "kvfence"

// target is one fuzz target.
type target struct{ dir, name, cache string }

// found are names that the engine gives; others were given by people and stay.
var found = regexp.MustCompile(`^[0-9a-f]{16}$`)

// minimise rewrites the committed inputs of a target and says how many of how many it keeps.
func (t target) minimise(ctx context.Context, dry bool) (kept, of int, err error) {
	committed := filepath.Join(t.dir, "testdata", "fuzz", t.name)
	var inputs []input
	for _, dir := range []string{committed, filepath.Join(t.cache, "fuzz", module, t.dir, t.name)} {
		inputs, err = readInputs(dir, inputs)
		if err != nil {
			return 0, 0, err
		}
	}
	tmp, err := os.MkdirTemp("", "corpus")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	bin := filepath.Join(tmp, "x.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-cover", "-covermode=set", "-coverpkg="+module+"/...", "-o", bin, "./"+t.dir)
	if out, err := build.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("build: %w: %s", err, out)
	}
	where, err := t.stage(tmp)
	if err != nil {
		return 0, 0, err
	}
	base, err := t.cover(ctx, bin, where, "^seed#")
	if err != nil {
		return 0, 0, err
	}
	for i, in := range inputs {
		file := filepath.Join(where, "testdata", "fuzz", t.name, in.name)
		if err := os.WriteFile(file, in.bytes, 0o600); err != nil {
			return 0, 0, err
		}
		if inputs[i].blocks, err = t.cover(ctx, bin, where, "^"+regexp.QuoteMeta(in.name)+"$"); err != nil {
			return 0, 0, fmt.Errorf("input %s: %w", in.name, err)
		}
		if err := os.Remove(file); err != nil {
			return 0, 0, err
		}
		if !found.MatchString(in.name) { // it stays, so that what it reaches needs no other
			for b := range inputs[i].blocks {
				base[b] = true
			}
		}
	}
	keep := fewest(base, slices.DeleteFunc(slices.Clone(inputs), func(in input) bool { return !found.MatchString(in.name) }))
	if !dry {
		err = rewrite(committed, keep)
	}
	return len(keep), len(inputs), err
}

// readInputs adds the inputs of a folder that are not known yet.
func readInputs(dir string, known []input) ([]input, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(known, func(in input) bool { return bytes.Equal(in.bytes, b) }) {
			known = append(known, input{name: nameOf(e.Name(), b), bytes: b})
		}
	}
	return known, err
}

// nameOf is the name that the engine gives to an input; what people named keeps its own.
func nameOf(name string, b []byte) string {
	if !found.MatchString(name) {
		return name
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))[:16]
}

// stage makes a folder to run a test binary in: the package's testdata but for its inputs.
func (t target) stage(tmp string) (string, error) {
	where := filepath.Join(tmp, "run")
	if err := os.MkdirAll(filepath.Join(where, "testdata", "fuzz", t.name), 0o700); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(filepath.Join(t.dir, "testdata"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, e := range entries {
		from, err := filepath.Abs(filepath.Join(t.dir, "testdata", e.Name()))
		if err != nil {
			return "", err
		}
		if e.Name() != "fuzz" {
			if err := os.Symlink(from, filepath.Join(where, "testdata", e.Name())); err != nil {
				return "", err
			}
		}
	}
	return where, nil
}

// cover runs some of a target's inputs and returns the blocks of the module that they reach.
func (t target) cover(ctx context.Context, bin, where, which string) (map[string]bool, error) {
	profile := filepath.Join(where, "profile")
	c := exec.CommandContext(ctx, bin, "-test.run=^"+t.name+"$/"+which, "-test.coverprofile="+profile)
	c.Dir = where
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	b, err := os.ReadFile(profile)
	return reached(string(b)), err
}

// rewrite leaves those of the engine's inputs in a folder that are kept.
func rewrite(dir string, keep []input) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if found.MatchString(e.Name()) && !slices.ContainsFunc(keep, func(in input) bool { return in.name == e.Name() }) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	for _, in := range keep {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, in.name), in.bytes, 0o644); err != nil {
			return err
		}
	}
	return nil
}
