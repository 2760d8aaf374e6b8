package overlay

import (
	"cmp"
	"path/filepath"
	"slices"
)

// Edit is text to be put in at an offset of a file. Of several at one offset those that close come first, inner ones before outer ones,
// then those that open, outer ones before inner ones: Seq rises from outer to inner.
type Edit struct {
	At    int
	Close bool
	Seq   int
	Text  string
}

// Rewritten is a source file with its edits, for builds with a tag only, with its lines where they were. path is the file's.
func Rewritten(tag, path string, src []byte, edits []Edit) []byte {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b Edit) int {
		switch {
		case a.At != b.At:
			return cmp.Compare(a.At, b.At)
		case a.Close != b.Close && a.Close:
			return -1
		case a.Close != b.Close:
			return 1
		case a.Close:
			return cmp.Compare(b.Seq, a.Seq)
		}
		return cmp.Compare(a.Seq, b.Seq)
	})
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, src[at:e.At]...), e.Text...)
		at = e.At
	}
	return append([]byte("//go:build "+tag+"\n\n//line "+filepath.Base(path)+":1\n"), append(out, src[at:]...)...)
}
