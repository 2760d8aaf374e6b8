package tlc

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpen_Mistakes_AreRefused(t *testing.T) {
	for name, change := range map[string][2]string{
		"unknown field": {`"about": "Three`, `"abuot": "Three`},
		"unknown module": {`"module": "Count",
      "spec"`, `"module": "Clock",
      "spec"`},
		"name taken twice": {`"name": "holds"`, `"name": "breaks-step"`},
		"unknown kind":     {`"kind": "simulation"`, `"kind": "emulation"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS("testdata")))
			replace(t, filepath.Join(dir, manifestFile), change[0], change[1])
			_, err := Open(dir)
			require.ErrorIs(t, err, ErrManifest)
		})
	}
}

func TestOpen_FolderWithoutManifest_SaysSo(t *testing.T) {
	_, err := Open(t.TempDir())
	require.ErrorIs(t, err, ErrNoSpecs)
}

// A binary far from the sources has the specifications in itself, the same as in the folder.
func TestOpen_NoFolder_TakesTheBuiltInOnes(t *testing.T) {
	t.Chdir(t.TempDir())
	s, err := Open("")
	require.NoError(t, err)
	require.Equal(t, "the program itself", s.Where())
	require.NotEmpty(t, s.Configurations)
	require.ErrorIs(t, s.Save(), ErrBuiltIn)
	require.ErrorIs(t, s.Check(context.Background(), Options{Write: true}, io.Discard), ErrBuiltIn)
}

// The committed .cfg files and the table are the manifest's; TLC need not run to see that.
func TestSpecs_CommittedFiles_AreTheManifests(t *testing.T) {
	t.Chdir("../..")
	s, err := Open("")
	require.NoError(t, err)
	require.Equal(t, DefaultDir, s.Where())
	require.NoError(t, s.compareTable())
	for i := range s.Configurations {
		text, err := s.ConfigText(&s.Configurations[i])
		require.NoError(t, err)
		require.Empty(t, s.compareFile(&s.Configurations[i], text))
	}
}

func TestChoose_WholeName_TakesLongOnes_PartDoesNot(t *testing.T) {
	m := Manifest{Configurations: []Configuration{{Name: "a"}, {Name: "ab", Long: true}, {Name: "abc"}, {Name: "d", Long: true}}}
	names := func(long bool, asked ...string) (got []string, skipped int) {
		chosen, skipped, err := m.choose(asked, long)
		require.NoError(t, err)
		for _, c := range chosen {
			got = append(got, c.Name)
		}
		return got, skipped
	}
	got, skipped := names(false)
	require.Equal(t, []string{"a", "abc"}, got)
	require.Equal(t, 2, skipped)
	got, skipped = names(true)
	require.Len(t, got, 4)
	require.Zero(t, skipped)
	got, _ = names(false, "ab")
	require.Equal(t, []string{"ab"}, got)
	got, skipped = names(false, "b", "d")
	require.Equal(t, []string{"abc", "d"}, got)
	require.Equal(t, 1, skipped)
	_, _, err := m.choose([]string{"a", "x"}, false)
	require.ErrorIs(t, err, ErrNoConfiguration)
}
