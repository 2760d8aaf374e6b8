package coq

import (
	"context"
	"errors"
	"maps"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/proofs/sany"
)

const specs = "../../TLA"

// tools skips where Coq or the TLA+ tools are missing.
func tools(t *testing.T) (jar string) {
	if _, err := exec.LookPath("coqc"); err != nil {
		t.Skip("skipped:", ErrNoCoq)
	}
	jar, err := sany.FindJar("")
	if errors.Is(err, sany.ErrNoJar) {
		t.Skip("skipped:", err)
	}
	require.NoError(t, err)
	return jar
}

// planted is a folder with the sources, one of them changed, or with the specifications.
func planted(t *testing.T, from, pattern, name, old, changed string) string {
	to := t.TempDir()
	files, err := filepath.Glob(filepath.Join(from, pattern))
	require.NoError(t, err)
	for _, f := range files {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		text := string(raw)
		if filepath.Base(f) == name {
			require.Equal(t, 1, strings.Count(text, old), "the plant does not apply once")
			text = strings.Replace(text, old, changed, 1)
		}
		require.NoError(t, os.WriteFile(filepath.Join(to, filepath.Base(f)), []byte(text), 0o600))
	}
	return to
}

// compiled has Statement.v, and on request Instance.v, of a folder ready.
func compiled(t *testing.T, from string, instance bool) Checker {
	c, err := Open(from, t.TempDir())
	require.NoError(t, err)
	require.NoError(t, c.Statement(context.Background()))
	if instance {
		require.NoError(t, c.Instance(context.Background()))
	}
	return c
}

func TestTheorem_IsProved_AndItsGraphsAreTLCs(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: takes a minute")
	}
	t.Parallel()
	jar := tools(t)
	results, err := Check(context.Background(), ".", specs, jar, Settings())
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, r := range results {
		require.Empty(t, r.OnlyCoq, r.Setting.Name)
		require.Empty(t, r.OnlyTLC, r.Setting.Name)
		require.Greater(t, r.States, 500, r.Setting.Name)
		for a := range r.Actions {
			seen[a] = true
		}
		t.Logf("%s: %d states, %d edges", r.Setting.Name, r.States, r.Edges)
	}
	require.ElementsMatch(t, actions(), slices.Collect(maps.Keys(seen)), "every action is in some graph")
}

// A guard dropped in Heart.tla gives TLC edges that Coq has not, and the other way round.
func TestCompare_GuardDropped_IsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: runs Coq and TLC")
	}
	t.Parallel()
	jar := tools(t)
	small := Settings()[0]
	c := compiled(t, ".", true)
	r, err := c.Compare(context.Background(), small, planted(t, specs, "*.tla", "Heart.tla", "  /\\ <<l, k, c>> \\in nsent\n  /\\ hold[l, k]\n", "  /\\ <<l, k, c>> \\in nsent\n"), jar)
	require.NoError(t, err)
	require.Empty(t, r.OnlyCoq)
	require.NotEmpty(t, r.OnlyTLC)

	weak := planted(t, ".", "*.v", "Statement.v", "    ~ Current s l k ->\n    step s Drop", "    0 = 0 ->\n    step s Drop")
	r, err = compiled(t, weak, true).Compare(context.Background(), small, specs, jar)
	require.NoError(t, err)
	require.NotEmpty(t, r.OnlyCoq)
	require.Empty(t, r.OnlyTLC)
}

func TestRefinement_TransferKeepsHeart_AndAGuardDroppedDoesNot(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: runs TLC")
	}
	t.Parallel()
	jar := tools(t)
	for _, r := range Refinements() {
		states, err := r.Check(context.Background(), specs, jar)
		require.NoError(t, err, r.Name)
		t.Logf("%s: %s states", r.Name, states)
	}
	for _, guard := range []string{"DeferRelease", "FenceWaits", "AckDrained"} {
		_, err := Refinement{guard, map[string]string{guard: "FALSE", "NE": "1"}}.Check(context.Background(), specs, jar)
		require.ErrorIs(t, err, ErrRefine, guard)
	}
}

func TestWords_WhatProvesNothing_IsRefused(t *testing.T) {
	for _, bad := range []string{"Axiom x : False.", "Proof.\n  admit.\nAdmitted.", "Lemma a : 1 = 2. Admitted.", "Unset Guard Checking.", "Parameter p : nat."} {
		require.ErrorIs(t, Words("x.v", bad), ErrWords, bad)
	}
	require.NoError(t, Words("x.v", "(* no Axiom, nothing Admitted *) Lemma a : 1 = 1. Proof. reflexivity. Qed."))
	_, err := Open(planted(t, ".", "*.v", "Proof.v", "Theorem heart : Headline.\nProof.", "Theorem heart : Headline.\nProof. Admitted."), t.TempDir())
	require.ErrorIs(t, err, ErrWords)
}

// What the words do not show, the question after the assumptions does; so does a theorem that is another one.
func TestProof_RestsOnAnAxiomOrSaysLess_IsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: runs Coq")
	}
	t.Parallel()
	tools(t)
	c := compiled(t, ".", false)
	head := "From Heart Require Import Statement.\n"
	for _, text := range []string{
		head + "Section S. Variable cheat : Headline. End S.\nAxiom cheat : Headline.\nTheorem heart : Headline. Proof. exact cheat. Qed.\n",
		head + "Theorem heart : True. Proof. exact I. Qed.\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(c.dir, "Proof.v"), []byte(text), 0o600))
		require.ErrorIs(t, c.Proof(context.Background()), ErrAssumes)
	}
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "Proof.v"), []byte(head+"Theorem heart : Headline. Proof. trivial. Qed.\n"), 0o600))
	require.ErrorIs(t, c.Proof(context.Background()), ErrCompile)
}

func TestNumber_StateOfTLC_IsReadWhole(t *testing.T) {
	s := Setting{"", 1, 1, 1, 1, 0, 0, 0}
	text := `/\\ own = (p1 :> 1)\n/\\ gen = (p1 :> 1)\n/\\ dst = <<\"filling\">>\n/\\ hold = (<<1, k1>> :> TRUE)\n/\\ got = (<<1, k1>> :> FALSE)\n` +
		`/\\ nin = {}\n/\\ krn = {<<1, p1>>}\n/\\ ep = (k1 :> 0)\n/\\ fencing = (k1 :> FALSE)\n/\\ dinc = 0\n/\\ gpage = (<<1, p1>> :> 1)\n` +
		`/\\ owes = (<<1, k1>> :> TRUE)\n/\\ gep = (<<1, k1>> :> 0)\n/\\ ginc = (<<1, k1>> :> 0)\n/\\ dof = <<0>>\n/\\ pinc = (k1 :> 0)\n/\\ pfenced = {}\n` +
		`/\\ sent = {}\n/\\ nsent = {}\n/\\ ans = {<<\"ack\", 1, k1>>}\n/\\ queued = {}\n/\\ flying = {}\n/\\ placing = {}\n/\\ unseen = {}\n` +
		`/\\ pay = (<<1, k1, p1, c1>> :> 0)\n/\\ mem = (<<p1, k1>> :> 0)`
	n, err := s.number(text)
	require.NoError(t, err)
	require.Equal(t, bits("1 001 001 001 1 0 0 1 000 0 000 001 1 000 000 000 000 0 0 0 01 0 0 0 0 000 000"), n)
	_, err = s.number(strings.Replace(text, "mem =", "men =", 1))
	require.ErrorIs(t, err, ErrGraph)
	_, err = s.number(strings.Replace(text, "ep = (k1 :> 0)", "ep = (k1 :> 9)", 1))
	require.ErrorIs(t, err, ErrGraph)
}

func bits(text string) string {
	n, _ := new(big.Int).SetString(strings.ReplaceAll(text, " ", ""), 2)
	return n.String()
}

func TestReadCoq_Nonsense_IsRefused(t *testing.T) {
	g, err := readCoq("     = [[5; 32]; [9]]\n     : list (list N)")
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"5 Grant 9": true}, g.edges)
	for _, bad := range []string{"", "[[5; 64]]", "[[5; 31]; [9]]", "[[5]; [5]]"} {
		_, err := readCoq(bad)
		require.ErrorIs(t, err, ErrGraph, bad)
	}
}
