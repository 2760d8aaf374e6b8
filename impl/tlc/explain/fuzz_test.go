package explain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Whatever a file says, Parse answers with a trace or an error, and a trace can be drawn.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(f, err)
	for _, name := range files {
		raw, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(string(raw))
	}
	f.Add("State 1: <Initial predicate>\n/\\ copying = {}\n/\\ krn = {1}\n/\\ dst = <<1>>\n")
	f.Add("State 1: <Initial predicate>\n/\\ pst = 1\n/\\ pinc = (abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz :> 1)\n\nState 2: <Accept>\n/\\ pst = 2\n")
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		d := Draw(trace, "", os.DirFS("testdata"))
		require.NotEmpty(t, d.Text())
		if utf8.ValidString(text) {
			require.True(t, strings.HasSuffix(d.SVG(), "</svg>\n"))
		}
	})
}
