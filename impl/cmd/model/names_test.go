package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/model"
	"kvfence/proofs/dump"
)

// label is a state as TLC writes it: variables in another order than the model's.
func label(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	var out []string
	for i := range lines {
		out = append(out, lines[len(lines)-1-i])
	}
	return strings.ReplaceAll(`/\\ `+strings.Join(out, `\n/\\ `), `"`, `\"`)
}

func TestLabels_SameState_HasTheNumbersOfTheModel(t *testing.T) {
	s := exampleSetting(t)
	v := newValues()
	twin := model.New(s.twin)
	read, l := newReader(v, twin), newLabels(v)
	seen := map[digest]string{}
	r, err := s.walk(1, 0)
	require.NoError(t, err)
	w := r.Graph.Walker()
	for i := range r.Graph.Len() {
		x := w.State(i)
		text := twin.Text(x)
		got, err := l.read([]byte(label(text)))
		require.NoError(t, err)
		d := digestOf(got, nil)
		require.Equal(t, d, read.digest(x))
		require.Empty(t, seen[d])
		seen[d] = text
	}
}

func TestLabels_Mistakes_AreRefused(t *testing.T) {
	s := exampleSetting(t)
	twin := model.New(s.twin)
	first := twin.Init()[0]
	good := label(twin.Text(&first))
	for name, change := range map[string][2]string{
		"unknown variable": {"spent = FALSE", "spend = FALSE"},
		"twice":            {"dinc = 0", "spent = FALSE"},
		"missing":          {`dinc = 0\n/\\ `, ""},
		"no value":         {"dinc = 0", "dinc"},
		"no such value":    {"dinc = 0", "dinc = [a |-> 0]"},
		"cut":              {"spent = FALSE", "spent = "},
		"one too many":     {"dinc = 0", `dinc = 0\n/\\ dinc = 0`},
		"no conjunction":   {`/\\ spent`, "spent"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(good, change[0]), good)
			_, err := newLabels(newValues()).read([]byte(strings.Replace(good, change[0], change[1], 1)))
			require.ErrorIs(t, err, dump.ErrDump)
		})
	}
}
