// Package fake builds a CUDA driver library without a card: a strict one, for tests and for dry runs of the GPU check (src/fake.h says what it
// checks). What it measures is the speed of this machine's emulation and means nothing. Called by impl/cmd/gpucheck and by tests of
// impl/device/cuda. Read next: src/fake.h, control.go.
package fake

import (
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	"kvfence/impl/device/cuda/driver"
	"kvfence/kernels"
	"kvfence/kernels/emulation"
)

//go:embed src
var sources embed.FS

// Build puts the library, and the emulation of the kernels of s beside it, into dir and returns the library's path. Copies in different folders share
// nothing, not even in one process. What was compiled before, from the same text, is taken again.
func Build(dir string, s emulation.Source) (library string, err error) {
	emulated, err := emulation.Library(s)
	if err != nil {
		return "", err
	}
	compiled, err := compile(filepath.Dir(emulated))
	if err != nil {
		return "", err
	}
	library = filepath.Join(dir, "libfakecuda.so")
	for to, from := range map[string]string{library: compiled, filepath.Join(dir, "libkvfemulation.so"): emulated} {
		b, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(to, b, 0o755); err != nil {
			return "", err
		}
	}
	return library, nil
}

// compile returns the path of the library of this build's sources, in a folder that is kept.
func compile(kept string) (string, error) {
	cxx, err := exec.LookPath("g++")
	if err != nil {
		return "", emulation.ErrNoCompiler
	}
	args := []string{"-std=c++17", "-O1", "-fPIC", "-shared", "-pthread", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-fvisibility=hidden"}
	for _, v := range []struct {
		name string
		args any
	}{{"MOVE", kernels.MoveArgs{}}, {"VERIFY", kernels.VerifyArgs{}}, {"SCRUB", kernels.ScrubArgs{}}, {"PUT", kernels.PutArgs{}}} {
		args = append(args, fmt.Sprintf("-D%s_ARGS=%d", v.name, binary.Size(v.args)))
	}
	h := sha256.New()
	fmt.Fprintln(h, cxx, args)
	files, err := texts(h.Write)
	if err != nil {
		return "", err
	}
	out := filepath.Join(kept, hex.EncodeToString(h.Sum(nil)[:8])+"-libfakecuda.so")
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	tree, err := os.MkdirTemp(kept, "fake-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tree)
	fresh := filepath.Join(tree, "new.so")
	args = append(args, "-o", fresh)
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(tree, name), b, 0o644); err != nil {
			return "", err
		}
		if filepath.Ext(name) == ".cc" {
			args = append(args, filepath.Join(tree, name))
		}
	}
	if said, err := exec.Command(cxx, append(args, "-ldl")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	return out, os.Rename(fresh, out) // others may do the same at the same time: the last one stays
}

// texts are the sources by name, each written to sum in order.
func texts(sum func([]byte) (int, error)) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, from := range []fs.FS{driver.Table, sources} {
		err := fs.WalkDir(from, ".", func(p string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			b, err := fs.ReadFile(from, p)
			if err != nil {
				return err
			}
			files[path.Base(p)] = b
			_, err = sum(b)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}
