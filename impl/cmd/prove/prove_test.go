package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/proofs/solve"
	"kvfence/proofs/tla2smt"
)

func TestSettings_Transfer_ListsWhatTheSpecificationPromises(t *testing.T) {
	set, err := loadSettings(filepath.Join("..", "..", "..", "proofs", "transfer.json"))
	require.NoError(t, err)
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "TLA", "manifest.json"))
	require.NoError(t, err)
	var m struct {
		Modules map[string]struct {
			Properties map[string][]string `json:"properties"`
		} `json:"modules"`
	}
	require.NoError(t, json.Unmarshal(raw, &m))
	found := 0
	for _, list := range m.Modules["Transfer"].Properties {
		for _, p := range list {
			if p == "TypeOK" { // a conjunct for each variable, always
				continue
			}
			found++
			require.True(t, slices.Contains(set.Properties, p), "%s is checked by TLC and not in the list of proofs/transfer.json", p)
		}
	}
	require.Positive(t, found)
}

func TestSettings_PropertyNeitherProvedNorOpen_IsRefused(t *testing.T) {
	obligations := []tla2smt.Obligation{{Conjunct: "A"}}
	require.NoError(t, (&settings{Properties: []string{"A"}}).check(obligations))
	require.NoError(t, (&settings{Properties: []string{"A", "B"}, Open: map[string]string{"B": "not inductive yet"}}).check(obligations))
	require.ErrorIs(t, (&settings{Properties: []string{"A", "B"}}).check(obligations), errSettings)
	require.ErrorIs(t, (&settings{Properties: []string{"A"}, Open: map[string]string{"A": "why"}}).check(obligations), errSettings)
	require.ErrorIs(t, (&settings{Properties: []string{"A", "B"}, Open: map[string]string{"B": ""}}).check(obligations), errSettings)
	require.ErrorIs(t, (&settings{Properties: []string{"A"}, Open: map[string]string{"C": "why"}}).check(obligations), errSettings)
}

func TestAsk_AnythingButUnsat_IsNoProof(t *testing.T) {
	for _, name := range []string{"z3", "cvc5"} {
		s, err := solve.Find(name)
		if err != nil {
			t.Skip(err)
		}
		require.NotEmpty(t, s.Version)
		for script, want := range map[string]solve.Answer{
			"(set-logic ALL)(declare-const x Int)(assert (< x x))(check-sat)": solve.Unsat,
			"(set-logic ALL)(declare-const x Int)(assert (< x 3))(check-sat)": solve.Sat,
			"(set-logic ALL)(assert (undeclared x))(check-sat)":               solve.Unknown,
			"(set-logic ALL)(echo \"unsat?\")":                                solve.Unknown,
			"(set-logic ALL)(declare-const x Int)(assert (< x x))":            solve.Unknown,
			"(set-logic ALL)(declare-fun f (Int) Int)(assert (forall ((x Int)) (> (f (f x)) (f x))))(assert (= (f 1) (* (f 2) (f 2) (f 3) 7)))(assert (forall ((x Int) (y Int)) (= (f (* x y)) (+ (f x) (f y)))))(assert (= (f 5) 1))": solve.Unknown,
		} {
			r, err := s.Ask(t.Context(), script, 2*time.Second)
			require.NoError(t, err)
			require.Equal(t, want, r.Answer, "%s: %s", name, script)
		}
	}
	_, err := solve.Find("no-such-solver")
	require.ErrorIs(t, err, solve.ErrNoSolver)
}

func TestCache_RemembersUnsatOfOneQuestionAndSolver(t *testing.T) {
	c, err := solve.OpenCache(t.TempDir())
	require.NoError(t, err)
	a, b := solve.Solver{Name: "z3", Version: "1"}, solve.Solver{Name: "z3", Version: "2"}
	require.NoError(t, c.Keep(a, "q"))
	require.True(t, c.Proved(a, "q"))
	require.False(t, c.Proved(b, "q"))
	require.False(t, c.Proved(a, "r"))
	require.False(t, solve.Cache{}.Proved(a, "q"))
}
