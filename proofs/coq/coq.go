// Package coq checks the headline theorem: Statement.v and Proof.v compile, rest on no axiom, and the relation of Statement.v is
// that of TLA/Heart.tla, as far as the graphs of bounded instances say: Coq's, computed by Instance.v, and TLC's are equal, states
// and edges. It proves nothing by itself and writes nothing into the tree. impl/cmd/coq and its own tests call it; next, README.md.
package coq

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

var (
	// ErrNoCoq is what Compile says where coqc is not installed.
	ErrNoCoq = errors.New("no coqc; apt-get install --no-install-recommends coq")
	// ErrCompile is what is said of a source that Coq refuses.
	ErrCompile = errors.New("Coq refuses")
	// ErrWords is what is said of a source that leaves something unproved or switches a check off.
	ErrWords = errors.New("not allowed in a proof")
	// ErrAssumes is what is said of a theorem that rests on an axiom, or is not the stated one.
	ErrAssumes = errors.New("the theorem rests on more than its statement")
)

// sources are the files in the order in which they need each other; Proof.v and Instance.v do not.
func sources() []string { return []string{"Statement.v", "Proof.v", "Instance.v"} }

var (
	comment = regexp.MustCompile(`(?s)\(\*.*?\*\)`)
	refused = regexp.MustCompile(`\b(Axioms?|Conjecture|Parameters?|Admitted|admit|give_up|bypass_check|type_in_type|Unset\s+\w+\s+Checking)\b`)
)

// Words refuses a source that has an axiom, an unfinished proof or a check switched off. Sections' variables are no axioms.
func Words(name, text string) error {
	if m := refused.FindString(comment.ReplaceAllString(text, " ")); m != "" {
		return fmt.Errorf("%w: %s says %s", ErrWords, name, m)
	}
	return nil
}

// Checker holds a folder of copied sources, compiled.
type Checker struct{ dir string }

// Open copies the sources from one folder to another, which must be empty, and refuses words that prove nothing.
func Open(from, to string) (Checker, error) {
	for _, name := range sources() {
		raw, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return Checker{}, err
		}
		if err := Words(name, string(raw)); err != nil {
			return Checker{}, err
		}
		if err := os.WriteFile(filepath.Join(to, name), raw, 0o600); err != nil {
			return Checker{}, err
		}
	}
	return Checker{to}, nil
}

// run has Coq compile one file and returns what it printed.
func (c Checker) run(ctx context.Context, name string) (string, error) {
	cmd := exec.CommandContext(ctx, "coqc", "-q", "-Q", ".", "Heart", name)
	cmd.Dir = c.dir
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return "", ErrNoCoq
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w\n%s", ErrCompile, name, err, errs.String())
	}
	return out.String(), nil
}

// text has Coq run commands behind the imports.
func (c Checker) text(ctx context.Context, name, commands string) (string, error) {
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(commands), 0o600); err != nil {
		return "", err
	}
	return c.run(ctx, name)
}

// Statement compiles what the others need.
func (c Checker) Statement(ctx context.Context) error {
	_, err := c.run(ctx, "Statement.v")
	return err
}

// Proof compiles the proof and asks what the theorem rests on.
func (c Checker) Proof(ctx context.Context) error {
	if _, err := c.run(ctx, "Proof.v"); err != nil {
		return err
	}
	return c.closed(ctx, "Proof", "(heart : Headline)")
}

// Instance compiles the program and asks what its theorems rest on.
func (c Checker) Instance(ctx context.Context) error {
	if _, err := c.run(ctx, "Instance.v"); err != nil {
		return err
	}
	return c.closed(ctx, "Instance", "sound", "complete_", "norm_same")
}

// closed asks for the assumptions of theorems: there must be none.
func (c Checker) closed(ctx context.Context, module string, theorems ...string) error {
	commands := "From Heart Require Import Statement " + module + ".\n"
	for i, t := range theorems {
		commands += fmt.Sprintf("Definition asked%d := %s.\nPrint Assumptions asked%d.\n", i, t, i)
	}
	out, err := c.text(ctx, "Ask"+module+".v", commands)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAssumes, err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != len(theorems) || slices.ContainsFunc(lines, func(l string) bool { return l != "Closed under the global context" }) {
		return fmt.Errorf("%w: %s", ErrAssumes, out)
	}
	return nil
}

// Result is what was compared in one setting.
type Result struct {
	Setting       Setting
	States, Edges int
	Actions       map[string]int // edges by action
	OnlyCoq       []string       // what one graph has and the other has not
	OnlyTLC       []string
}

// Check does all: the words, the proof, and the graphs of the settings, in a temporary folder.
func Check(ctx context.Context, from, specs, jar string, settings []Setting) ([]Result, error) {
	tmp, err := os.MkdirTemp("", "coq")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	c, err := Open(from, tmp)
	if err != nil {
		return nil, err
	}
	if err := c.Statement(ctx); err != nil {
		return nil, err
	}
	results := make([]Result, len(settings))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	g.Go(func() error { return c.Proof(ctx) })
	g.Go(func() error {
		if err := c.Instance(ctx); err != nil {
			return err
		}
		for i, s := range settings {
			var err error
			if results[i], err = c.Compare(ctx, s, specs, jar); err != nil {
				return err
			}
		}
		return nil
	})
	return results, g.Wait()
}
