// Package canary is a parser with a bug that must be found: fuzz/canary_test.go runs it to see that the fuzz engine is alive. The
// frames are those of a control message cut down: four bytes of magic, a kind, a count, and so many entries of three bytes.
package canary

import (
	"errors"
	"testing"
)

var errFrame = errors.New("not a frame")

const (
	entryBytes = 3
	maxEntries = 4
)

// parse reads a frame into a table of maxEntries. most is how many entries it lets pass: more than the table has is the planted bug.
func parse(b []byte, most int) (table [maxEntries][entryBytes]byte, err error) {
	if len(b) < 6 || b[0] != 'k' || b[1] != 'v' || b[2] != 'f' || b[3] != 'n' {
		return table, errFrame
	}
	n := int(b[5])
	if b[4] != 7 || n > most || len(b) < 6+n*entryBytes {
		return table, errFrame
	}
	for i := range n {
		copy(table[i][:], b[6+i*entryBytes:])
	}
	return table, nil
}

func fuzz(f *testing.F, most int) {
	f.Add([]byte("kvf?\x07\x01abcdefghijklmno"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := parse(b, most); err != nil && err != errFrame {
			t.Fatal(err)
		}
	})
}

// FuzzPlanted lets one entry too many pass.
func FuzzPlanted(f *testing.F) { fuzz(f, maxEntries+1) }

// FuzzSound is the same without the bug.
func FuzzSound(f *testing.F) { fuzz(f, maxEntries) }
