// Package solve asks SMT solvers. It runs their commands, one process a question, and believes nothing but the word they print
// first: "unsat", "sat", and everything else counts as unknown. It does not know what the questions mean (proofs/tla2smt writes
// them). impl/cmd/prove calls it.
package solve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrNoSolver is what Find says of a command that is not there.
var ErrNoSolver = errors.New("no such solver")

// Answer is a solver's word.
type Answer string

// The answers.
const (
	Unsat   Answer = "unsat"
	Sat     Answer = "sat"
	Unknown Answer = "unknown"
)

// Solver is a solver's command. Strategies are lists of options, tried one after another until one says sat or unsat; all but the last get
// a sixth of the time each.
type Solver struct {
	Name       string
	Version    string
	path       string
	strategies [][]string
}

// Find looks for z3 or cvc5.
func Find(name string) (Solver, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return Solver{}, fmt.Errorf("%w: %s (Debian: apt-get install --no-install-recommends %s)", ErrNoSolver, name, name)
	}
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		return Solver{}, fmt.Errorf("%s --version: %w", name, err)
	}
	s := Solver{Name: name, path: path, strategies: [][]string{{"-in"}}}
	if name == "cvc5" {
		s.strategies = [][]string{{"--lang=smt2", "-"}, {"--lang=smt2", "--full-saturate-quant", "-"}}
	}
	for _, w := range strings.Fields(string(out)) {
		if strings.Count(w, ".") == 2 && w[0] >= '0' && w[0] <= '9' {
			s.Version = w
			break
		}
	}
	return s, nil
}

// Result is an answer, and the processor time that it took.
type Result struct {
	Answer Answer
	Took   time.Duration
	Text   string // what the solver printed, when it is no answer
}

// Ask asks one question. The limit is of processor time, so that a busy machine changes no verdict; a question that takes ten
// times as long by the clock is given up as well. A limit that passes is Unknown, not an error.
func (s Solver) Ask(ctx context.Context, script string, limit time.Duration) (Result, error) {
	var total Result
	for i, args := range s.strategies {
		share := limit - total.Took
		if i < len(s.strategies)-1 {
			share = min(share, limit/6)
		}
		r, err := s.ask(ctx, args, script, share)
		total = Result{r.Answer, total.Took + r.Took, r.Text}
		if err != nil || r.Answer != Unknown || total.Took >= limit {
			return total, err
		}
	}
	return total, nil
}

func (s Solver) ask(ctx context.Context, args []string, script string, limit time.Duration) (Result, error) {
	clock, cancel := context.WithTimeout(ctx, 10*limit)
	defer cancel()
	seconds := int(limit/time.Second) + 1
	c := exec.CommandContext(clock, "sh", append([]string{"-c", fmt.Sprintf(`ulimit -t %d; exec "$0" "$@"`, seconds), s.path}, args...)...)
	c.Stdin = strings.NewReader(script)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	c.WaitDelay = time.Second
	err := c.Run()
	if ctx.Err() != nil {
		return Result{Answer: Unknown}, ctx.Err()
	}
	if c.ProcessState == nil {
		return Result{Answer: Unknown}, err
	}
	r := Result{Unknown, c.ProcessState.UserTime() + c.ProcessState.SystemTime(), ""}
	first, _, _ := strings.Cut(out.String(), "\n")
	if a := Answer(strings.TrimSpace(first)); r.Took <= limit+time.Second && (a == Sat || a == Unsat) {
		r.Answer = a
	} else {
		r.Text = first
	}
	return r, nil
}

// Cache remembers questions that came out unsat, by a hash of the question, the solver and its version. The zero Cache
// remembers nothing. Safe for concurrent use.
type Cache struct{ dir string }

// OpenCache is a cache in a folder, which is made.
func OpenCache(dir string) (Cache, error) {
	return Cache{dir}, os.MkdirAll(dir, 0o755)
}

func (c Cache) file(s Solver, script string) string {
	h := sha256.Sum256([]byte(s.Name + "\x00" + s.Version + "\x00" + script))
	return filepath.Join(c.dir, hex.EncodeToString(h[:]))
}

// Proved reports whether the solver has said unsat to the question before.
func (c Cache) Proved(s Solver, script string) bool {
	if c.dir == "" {
		return false
	}
	_, err := os.Stat(c.file(s, script))
	return err == nil
}

// Keep remembers that the solver said unsat.
func (c Cache) Keep(s Solver, script string) error {
	if c.dir == "" {
		return nil
	}
	return os.WriteFile(c.file(s, script), nil, 0o644)
}
