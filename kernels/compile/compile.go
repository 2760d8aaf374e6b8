// Package compile makes the kernels' images: PTX and cubins by NVIDIA's compiler, code objects by AMD's, and says what registers, spills and
// shared memory each kernel takes on each architecture. It judges these figures against the record (figures.json). It runs nothing that it
// compiled and says nothing about results or speed. Called by impl/cmd/kernels. Read next: target.go, figures.go, tools.go.
package compile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"kvfence/kernels"
)

// ErrCompile is wrapped by what a compiler refused.
var ErrCompile = errors.New("does not compile")

// Image is a kernel for one target.
type Image struct {
	Kernel string // as in kernels.Names
	Target Target
	Bytes  []byte
	Figure Figure // empty for PTX, whose registers the driver chooses
}

// Job is what to compile: files (by their name below kernels/) stand in for the repository's.
type Job struct {
	Compilers Compilers
	Cache     string // folder; what was compiled before by the same compiler from the same text is taken from it
	Files     map[string][]byte
	Kernels   []string
	Targets   []Target
}

// All compiles each kernel for each target, two at a time, in order of the lists. All refusals are returned together.
func (j Job) All(ctx context.Context) ([]Image, error) {
	tree, err := os.MkdirTemp("", "kvfence-kernels-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tree)
	sum, err := j.write(tree)
	if err != nil {
		return nil, err
	}
	images := make([]Image, len(j.Kernels)*len(j.Targets))
	refused := make([]error, len(images))
	var g errgroup.Group
	g.SetLimit(2)
	for i, k := range j.Kernels {
		for n, t := range j.Targets {
			at := i*len(j.Targets) + n
			g.Go(func() error {
				images[at], refused[at] = j.one(ctx, tree, sum, k, t)
				return nil
			})
		}
	}
	return images, errors.Join(g.Wait(), errors.Join(refused...))
}

// write lays the sources out in a folder and returns their sum. Any change of any header counts as one of all kernels.
func (j Job) write(tree string) (string, error) {
	h := sha256.New()
	entries, err := fs.ReadDir(kernels.Sources, ".")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		b, err := fs.ReadFile(kernels.Sources, e.Name())
		if other, ok := j.Files[e.Name()]; ok {
			b = other
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(tree, e.Name()), b, 0o644)
		}
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, e.Name(), len(b))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// made is what the cache keeps of a compilation.
type made struct {
	Image []byte
	Said  string
}

func (j Job) one(ctx context.Context, tree, sum, kernel string, t Target) (Image, error) {
	name, args := j.Compilers.command(t)
	if name == "" {
		return Image{}, fmt.Errorf("%w: %s for %s: no compiler", ErrCompile, kernel, t.Arch)
	}
	unit := strings.TrimPrefix(kernel, "kvf_") + ".cu"
	key := sha256.Sum256([]byte(strings.Join(append([]string{sum, unit, j.Compilers.version(t)}, args...), "\n")))
	kept := filepath.Join(j.Cache, hex.EncodeToString(key[:12])+".json")
	var m made
	if b, err := os.ReadFile(kept); err != nil || json.Unmarshal(b, &m) != nil {
		if m, err = build(ctx, tree, unit, name, args); err != nil {
			return Image{}, fmt.Errorf("%w: %s for %s: %w", ErrCompile, kernel, t.Arch, err)
		}
		if err := keep(kept, m); err != nil {
			return Image{}, err
		}
	}
	image := Image{Kernel: kernel, Target: t, Bytes: m.Image}
	if t.Kind == PTX {
		return image, nil
	}
	f, err := t.figure(kernel, m.Said)
	image.Figure = f
	return image, err
}

// build runs one compiler.
func build(ctx context.Context, tree, unit, name string, args []string) (made, error) {
	out, err := os.CreateTemp(tree, "image-*")
	if err != nil {
		return made{}, err
	}
	defer os.Remove(out.Name())
	if err := out.Close(); err != nil {
		return made{}, err
	}
	c := exec.CommandContext(ctx, name, append(append([]string{}, args...), "-o", out.Name(), unit)...)
	c.Dir = tree
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	if err := c.Run(); err != nil {
		return made{}, fmt.Errorf("%w\n%s", err, said.String())
	}
	b, err := os.ReadFile(out.Name())
	if err == nil && len(b) == 0 {
		err = errors.New("an empty image")
	}
	return made{b, said.String()}, err
}

func keep(path string, m made) error {
	b, err := json.Marshal(m)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path+".new", b, 0o644)
	}
	if err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
