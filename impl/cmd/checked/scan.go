package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed cases.json
var data embed.FS

var errPage = errors.New("cannot describe the checks")

// publicCase is one fault of public systems that the engine must be immune to. Kind (a): two engines and injected faults are
// enough to show it; (b): it needs a real serving engine; (c): operational.
type publicCase struct {
	ID, Title, Kind, Report string
	Note                    string `json:",omitempty"` // what the tests do not cover, or how far the case goes here
}

func publicCases() ([]publicCase, error) {
	f, err := data.Open("cases.json")
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(f)
	d.DisallowUnknownFields()
	var list []publicCase
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("%w: cases.json: %w", errPage, err)
	}
	return list, f.Close()
}

// test is one test function. Fuzz targets are tests, too.
type test struct {
	name, file string // file from the root
	property   bool   // drawn cases (rapid)
	chaos      bool   // runs separate processes: build tag chaos
}

// tree is what the sources say.
type tree struct {
	tests    []test           // in order of file and place in it
	asserted map[int][]string // invariant to the files whose production code stops over it
}

var (
	casePattern  = regexp.MustCompile(`^TestCase(B\d+)_`)
	chaosPattern = regexp.MustCompile(`(?m)^//go:build .*\bchaos\b`)
)

// scan reads all Go files under root.
func scan(root string) (tree, error) {
	t := tree{asserted: map[int][]string{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "build", "bin"}, d.Name())):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return t.file(path, filepath.ToSlash(rel))
	})
	return t, err
}

func (t *tree) file(path, rel string) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(token.NewFileSet(), rel, src, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("%w: %w", errPage, err)
	}
	if !strings.HasSuffix(rel, "_test.go") {
		t.assertions(f, rel)
		return nil
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || fn.Name.Name == "TestMain" || len(fn.Type.Params.List) != 1 {
			continue
		}
		if strings.HasPrefix(fn.Name.Name, "Test") || strings.HasPrefix(fn.Name.Name, "Fuzz") {
			t.tests = append(t.tests, test{fn.Name.Name, rel, draws(fn), chaosPattern.Match(src)})
		}
	}
	return nil
}

// draws reports whether a test calls rapid.Check or rapid.MakeCheck.
func draws(fn *ast.FuncDecl) (found bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Check" || sel.Sel.Name == "MakeCheck") {
			pkg, ok := sel.X.(*ast.Ident)
			found = found || ok && pkg.Name == "rapid"
		}
		return !found
	})
	return found
}

// assertions notes where production code stops the node over a numbered invariant: x.broken(N, ...).
func (t *tree) assertions(f *ast.File, rel string) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "broken" {
			return true
		}
		if lit, ok := call.Args[0].(*ast.BasicLit); ok && lit.Kind == token.INT {
			if n, err := strconv.Atoi(lit.Value); err == nil && !slices.Contains(t.asserted[n], rel) {
				t.asserted[n] = append(t.asserted[n], rel)
			}
		}
		return true
	})
}

// byCase groups the tests by public case and reports names of cases that do not exist.
func (t *tree) byCase(cases []publicCase) (map[string][]test, error) {
	out := map[string][]test{}
	for _, x := range t.tests {
		m := casePattern.FindStringSubmatch(x.name)
		if m == nil {
			continue
		}
		if !slices.ContainsFunc(cases, func(c publicCase) bool { return c.ID == m[1] }) {
			return nil, fmt.Errorf("%w: %s in %s: there is no case %s", errPage, x.name, x.file, m[1])
		}
		out[m[1]] = append(out[m[1]], x)
	}
	return out, nil
}

// manifest is what this page needs of TLA/manifest.json.
type manifest struct {
	Configurations []struct {
		Name, About, Module string
		Long                bool
		Simulate            string
		Expect              struct {
			Result, Violated       string
			Trace, Distinct, Depth int
		}
	}
}

func readManifest(root string) (m manifest, err error) {
	raw, err := os.ReadFile(filepath.Join(root, "TLA", "manifest.json"))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("%w: TLA/manifest.json: %w", errPage, err)
	}
	return m, nil
}
