package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/proofs/sany"
	"kvfence/proofs/solve"
	"kvfence/proofs/tla2smt"
)

// translation is the specification with the settings of proofs/transfer.json.
type translation struct {
	set         *settings
	lower       *tla2smt.Lower
	obligations []tla2smt.Obligation
}

// transfer translates the specification after edits of TransferIsolation.tla and with guards off.
func transfer(t *testing.T, off []string, edits ...string) translation {
	t.Helper()
	if testing.Short() {
		t.Skip("runs java on the whole specification: not with -short")
	}
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("no java here")
	}
	jar, err := sany.FindJar("")
	if err != nil {
		t.Skip(err)
	}
	set, err := loadSettings(filepath.Join("..", "..", "..", "proofs", "transfer.json"))
	require.NoError(t, err)
	dir := t.TempDir()
	modules, err := filepath.Glob(filepath.Join("..", "..", "..", "TLA", "*.tla"))
	require.NoError(t, err)
	for _, m := range modules {
		raw, err := os.ReadFile(m)
		require.NoError(t, err)
		text := string(raw)
		if filepath.Base(m) == "TransferIsolation.tla" {
			for i := 0; i < len(edits); i += 2 {
				require.Contains(t, text, edits[i])
			}
			text = strings.NewReplacer(edits...).Replace(text)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(m)), []byte(text), 0o644))
	}
	spec, err := sany.Read(t.Context(), jar, filepath.Join(dir, filepath.Base(set.Spec)))
	require.NoError(t, err)
	opt := set.options()
	opt.Off = append(opt.Off, off...)
	l, err := tla2smt.NewLower(spec, opt)
	require.NoError(t, err)
	obligations, err := l.Obligations()
	require.NoError(t, err)
	require.NoError(t, set.check(obligations))
	require.Empty(t, l.IllIndexed)
	return translation{set, l, obligations}
}

// ask has z3 answer one obligation: first where the settings say that a counterexample is found soonest, if one is expected.
func (tr translation) ask(t *testing.T, name string, want solve.Answer) {
	t.Helper()
	z3, err := solve.Find("z3")
	if err != nil {
		t.Skip(err)
	}
	i := slices.IndexFunc(tr.obligations, func(o tla2smt.Obligation) bool { return o.Name() == name })
	require.GreaterOrEqual(t, i, 0, "no obligation %s", name)
	require.False(t, tr.obligations[i].Frame, "%s is true by frame", name)
	scripts := []string{tr.obligations[i].Script()}
	if want == solve.Sat {
		scripts, err = tr.set.scripts(tr.lower, tr.obligations[i], 2, "")
		require.NoError(t, err)
	}
	for _, s := range scripts {
		r, err := z3.Ask(t.Context(), s, 10*time.Second)
		require.NoError(t, err)
		if r.Answer == want {
			return
		}
	}
	t.Errorf("%s is not %s", name, want)
}

func TestPromise_Transfer_LinesAreObligationsOfEveryAction(t *testing.T) {
	tr := transfer(t, nil)
	lines := map[string]int{}
	for _, o := range tr.obligations {
		if line, ok := strings.CutPrefix(o.Conjunct, "Promise!"); ok {
			lines[line]++
		}
	}
	actions := tla2smt.ActionNames(tr.obligations)
	require.Greater(t, len(actions), 60)
	require.Equal(t, 1, lines["Init"])
	delete(lines, "Init")
	require.Len(t, lines, 19)
	for line, n := range lines {
		require.Equal(t, len(actions)+1, n, "%s: one for each action, and one for the step that changes nothing", line)
	}
	for _, name := range []string{"ReadEnd.Promise!SeenMine", "Read.Promise!ReadsMine", "Answer.Promise!Told200", "Retry.Promise!RootIfNext"} {
		tr.ask(t, name, solve.Unsat)
	}
}

func TestPromise_GuardsOff_LinesAreRefuted(t *testing.T) {
	tr := transfer(t, []string{"LastSpeaks", "CauseKept"})
	tr.ask(t, "Answer.Promise!ToldError", solve.Sat)
	tr.ask(t, "Recause.Promise!WhyStays", solve.Sat)
	tr.ask(t, "Answer.Promise!ToldStays", solve.Unsat)
}

func TestPromise_MappingBroken_LinesAreRefuted(t *testing.T) {
	tr := transfer(t, nil,
		`got[l, k] /\ <<"complete", l, k, ginc[l, k]>> \in ans`, `hold[l, k]`,
		`next    <- succ`, `next    <- [t \in Transfer |-> 0]`,
		`IF lead[t] = "ok" THEN "good"`, `IF lead[t] = "run" THEN "good"`,
		`<<l, x, m>> \in tok`, `<<l, x, m>> \notin tok`)
	tr.ask(t, "Take.Promise!CameStays", solve.Sat)
	tr.ask(t, "Retry.Promise!RootIfNext", solve.Sat)
	tr.ask(t, "Failure.Promise!FateStays", solve.Sat)
	tr.ask(t, "Init.Promise!Init", solve.Sat)
	tr.ask(t, "Failure.Promise!RefusedNone", solve.Unsat)
}
