//go:build linux

package bench

import (
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed ref/*.c
var references embed.FS

// compiler is the C compiler of this machine, "" if there is none.
func compiler() string {
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// compilerVersion is the first line of what it says of itself.
func compilerVersion(ctx context.Context, cc string) string {
	if cc == "" {
		return ""
	}
	out, err := exec.CommandContext(ctx, cc, "--version").Output()
	if err != nil {
		return cc
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// reference compiles ref/NAME.c into dir and runs it; it has said "ready" when this returns.
func reference(ctx context.Context, cc, dir, name string, log io.Writer, args ...string) (p *proc, ready string, err error) {
	text, err := references.ReadFile("ref/" + name + ".c")
	if err != nil {
		return nil, "", err
	}
	src, bin := filepath.Join(dir, name+".c"), filepath.Join(dir, name)
	if err := os.WriteFile(src, text, 0o600); err != nil {
		return nil, "", err
	}
	if out, err := exec.CommandContext(ctx, cc, "-O2", "-o", bin, src).CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("%w: %s: %w: %s", ErrBench, name, err, out)
	}
	if p, err = startProc(ctx, log, "C "+name, bin, args...); err != nil {
		return nil, "", err
	}
	ready, err = p.line("")
	if err == nil && !strings.HasPrefix(ready, "ready") {
		err = p.failed(fmt.Errorf("it says %q", ready))
	}
	return p, ready, err
}
