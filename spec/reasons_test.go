package spec

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// declared are the constants of one type in reason.go, by name.
func declared(t *testing.T, typ string) map[string]string {
	f, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	require.NoError(t, err)
	out := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if id, ok := v.Type.(*ast.Ident); ok && id.Name == typ {
				word, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				require.NoError(t, err)
				out[v.Names[0].Name] = word
			}
		}
		return true
	})
	require.NotEmpty(t, out)
	return out
}

// docRows are the table rows of a text, split in cells without backquotes, whose first cell begins with prefix.
func docRows(t *testing.T, file, prefix string) (rows [][]string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		if strings.HasPrefix(cells[0], prefix) {
			rows = append(rows, cells)
		}
	}
	return rows
}

func TestReasons_Document_HasEachCauseAndNoOther(t *testing.T) {
	want, words := declared(t, "Cause"), map[string]bool{}
	rows := docRows(t, "reasons.md", "Cause")
	require.Len(t, rows, len(want))
	require.Len(t, Causes(), len(want))
	for _, r := range rows {
		require.Equal(t, want[r[0]], r[1], r[0])
		c := Cause(r[1])
		require.Equal(t, r[3], fmt.Sprint(c.HTTPStatus()), r[0])
		require.Equal(t, r[2] == "derived", c.Derived(), r[0])
		require.True(t, c.Known())
		require.Contains(t, Causes(), c)
		require.False(t, words[r[1]])
		words[r[1]] = true
	}
	require.False(t, Cause("").Known())
	require.False(t, Cause("other").Known())
}

func TestReasons_Document_HasEachRefusalAndNoOther(t *testing.T) {
	want := declared(t, "Refusal")
	rows := docRows(t, "reasons.md", "Refuse")
	require.Len(t, rows, len(want))
	require.Len(t, Refusals(), len(want))
	for i, r := range rows {
		require.Equal(t, want[r[0]], r[1], r[0])
		require.Equal(t, Refusals()[i], Refusal(r[1]), "the order is the order of tests")
		require.True(t, Refusal(r[1]).Known())
	}
	require.False(t, Refusal("").Known())
}

// The first cause stays; only an original one replaces a derived one, whatever the order of arrival.
func TestCaseB51_Better_FirstOriginalCauseWins(t *testing.T) {
	for _, old := range append(Causes(), "") {
		for _, next := range append(Causes(), "") {
			want := old
			if old == "" || old.Derived() && next != "" && !next.Derived() {
				want = next
			}
			require.Equal(t, want, Better(old, next))
			require.Equal(t, want, Better(want, next), "said twice changes nothing")
			if old != "" && !old.Derived() {
				require.Equal(t, old, Better(old, next))
			}
		}
	}
	require.Equal(t, CauseTooLong, Better(Better(CausePeerFailed, CauseTooLong), CauseDeadline))
}
