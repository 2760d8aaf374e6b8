package dump

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

// heard is what Read calls, in words.
func heard(text string) (out []string, err error) {
	err = Read(strings.NewReader(text), Receiver{
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

func TestRead_WhatTLCWrites_IsRead(t *testing.T) {
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

func TestRead_Malformed_IsRefused(t *testing.T) {
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
			require.ErrorIs(t, err, ErrDump)
		})
	}
}
