package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/model"
)

// small is a dump as TLC writes it.
const small = `strict digraph DiskGraph {
nodesep=0.35;
subgraph cluster_graph {
color="white";
-37 [label="/\\ a = 1\n/\\ b = \"x\"",style = filled]
-37 -> 5 [label="Go",color="black",fontcolor="black"];
5 [label="/\\ a = 2\n/\\ b = \"x\""];
5 -> 5 [label="Stay",color="black",fontcolor="black"];
{rank = same; -37;}
{rank = same; 5;}
}
}`

// heard is what readDump calls, in words.
func heard(text string) (out []string, err error) {
	err = readDump(strings.NewReader(text), dump{
		func(fp int64, label []byte, initial bool) error {
			out = append(out, fmt.Sprintf("%d %s %v", fp, label, initial))
			return nil
		},
		func(from int64, action []byte, to int64) error {
			out = append(out, fmt.Sprintf("%d %s %d", from, action, to))
			return nil
		},
	})
	return out, err
}

func TestReadDump_WhatTLCWrites_IsRead(t *testing.T) {
	want := []string{`-37 /\\ a = 1\n/\\ b = \"x\" true`, "-37 Go 5", `5 /\\ a = 2\n/\\ b = \"x\" false`, "5 Stay 5"}
	got, err := heard(small)
	require.NoError(t, err)
	require.Equal(t, want, got)
	got, err = heard(small + "\n")
	require.NoError(t, err)
	require.Equal(t, want, got)
	long := "{rank = same; " + strings.Repeat("5;", longestLine) + "}"
	got, err = heard(strings.Replace(small, "{rank = same; 5;}", long, 1))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestReadDump_Malformed_IsRefused(t *testing.T) {
	for name, change := range map[string][2]string{
		"no head":              {"strict digraph DiskGraph {\n", ""},
		"cut off":              {"\n}\n}", ""},
		"cut in a line":        {`"black"];` + "\n{rank = same; -37;}", `"bla`},
		"behind the end":       {"\n}\n}", "\n}\n}\n5 -> 5"},
		"unknown line":         {"nodesep=0.35;", "rankdir=LR;"},
		"no label":             {"[label=\"Go\"", "[color=\"Go\""},
		"no action":            {"label=\"Go\"", "label=\"\""},
		"no fingerprint":       {"5 -> 5", "five -> 5"},
		"too large":            {"5 -> 5", "99999999999999999999 -> 5"},
		"neither":              {"5 -> 5", "5 -- 5"},
		"state without end":    {",style = filled]", ",style = dashed]"},
		"step without its end": {`"Go",color="black",fontcolor="black"];`, `"Go"]`},
		"too long":             {`/\\ a = 2`, `/\\ a = ` + strings.Repeat("2", longestLine)},
		"empty":                {small, ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(small, change[0]))
			_, err := heard(strings.Replace(small, change[0], change[1], 1))
			require.ErrorIs(t, err, errDump)
		})
	}
}

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
			require.ErrorIs(t, err, errDump)
		})
	}
}
