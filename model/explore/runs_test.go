package explore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func readDir(dir string) ([]os.DirEntry, error) { return os.ReadDir(dir) }

// writeRun writes keys of one word with their links.
func writeRun(t *testing.T, dir, name string, stride int, records ...[2]uint64) runFile {
	t.Helper()
	w, err := newRunWriter(filepath.Join(dir, name), stride, true)
	require.NoError(t, err)
	for _, r := range records {
		require.NoError(t, w.add([]uint64{r[0]}, r[1]))
	}
	f, err := w.close()
	require.NoError(t, err)
	return f
}

func TestMerge_EqualKeys_FirstRunWins(t *testing.T) {
	dir := t.TempDir()
	runs := []runFile{writeRun(t, dir, "a", 1, [2]uint64{1, 10}, [2]uint64{5, 11}), writeRun(t, dir, "b", 2, [2]uint64{1, 20}, [2]uint64{2, 21}, [2]uint64{5, 22}), writeRun(t, dir, "c", 1)}
	f, err := mergeRuns(filepath.Join(dir, "all"), 2, runs, func(f runFile) bool { return f.path == runs[0].path })
	require.NoError(t, err)
	require.Equal(t, 3, f.n)
	for n, want := range [][2]uint64{{1, 10}, {2, 21}, {5, 11}} {
		key, link, err := f.record(n)
		require.NoError(t, err)
		require.Equal(t, []uint64{want[0], 0}, key)
		require.Equal(t, want[1], link)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2) // the one to keep, and the result
}

func TestRuns_CutShort_IsRefused(t *testing.T) {
	dir := t.TempDir()
	f := writeRun(t, dir, "a", 1, [2]uint64{1, 10}, [2]uint64{5, 11})
	require.NoError(t, os.Truncate(f.path, 24))
	r, err := f.open()
	require.NoError(t, err)
	require.ErrorIs(t, r.next(), ErrRuns)
	require.NoError(t, r.file.Close())
	_, _, err = f.record(1)
	require.ErrorIs(t, err, ErrRuns)
}
