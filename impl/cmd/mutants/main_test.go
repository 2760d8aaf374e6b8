package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What make mutants leaves behind is no package of the module: go vet ./... after it sees the sources and nothing else.
func TestBuildFolder_AfterARun_IsNoPackage(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o644))
	}
	write("go.mod", "module m\n\ngo 1.26\n")
	write("a/a.go", "package a\n")
	write(filepath.Join(buildFolder, "hash", "a.go"), "package a\n")
	list := exec.Command("go", "list", "./...")
	list.Dir = root
	out, err := list.Output()
	require.NoError(t, err)
	require.Equal(t, "m/a\n", string(out))
}
