package overlay

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Limited is a command with a bound on its processor time, in seconds, and on its memory, behind everything else that runs here.
func Limited(ctx context.Context, seconds int, bin string, args ...string) *exec.Cmd {
	all := append([]string{"-c", fmt.Sprintf(`ulimit -t %d; ulimit -v 8000000; exec nice -n 10 "$@"`, seconds), "sh", bin}, args...)
	return exec.CommandContext(ctx, "sh", all...)
}

// TestArgs are the arguments with which a test binary runs these tests in order until one fails; those of rapid only where a
// package uses it.
func TestArgs(tests []string, rapid bool) []string {
	args := []string{"-test.v", "-test.failfast", "-test.timeout=600s", "-test.run", "^(" + strings.Join(tests, "|") + ")$"}
	if rapid {
		args = append(args, "-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=1ms")
	}
	return args
}

var failLine = regexp.MustCompile(`^--- FAIL: (Test\w+)`)

// FirstFailure reads the output of `-test.v`: the first test that failed, else the one that was running, and how it ended:
// "fails", "panics" or "time limit".
func FirstFailure(out string) (test, how string) {
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, 16<<20)
	running, failed := "", ""
	how = "time limit"
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "=== RUN   "); ok && !strings.Contains(name, "/") {
			running = name
		}
		if m := failLine.FindStringSubmatch(lines.Text()); m != nil && failed == "" {
			failed, how = m[1], "fails"
		}
		if strings.HasPrefix(lines.Text(), "panic: ") || strings.HasPrefix(lines.Text(), "fatal error: ") {
			how = "panics"
		}
	}
	if failed != "" {
		return failed, how
	}
	return running, how
}

// UsesRapid reports whether the tests of a folder use rapid, whose options a test binary then takes.
func UsesRapid(dir string) (bool, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return false, err
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			return false, err
		}
		if strings.Contains(string(b), `"pgregory.net/rapid"`) {
			return true, nil
		}
	}
	return false, nil
}

// TreeHash is over the Go files of some folders below root.
func TreeHash(root string, dirs ...string) (string, error) {
	h := sha256.New()
	for _, d := range dirs {
		paths, err := filepath.Glob(filepath.Join(root, d, "*.go"))
		if err != nil {
			return "", err
		}
		slices.Sort(paths)
		for _, p := range paths {
			b, err := os.ReadFile(p)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(h, "%s/%s %d\n%s\n", d, filepath.Base(p), len(b), b)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
