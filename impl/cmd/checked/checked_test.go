package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPage_OfThisRepository_IsCurrent(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	want, err := pageOf(root)
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(root, pagePath))
	require.NoError(t, err)
	require.True(t, string(want) == string(got), "%s is stale: make docs rewrites it; first difference: %s", pagePath, firstDifference(string(got), string(want)))
}

func TestPage_OfThisRepository_EveryCaseHasATest(t *testing.T) {
	cases, err := publicCases()
	require.NoError(t, err)
	require.Len(t, cases, 36)
	tr, err := scan(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	tests, err := tr.byCase(cases)
	require.NoError(t, err)
	for _, c := range cases {
		require.NotEmpty(t, tests[c.ID], "%s %s", c.ID, c.Title)
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// Links between the pages of this repository lead somewhere.
func TestDocs_Links_Exist(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	links := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "spec/*.md", "TLA/*.md"} {
		pages, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, page := range pages {
			text, err := os.ReadFile(page)
			require.NoError(t, err)
			for _, m := range link.FindAllStringSubmatch(string(text), -1) {
				_, err := os.Stat(filepath.Join(filepath.Dir(page), m[1]))
				require.NoError(t, err, "in %s", page)
				links++
			}
		}
	}
	require.Greater(t, links, 100)
}

func firstDifference(old, now string) string {
	a, b := strings.Split(old, "\n"), strings.Split(now, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "page says " + a[i] + "; sources say " + b[i]
		}
	}
	return "the length"
}

// repository makes a small one: files by name, and an empty manifest.
func repository(t *testing.T, files map[string]string) string {
	root := t.TempDir()
	files["TLA/manifest.json"] = `{"configurations":[{"name":"all","module":"M","about":"everything","expect":{"result":"pass","distinct":7,"depth":3}},
		{"name":"off-X","module":"M","about":"no X","long":true,"expect":{"result":"violated","violated":"Safe","trace":4}}]}`
	files["TLA/equality.json"] = `{"settings":[{"name":"all","states":7,"edges":9},{"name":"huge","long":true}],"mutants":[{"name":"off-X"}]}`
	files["impl/mutants/reasons.json"] = `[]`
	files["proofs/transfer.figures.json"] = `{"obligations":5,"promise":2,"frame":11,"actions":3,"properties":4,"guards":1}`
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	return root
}

func TestPage_OfASmallRepository_SaysWhatIsThere(t *testing.T) {
	root := repository(t, map[string]string{
		"impl/a/a.go":           "package a\nfunc f(r x) { r.broken(17, \"a\"); r.broken(2, \"b\"); r.broken(2, \"c\"); broken(3, \"d\") }",
		"impl/a/a_test.go":      "package a\nfunc TestCaseB01_X_Y(t *testing.T) { rapid.Check(t, f) }\nfunc FuzzA(f *testing.F) {}\nfunc TestMain(m *testing.M) {}\nfunc Testing() {}\n",
		"impl/b/b_test.go":      "//go:build linux && chaos\n\npackage b\nfunc TestB_X_Y(t *testing.T) {}\n",
		"impl/b/testdata/no.go": "no Go at all",
	})
	page, err := pageOf(root)
	require.NoError(t, err)
	for _, want := range []string{
		"[`CaseB01_X_Y`](../impl/a/a_test.go)", "Without a test: B02, B04,", "| M `all` | everything | nothing found: 7 states, depth 3 |",
		"| `all` | 7 | 9 |", "1 settings, 7 states, 9 edges equal; so are the graphs of 1 mutants", "1 settings more",
		"5 obligations for any size, each by z3 and by cvc5, 2 of them", "mutants 0 killed of 0",
		"| M `off-X` | no X | `Safe` breaks in 4 states (long: `make test-long`) |", "| I2 | [impl/a/a.go](../impl/a/a.go) |", "| I17 |",
		"| impl/a | 1 | 1 | 1 | 0 | 1 |", "| impl/b | 1 | 0 | 0 | 1 | 0 |", "| all | 2 | 1 | 1 | 1 | 1 |", "| `FuzzA` | [impl/a/a_test.go]",
	} {
		require.Contains(t, string(page), want)
	}
	require.NotContains(t, string(page), "| I3 |")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "docs"), 0o755))
	require.NoError(t, write(root))
	written, err := os.ReadFile(filepath.Join(root, pagePath))
	require.NoError(t, err)
	require.Equal(t, string(page), string(written))
}

func TestPage_TestOfACaseThatDoesNotExist_IsRefused(t *testing.T) {
	_, err := pageOf(repository(t, map[string]string{"a/a_test.go": "package a\nfunc TestCaseB99_X_Y(t *testing.T) {}\n"}))
	require.ErrorIs(t, err, errPage)
	require.ErrorContains(t, err, "no case B99")
}
