package kvfence_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tree is the files that rules judge: their paths and contents, whatever holds them.
type tree struct {
	fsys  fs.FS
	files []string
}

// goFile is one parsed Go file.
type goFile struct {
	path string
	test bool
	set  *token.FileSet
	ast  *ast.File
	size int // lines
}

// parse reads every Go file of the tree outside of testdata.
func (t tree) parse() (out []goFile, err error) {
	for _, p := range t.files {
		if !strings.HasSuffix(p, ".go") || strings.Contains(p, "testdata/") {
			continue
		}
		src, err := fs.ReadFile(t.fsys, p)
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, p, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		out = append(out, goFile{p, strings.HasSuffix(p, "_test.go"), set, f, strings.Count(string(src), "\n")})
	}
	return out, nil
}

func (f goFile) imports() (out []string) {
	for _, i := range f.ast.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err == nil {
			out = append(out, p)
		}
	}
	return out
}

// checkImports refuses an import within the module that the table does not allow, and a package that the table does not have.
// Tests of a package may import more, but never what denied says.
func checkImports(files []goFile, allowed map[string][]string) (bad []string) {
	for _, f := range files {
		dir := path.Dir(f.path)
		rule := ruleOf(dir, allowed)
		if rule == "" && dir != "." {
			bad = append(bad, fmt.Sprintf("%s: no rule for package %s", f.path, dir))
			continue
		}
		for _, i := range f.imports() {
			in, ok := strings.CutPrefix(i, "kvfence/")
			if !ok || f.test && dir != "." && !strings.HasPrefix(dir, "model") || in == dir {
				continue
			}
			if !slices.ContainsFunc(allowed[rule], func(a string) bool { return a == "*" || in == a || strings.HasPrefix(in, a+"/") }) {
				bad = append(bad, fmt.Sprintf("%s: %s may not import %s", f.path, dir, in))
			}
		}
	}
	return bad
}

// ruleOf is the table's entry for a folder: its own or the nearest one above it.
func ruleOf(dir string, allowed map[string][]string) string {
	for d := dir; d != "."; d = path.Dir(d) {
		if _, ok := allowed[d]; ok {
			return d
		}
	}
	return ""
}

// checkPure refuses clocks, chance, sockets, logs, locks and files in the packages that are pure.
func checkPure(files []goFile, pure, denied []string) (bad []string) {
	for _, f := range files {
		if f.test || !slices.Contains(pure, path.Dir(f.path)) {
			continue
		}
		for _, i := range f.imports() {
			if slices.ContainsFunc(denied, func(d string) bool { return i == d || strings.HasPrefix(i, d+"/") }) {
				bad = append(bad, fmt.Sprintf("%s: a pure package imports %s", f.path, i))
			}
		}
	}
	return bad
}

// checkDependencies refuses what needs cgo or links libc in the list of the default build's packages ("go list -deps", one a
// line: import path, then the number of its cgo files).
func checkDependencies(list string, denied []string) (bad []string) {
	for line := range strings.Lines(list) {
		p, cgo, _ := strings.Cut(strings.TrimSpace(line), " ")
		if cgo != "" && cgo != "0" {
			bad = append(bad, p+" has cgo files")
		}
		if p == "C" || p == "runtime/cgo" || slices.ContainsFunc(denied, func(d string) bool { return p == d || strings.HasPrefix(p, d+"/") }) {
			bad = append(bad, p+" is in the default build")
		}
	}
	return bad
}

// checkPackageComments wants exactly one package comment in each package, outside of its tests.
func checkPackageComments(files []goFile) (bad []string) {
	docs, only := map[string][]string{}, map[string]bool{}
	for _, f := range files {
		dir := path.Dir(f.path)
		if f.test {
			continue
		}
		only[dir] = true
		if f.ast.Doc != nil && !strings.HasPrefix(f.ast.Doc.Text(), "go:build") {
			docs[dir] = append(docs[dir], f.path)
		}
	}
	for dir := range only {
		if len(docs[dir]) != 1 {
			bad = append(bad, fmt.Sprintf("%s: %d package comments (%s)", dir, len(docs[dir]), strings.Join(docs[dir], ", ")))
		}
	}
	slices.Sort(bad)
	return bad
}

// checkSizes wants files of at most maxFile lines, and functions outside of tests of at most maxFunc.
func checkSizes(files []goFile, maxFile, maxFunc int) (bad []string) {
	for _, f := range files {
		if f.size > maxFile {
			bad = append(bad, fmt.Sprintf("%s: %d lines, %d at most", f.path, f.size, maxFile))
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || f.test || fn.Body == nil {
				continue
			}
			if n := f.set.Position(fn.End()).Line - f.set.Position(fn.Pos()).Line + 1; n > maxFunc {
				bad = append(bad, fmt.Sprintf("%s: function %s has %d lines, %d at most", f.path, fn.Name.Name, n, maxFunc))
			}
		}
	}
	return bad
}

// checkGlobals refuses package variables that can change, outside of tests: one without a value, one that is a map, slice, pointer or
// channel, and one that is assigned to. Errors, patterns, tables of fixed size and what was found out once at the start remain.
func checkGlobals(files []goFile) (bad []string) {
	assigned := map[string]bool{} // folder and name
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok && a.Tok != token.DEFINE && !f.test {
				for _, l := range a.Lhs {
					if id, ok := l.(*ast.Ident); ok {
						assigned[path.Dir(f.path)+" "+id.Name] = true
					}
				}
			}
			return true
		})
	}
	for _, f := range files {
		for _, d := range f.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR || f.test {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec) // the parser puts nothing else under var
				name := v.Names[0].Name
				if name != "_" && (!fixed(v) || assigned[path.Dir(f.path)+" "+name]) {
					bad = append(bad, fmt.Sprintf("%s: package variable %s", f.path, name))
				}
			}
		}
	}
	return bad
}

// fixed reports whether v has a value that cannot grow, or is an embedded folder.
func fixed(v *ast.ValueSpec) bool {
	if sel, ok := v.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "FS" {
		return true
	}
	for _, e := range v.Values {
		switch e := e.(type) {
		case *ast.UnaryExpr:
			return e.Op != token.AND && e.Op != token.ARROW
		case *ast.CompositeLit:
			array, isArray := e.Type.(*ast.ArrayType)
			if _, isMap := e.Type.(*ast.MapType); isMap || isArray && array.Len == nil {
				return false
			}
		case *ast.CallExpr:
			if id, ok := e.Fun.(*ast.Ident); ok && (id.Name == "make" || id.Name == "new") {
				return false
			}
		}
	}
	return len(v.Values) > 0
}

// checkText refuses lines that match one of the patterns, in any text file.
func checkText(t tree, denied map[string]*regexp.Regexp) (bad []string, err error) {
	for _, p := range t.files {
		text, err := fs.ReadFile(t.fsys, p)
		if err != nil {
			return nil, err
		}
		if slices.Contains(text[:min(len(text), 8000)], 0) || p == "go.sum" {
			continue
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			for what, re := range denied {
				if re.MatchString(line) {
					bad = append(bad, fmt.Sprintf("%s:%d: %s", p, n, what))
				}
			}
		}
	}
	return bad, nil
}
