package tla2smt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/proofs/sany"
	"kvfence/proofs/solve"
	"kvfence/proofs/tla2smt"
)

// Two modules with the same names Init, Step and TypeOK in them: a shop that must not sell twice, and a store that keeps it so.
const (
	shop = `---- MODULE Shop ----
CONSTANTS Thing, Nobody
VARIABLES buyer, label, out
Init == \A x \in Thing : buyer[x] = Nobody /\ <<x, Nobody>> \notin out
Sold(x) == buyer[x] # Nobody
BuyerStays == \A x \in Thing : Sold(x) => buyer'[x] = buyer[x]
LabelStays == \A x \in Thing : Sold(x) => label'[x] = label[x]
OutSold == \A x \in Thing : <<x, Nobody>> \notin out'
OutStays == \A x, y \in Thing : <<x, y>> \in out => <<x, y>> \in out'
Step == BuyerStays /\ LabelStays /\ OutSold /\ OutStays
====
`
	store = `---- MODULE Store ----
EXTENDS Naturals
CONSTANTS Box, NoBox, Once
ASSUME Once \in BOOLEAN
Thing == Nat \ {0}
VARIABLES owner, colour, size, sent
TypeOK == /\ owner \in [Thing -> Nat] /\ colour \in [Thing -> Box] /\ size \in [Thing -> Nat] /\ sent \in SUBSET (Thing \X Thing \X Box)
Init == owner = [x \in Thing |-> 0] /\ colour = [x \in Thing |-> NoBox] /\ size = [x \in Thing |-> 0] /\ sent = {}
Sold(x, b) == owner[x] # 0
Sell(x, y, b) ==
  /\ Once => owner[x] = 0
  /\ owner' = [owner EXCEPT ![x] = y] /\ colour' = [colour EXCEPT ![x] = b] /\ UNCHANGED <<size, sent>>
Send(x, y, b) == owner[x] = y /\ sent' = sent \cup {<<x, y, b>>} /\ UNCHANGED <<owner, colour, size>>
Grow(x) == owner[x] = 0 /\ size' = [size EXCEPT ![x] = size[x] + 1] /\ UNCHANGED <<owner, colour, sent>>
Next == \E x, y \in Thing : \E b \in Box : Sell(x, y, b) \/ Send(x, y, b) \/ Grow(x)
Step == TRUE
S == INSTANCE Shop WITH Nobody <- 0, buyer <- [x \in Thing |-> IF owner[x] = 0 THEN 0 ELSE owner[x]],
  label <- [x \in Thing |-> <<colour[x], size[x]>>],
  out <- {<<x, y>> \in Thing \X Nat : \E b \in Box : <<x, y, b>> \in sent}
IndInv == \A x, y \in Thing : \A b \in Box : <<x, y, b>> \in sent => owner[x] = y
====
`
)

// refinement translates the two modules, after edits of the second, and has z3 answer each obligation of the instance.
func refinement(t *testing.T, off string, edits ...string) (map[string]solve.Answer, error) {
	t.Helper()
	long(t)
	jar := tools(t, "z3")
	dir := t.TempDir()
	text := strings.NewReplacer(edits...).Replace(store)
	require.Equal(t, len(edits) == 0, text == store, "an edit that changes nothing")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Shop.tla"), []byte(shop), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Store.tla"), []byte(text), 0o644))
	spec, err := sany.Read(t.Context(), jar, filepath.Join(dir, "Store.tla"))
	require.NoError(t, err)
	opt := options()
	opt.Steps, opt.Starts = []string{"S!Step"}, []string{"S!Init"}
	if off != "" {
		opt.Off = []string{off}
	}
	l, err := tla2smt.NewLower(spec, opt)
	if err != nil {
		return nil, err
	}
	obligations, err := l.Obligations()
	if err != nil {
		return nil, err
	}
	require.Empty(t, l.IllIndexed)
	z3, err := solve.Find("z3")
	require.NoError(t, err)
	out := map[string]solve.Answer{}
	for _, o := range obligations {
		if o.Class != tla2smt.Step && o.Class != tla2smt.Start {
			continue
		}
		out[o.Name()] = solve.Unsat
		if !o.Frame {
			r, err := z3.Ask(t.Context(), o.Script(), 20e9)
			require.NoError(t, err)
			out[o.Name()] = r.Answer
		}
	}
	return out, nil
}

func refuted(answers map[string]solve.Answer) []string {
	var out []string
	for name, a := range answers {
		if a != solve.Unsat {
			out = append(out, name+" "+string(a))
		}
	}
	return out
}

func TestInstance_Refinement_IsProvedLineByLine(t *testing.T) {
	answers, err := refinement(t, "")
	require.NoError(t, err)
	require.Empty(t, refuted(answers))
	for _, name := range []string{"Init.S!Init", "Stutter.S!OutSold", "Sell.S!BuyerStays", "Sell.S!LabelStays", "Send.S!OutSold", "Grow.S!LabelStays"} {
		require.Contains(t, answers, name)
	}
	require.Len(t, answers, 1+4+3*4)
}

func TestInstance_GuardOff_BreaksTheLine(t *testing.T) {
	answers, err := refinement(t, "Once")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"Sell.S!BuyerStays sat", "Sell.S!LabelStays sat"}, refuted(answers))
}

func TestInstance_MappingBroken_IsRefuted(t *testing.T) {
	for _, c := range [][3]string{
		{`IF owner[x] = 0 THEN 0 ELSE owner[x]`, `IF owner[x] = 0 THEN 1 ELSE owner[x]`, "Init.S!Init"}, // sold from the start
		{`<<colour[x], size[x]>>`, `<<colour[x], owner[x] + size[x]>>`, ""},                             // as good
		{`\E b \in Box : <<x, y, b>> \in sent`, `\A b \in Box : <<x, y, b>> \notin sent`, "Send.S!OutStays"},
		{`/\ Once => owner[x] = 0`, `/\ (Once => owner[x] = 0) \/ b = colour[x]`, "Sell.S!BuyerStays"},
		{`Grow(x) == owner[x] = 0`, `Grow(x) == owner[x] # 0`, "Grow.S!LabelStays"}, // the second component of a tuple
	} {
		answers, err := refinement(t, "", c[0], c[1])
		require.NoError(t, err)
		if c[2] == "" {
			require.Empty(t, refuted(answers), c[1])
			continue
		}
		require.Contains(t, refuted(answers), c[2]+" sat", c[1])
	}
}
