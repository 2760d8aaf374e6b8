package spec

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goNames are the exported names of the package in dir: types, fields as Type.Field, constants, functions.
func goNames(t *testing.T, dir string) map[string]bool {
	out := map[string]bool{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && path != dir {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		for _, decl := range f.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				out[decl.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range decl.Specs {
					addNames(out, s)
				}
			}
		}
		return nil
	}))
	return out
}

func addNames(out map[string]bool, s ast.Spec) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			out[n.Name] = true
		}
	case *ast.TypeSpec:
		out[s.Name.Name] = true
		if st, ok := s.Type.(*ast.StructType); ok {
			for _, f := range st.Fields.List {
				for _, n := range f.Names {
					out[s.Name.Name+"."+n.Name] = true
				}
			}
		}
	}
}

// Each Go name of the glossary exists; each term stands there once.
func TestGlossary_GoNames_Exist(t *testing.T) {
	names := map[string]map[string]bool{"": goNames(t, "."), "pages": goNames(t, "../impl/pages"), "transport": goNames(t, "../impl/transport")}
	rows, seen := glossaryRows(t), map[string]bool{}
	require.Greater(t, len(rows), 40)
	for _, r := range rows {
		require.Len(t, r, 6, "%v", r)
		require.False(t, seen[r[0]], r[0])
		seen[r[0]] = true
		name, pkg := r[3], ""
		if name == "" {
			continue
		}
		if head, tail, ok := strings.Cut(name, "."); ok && names[head] != nil {
			pkg, name = head, tail
		}
		require.True(t, names[pkg][name], "%s: no %s in package %q", r[0], name, pkg)
	}
}

// Each TLA+ name of the glossary is a word of a module in TLA, or a module.
func TestGlossary_SpecificationNames_Exist(t *testing.T) {
	modules, err := filepath.Glob("../TLA/*.tla")
	require.NoError(t, err)
	words := map[string]bool{}
	for _, path := range modules {
		words[filepath.Base(path)] = true
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, w := range regexp.MustCompile(`\w+`).FindAllString(string(text), -1) {
			words[w] = true
		}
	}
	found := 0
	for _, r := range glossaryRows(t) {
		for _, name := range strings.FieldsFunc(r[2], func(c rune) bool { return strings.ContainsRune("`, ", c) }) {
			require.True(t, words[name], "%s: no %s in TLA", r[0], name)
			found++
		}
	}
	require.Greater(t, found, 40)
}

func glossaryRows(t *testing.T) (rows [][]string) {
	for _, r := range docRows(t, "glossary.md", "") {
		if r[0] != "term" && !strings.HasPrefix(r[0], "---") {
			rows = append(rows, r)
		}
	}
	return rows
}
