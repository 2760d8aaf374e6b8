package fuzz

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// source is what the tests look at: the functions that are there, those that look like parsers, and the fuzz targets, all by folder and name.
type source struct {
	funcs   map[string]bool
	parsers map[string]bool
	targets map[string]bool
}

// looksLikeParser: a name that says so, and a parameter of bytes, text or a stream.
var looksLikeParser = regexp.MustCompile(`^(Parse|parse|Read|read|Decode|decode|Unmarshal|unmarshal|get|take|strict|scan|Load|load)([A-Z]|$)`)

// isForeign: types that carry bytes from outside.
func isForeign(t ast.Expr) bool {
	switch x := t.(type) {
	case *ast.Ident:
		return x.Name == "string"
	case *ast.ArrayType:
		id, ok := x.Elt.(*ast.Ident)
		return ok && id.Name == "byte" && x.Len == nil
	case *ast.StarExpr:
		return isForeign(x.X)
	case *ast.SelectorExpr:
		return slices.Contains([]string{"Reader", "RawMessage", "UnixConn", "Conn"}, x.Sel.Name)
	}
	return false
}

// look reads all Go files below root.
func look(t *testing.T, root string) source {
	s := source{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "build" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(p))
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				s.add(filepath.ToSlash(dir), strings.HasSuffix(p, "_test.go"), f)
			}
		}
		return err
	})
	require.NoError(t, err)
	return s
}

func (s source) add(dir string, test bool, f *ast.FuncDecl) {
	name := dir + "." + f.Name.Name
	if f.Recv != nil {
		at := f.Recv.List[0].Type
		if star, ok := at.(*ast.StarExpr); ok {
			at = star.X
		}
		if g, ok := at.(*ast.IndexExpr); ok {
			at = g.X
		}
		id, ok := at.(*ast.Ident)
		if !ok {
			return
		}
		name = dir + "." + id.Name + "." + f.Name.Name
	}
	if test {
		if f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") && len(f.Type.Params.List) == 1 {
			s.targets[name] = true
		}
		return
	}
	s.funcs[name] = true
	if looksLikeParser.MatchString(f.Name.Name) && slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool { return isForeign(p.Type) }) {
		s.parsers[name] = true
	}
}

// findings compares a table with the sources.
func findings(s source, table []Parser, trusted map[string]string) (bad []string) {
	listed, used := map[string]bool{}, map[string]bool{}
	for _, p := range table {
		if listed[p.Func] {
			bad = append(bad, p.Func+" stands twice")
		}
		listed[p.Func] = true
		if !s.funcs[p.Func] {
			bad = append(bad, p.Func+" is not there")
		}
		if (len(p.Targets) == 0) == (p.Why == "") {
			bad = append(bad, p.Func+" has neither a target nor a reason, or both")
		}
		for _, target := range p.Targets {
			used[target] = true
			if !s.targets[target] {
				bad = append(bad, p.Func+": its target "+target+" is not there")
			}
		}
	}
	for _, target := range slices.Sorted(maps.Keys(s.targets)) {
		if !used[target] {
			bad = append(bad, "target "+target+" stands at no parser")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.parsers)) {
		if !listed[name] && !slices.ContainsFunc(slices.Collect(maps.Keys(trusted)), func(dir string) bool { return strings.HasPrefix(name, dir+"/") || strings.HasPrefix(name, dir+".") }) {
			bad = append(bad, name+" looks like a parser and is not listed")
		}
	}
	return bad
}

func TestParsers_EachOneInTheSources_HasATargetOrAReason(t *testing.T) {
	s := look(t, "..")
	require.Greater(t, len(s.parsers), 40, "the finder is blind")
	require.Empty(t, findings(s, Parsers(), Trusted()))
	for dir := range Trusted() {
		require.DirExists(t, path.Join("..", dir))
	}
}

func TestParsers_PlantedOmissions_AreRefused(t *testing.T) {
	s := source{
		funcs:   map[string]bool{"a.Parse": true, "a.read": true, "own.load": true, "a.b.take": true},
		parsers: map[string]bool{"a.Parse": true, "a.read": true, "own.load": true, "a.b.take": true},
		targets: map[string]bool{"a.FuzzParse": true, "a.FuzzOther": true},
	}
	table := []Parser{
		{Func: "a.Parse", Targets: []string{"a.FuzzParse"}}, {Func: "a.read"}, {Func: "a.Gone", Targets: []string{"a.FuzzParse"}}, {Func: "a.Parse", Targets: []string{"a.FuzzLost"}},
	}
	require.Equal(t, []string{
		"a.read has neither a target nor a reason, or both", "a.Gone is not there", "a.Parse stands twice", "a.Parse: its target a.FuzzLost is not there",
		"target a.FuzzOther stands at no parser", "a.b.take looks like a parser and is not listed",
	}, findings(s, table, map[string]string{"own": "ours"}))
}
