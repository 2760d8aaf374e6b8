package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// target is one native fuzz target.
type target struct{ dir, name string }

// fuzzTargets finds every `func FuzzX(*testing.F)` in the test files under root, in order of folder and name.
func fuzzTargets(root string) ([]target, error) {
	var out []target
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "build") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") && len(f.Type.Params.List) == 1 {
				dir, err := filepath.Rel(root, filepath.Dir(path))
				if err != nil {
					return err
				}
				out = append(out, target{"./" + filepath.ToSlash(dir), f.Name.Name})
			}
		}
		return nil
	})
	return out, err
}

// fuzz runs each target: its corpus, then new inputs for the time that falls to it.
func (e *env) fuzz(each, all time.Duration) {
	targets, err := fuzzTargets(e.root)
	if err == nil && len(targets) == 0 {
		err = fmt.Errorf("no fuzz target found")
	}
	if err != nil {
		e.book("fuzz", err)
		return
	}
	each = max(time.Second, min(each, all/time.Duration(len(targets))).Truncate(time.Second))
	for _, t := range targets {
		e.command(t.dir+"."+t.name, nil, "go", "test", "-run=^"+t.name+"$", "-fuzz=^"+t.name+"$", "-fuzztime="+each.String(), t.dir)
	}
}

// rapid runs the property tests of every package that has some, with many cases.
func (e *env) rapid(checks int) {
	var list bytes.Buffer
	c := e.start(nil, "go", "list", "-f", "{{.ImportPath}} {{join .TestImports \",\"}}", "./...")
	c.Stdout = io.Writer(&list)
	if err := c.Run(); err != nil {
		e.book("go list", err)
		return
	}
	for line := range strings.Lines(list.String()) {
		if pkg, imports, _ := strings.Cut(line, " "); strings.Contains(imports, "pgregory.net/rapid") {
			e.goTest("-count=1", "-timeout=30m", pkg, fmt.Sprintf("-rapid.checks=%d", checks))
		}
	}
}
