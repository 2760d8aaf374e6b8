// Package emulation runs the kernels on the CPU: it compiles their sources with the host's C++ compiler (src/) and drives the program over a
// pipe. For tests and for the fake driver only; it says nothing about speed. It finds wrong results, accesses outside of registered memory,
// missing fences and barriers under random schedules; it knows no caches, no registers and no real memory model of a device. Called by
// tests of kernels and by impl/device/cuda/driver/fake. Read next: src/machine.h, machine.go.
package emulation

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"kvfence/kernels"
)

// ErrNoCompiler says that this machine has no C++ compiler.
var ErrNoCompiler = errors.New("no C++ compiler (g++ or clang++)")

// Source is what to compile: warps of Warp lanes, 32 or 64, and files (by their path below kernels/) that stand in for the repository's, for
// the translation unit Unit only unless that is empty.
type Source struct {
	Warp  int
	Files map[string][]byte
	Unit  string
}

func (s Source) read(name string) ([]byte, error) {
	if b, ok := s.Files[name]; ok {
		return b, nil
	}
	return fs.ReadFile(kernels.Sources, name)
}

// units are the translation units; program and library differ in main.cc only.
func units(program bool) []string {
	out := []string{"emulation/src/memory.cc", "emulation/src/schedule.cc", "emulation/src/kernels.cc"}
	for _, n := range kernels.Names() {
		out = append(out, kernels.SourceOf(n))
	}
	if program {
		out = append(out, "emulation/src/main.cc", "emulation/src/abi_table.cc")
	}
	return out
}

// Program compiles s and returns the path of the program that Start runs. What was compiled before is taken from build/ of the repository.
func Program(s Source) (string, error) { return s.link("emulation", true) }

// Library compiles s to a shared library with the interface of src/emulate.h and returns its path.
func Library(s Source) (string, error) { return s.link("libkvfemulation.so", false, "-shared") }

func (s Source) link(name string, program bool, flags ...string) (string, error) {
	cxx, err := compiler()
	if err != nil {
		return "", err
	}
	dir, err := cache()
	if err != nil {
		return "", err
	}
	var g errgroup.Group
	g.SetLimit(2)
	all := units(program)
	objects := make([]string, len(all))
	for i, u := range all {
		g.Go(func() (err error) {
			objects[i], err = s.object(cxx, dir, u)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join(append(slices.Clone(objects), name), "\n")))
	out := filepath.Join(dir, hex.EncodeToString(sum[:8])+"-"+name)
	return out, once(out, func(to string) error {
		return run(exec.Command(cxx, append(append(flags, "-o", to), objects...)...))
	})
}

// object compiles one unit, unless the same text was compiled before.
func (s Source) object(cxx, dir, unit string) (string, error) {
	if s.Unit != "" && unit != s.Unit {
		s.Files = nil
	}
	files := map[string][]byte{}
	if err := s.closure(unit, files); err != nil {
		return "", err
	}
	flags := []string{"-std=c++17", "-O1", "-fPIC", "-Wall", "-Wextra", "-DKVF_EMULATION", fmt.Sprintf("-DKVF_WARP=%d", s.Warp)}
	h := sha256.New()
	fmt.Fprintln(h, cxx, flags)
	names := []string{}
	for n := range files {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		fmt.Fprintln(h, n, len(files[n]))
		h.Write(files[n])
	}
	key := hex.EncodeToString(h.Sum(nil)[:8])
	out := filepath.Join(dir, key+".o")
	return out, once(out, func(to string) error {
		tree, err := os.MkdirTemp("", "kvfence-emulation-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tree)
		for n, b := range files {
			p := filepath.Join(tree, filepath.FromSlash(n))
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(p, b, 0o644); err != nil {
				return err
			}
		}
		return run(exec.Command(cxx, append(flags, "-x", "c++", "-c", filepath.Join(tree, filepath.FromSlash(unit)), "-o", to)...))
	})
}

// closure adds a file and what it includes of ours.
func (s Source) closure(name string, files map[string][]byte) error {
	if _, ok := files[name]; ok {
		return nil
	}
	b, err := s.read(name)
	if err != nil {
		return err
	}
	files[name] = b
	for _, m := range includes().FindAllSubmatch(b, -1) {
		inner := path.Join(path.Dir(name), string(m[1]))
		if _, err := s.read(inner); errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(inner, "compat_") {
			continue
		}
		if err := s.closure(inner, files); err != nil {
			return err
		}
	}
	return nil
}

func includes() *regexp.Regexp { return regexp.MustCompile(`(?m)^#include "([^"]+)"`) }

func compiler() (string, error) {
	for _, n := range []string{"g++", "clang++", "c++"} {
		if p, err := exec.LookPath(n); err == nil {
			return p, nil
		}
	}
	return "", ErrNoCompiler
}

// cache is build/kernels/emulation of the repository, or a folder for all users' own where it cannot be written.
func cache() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			dir = filepath.Join(d, "build", "kernels", "emulation")
			break
		}
		if d == filepath.Dir(d) {
			dir = filepath.Join(os.TempDir(), fmt.Sprintf("kvfence-emulation-%d", os.Getuid()))
			break
		}
	}
	return dir, os.MkdirAll(dir, 0o700)
}

// once makes a file unless it is there. Others may do the same at the same time: each makes its own and the last one stays.
func once(out string, make func(to string) error) error {
	if _, err := os.Stat(out); err == nil {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(out), "new-*")
	if err != nil {
		return err
	}
	f.Close()
	defer os.Remove(f.Name())
	if err := make(f.Name()); err != nil {
		return err
	}
	if err := os.Chmod(f.Name(), 0o755); err != nil {
		return err
	}
	return os.Rename(f.Name(), out)
}

func run(c *exec.Cmd) error {
	var text bytes.Buffer
	c.Stdout, c.Stderr = &text, &text
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(c.Path), err, text.String())
	}
	return nil
}
