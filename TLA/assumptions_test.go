package tla

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

const assumptionsPage = "../spec/verbs-fence.md"

// untested is the cell of an assumption that no test of the rig tries, which the page then says.
const untested = "none yet"

var (
	assumed    = regexp.MustCompile(`(?m)^  (A\d+),? +\\\* (.*)$`)
	assumedRow = regexp.MustCompile("(?m)^\\| (A\\d+) \\| (.*) \\| `(off-verbs-A\\d+)` \\| (?:`(\\w+)`|(.*)) \\|$")
	testFunc   = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// compareAssumptions says how the rows of a page differ from the assumptions of a module and the tests that there are.
func compareAssumptions(module, page string, tests map[string]bool) (bad error) {
	want := assumed.FindAllStringSubmatch(module, -1)
	rows := assumedRow.FindAllStringSubmatch(page, -1)
	if len(want) == 0 || len(want) != len(rows) {
		return fmt.Errorf("%d assumptions, %d rows", len(want), len(rows))
	}
	for i, row := range rows {
		name, text, off, test, none := row[1], row[2], row[3], row[4], row[5]
		switch {
		case name != want[i][1] || text != want[i][2] || off != "off-verbs-"+name:
			bad = errors.Join(bad, fmt.Errorf("row %d is of %s (%s, %s), the module has %s (%s)", i+1, name, text, off, want[i][1], want[i][2]))
		case test == "" && none != untested:
			bad = errors.Join(bad, fmt.Errorf("%s: neither a test nor %q", name, untested))
		case test != "" && !tests[test]:
			bad = errors.Join(bad, fmt.Errorf("%s: there is no test %s", name, test))
		}
	}
	return bad
}

func verbsTests(t *testing.T) map[string]bool {
	files, err := filepath.Glob("../impl/transport/verbs/*_test.go")
	require.NoError(t, err)
	tests := map[string]bool{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
	}
	return tests
}

// Each assumption of the fence over verbs has its row in spec/, in the words of the module, and a test of the rig that is there.
func TestVerbsFence_EachAssumption_HasItsRowAndTest(t *testing.T) {
	module, err := os.ReadFile("VerbsFence.tla")
	require.NoError(t, err)
	page, err := os.ReadFile(assumptionsPage)
	require.NoError(t, err)
	require.NoError(t, compareAssumptions(string(module), string(page), verbsTests(t)))
}

func TestVerbsFence_RowsThatDiffer_AreRefused(t *testing.T) {
	const module = "CONSTANTS\n  A1,     \\* it stops\n  A2      \\* it says so\n"
	const page = "| A1 | it stops | `off-verbs-A1` | `TestA` |\n| A2 | it says so | `off-verbs-A2` | none yet |\n"
	tests := map[string]bool{"TestA": true}
	require.NoError(t, compareAssumptions(module, page, tests))
	require.ErrorContains(t, compareAssumptions(module, page, nil), "no test TestA")
	for _, bad := range []string{
		"| A1 | it stops | `off-verbs-A1` | `TestA` |\n",
		"| A1 | it stops | `off-verbs-A1` | `TestA` |\n| A2 | other words | `off-verbs-A2` | none yet |\n",
		"| A1 | it stops | `off-verbs-A2` | `TestA` |\n| A2 | it says so | `off-verbs-A2` | none yet |\n",
		"| A1 | it stops | `off-verbs-A1` | `TestA` |\n| A2 | it says so | `off-verbs-A2` | later |\n",
		"",
	} {
		require.Error(t, compareAssumptions(module, bad, tests), bad)
	}
}
