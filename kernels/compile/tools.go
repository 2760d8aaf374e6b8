package compile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// ErrNoCompiler says what a compiler lacks on this machine.
var ErrNoCompiler = errors.New("compiler not there")

// FindNvcc unpacks NVIDIA's compiler, as the requirements file pins it, below dir by pip and adds it to c.
func (c *Compilers) FindNvcc(ctx context.Context, dir, requirements string) error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("%w: nvcc is pinned for linux/amd64 only", ErrNoCompiler)
	}
	text, err := os.ReadFile(requirements)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	at := filepath.Join(dir, hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(at); err != nil {
		if err := unpack(ctx, at, requirements); err != nil {
			return fmt.Errorf("%w: nvcc: %w", ErrNoCompiler, err)
		}
	}
	found, err := filepath.Glob(filepath.Join(at, "nvidia", "*", "bin", "nvcc"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%w: nvcc: %d below %s", ErrNoCompiler, len(found), at)
	}
	if c.Nvcc, err = filepath.Abs(found[0]); err != nil {
		return err
	}
	c.NvccVersion, err = versionOf(ctx, c.Nvcc, regexp.MustCompile(`V(\d+\.\d+\.\d+)`))
	return err
}

// unpack fills a folder of its own and then gives it its name: half a compiler is never found.
func unpack(ctx context.Context, at, requirements string) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(at), "new-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	pip := exec.CommandContext(ctx, "python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "--only-binary", ":all:",
		"--target", tmp, "-r", requirements)
	if out, err := pip.CombinedOutput(); err != nil {
		return fmt.Errorf("pip: %w: %s", err, strings.TrimSpace(string(out)))
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	if err := os.Rename(tmp, at); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// FindHipcc adds AMD's compiler, if it is installed.
func (c *Compilers) FindHipcc(ctx context.Context) error {
	path, err := exec.LookPath("hipcc")
	if err != nil {
		return fmt.Errorf("%w: hipcc is not installed", ErrNoCompiler)
	}
	c.Hipcc = path
	c.HipccVersion, err = versionOf(ctx, path, regexp.MustCompile(`clang version (\d+\.\d+\.\d+)`))
	return err
}

func versionOf(ctx context.Context, compiler string, re *regexp.Regexp) (string, error) {
	out, err := exec.CommandContext(ctx, compiler, "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w: %s", ErrNoCompiler, filepath.Base(compiler), err, out)
	}
	m := re.FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("%w: %s --version says %q", ErrNoCompiler, filepath.Base(compiler), out)
	}
	return string(m[1]), nil
}
