package plants

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvfence/impl/overlay"
)

// Tag is the build tag of the switches; without it the rewritten files do not compile.
const Tag = "plants"

// folders are the packages that plants may be in, by the name that edits use.
func folders() map[string]string {
	return map[string]string{"pages": "impl/pages", "core": "impl/core", "transport": "impl/transport", "mem": "impl/transport/mem", "tcp": "impl/transport/tcp", "sim": "impl/sim", "node": "impl/node"}
}

// switchFile is added to each package that has plants. Which are on is a variable of the environment, by their numbers.
const switchFile = `//go:build plants

package %s

import (
	"os"
	"strconv"
	"strings"
)

var plantsOn = func() (on [%d]bool) {
	for _, n := range strings.Fields(os.Getenv("` + Environment + `")) {
		if k, err := strconv.Atoi(n); err == nil && k >= 0 && k < len(on) {
			on[k] = true
		}
	}
	return on
}()

func planted(n int) bool { return plantsOn[n] }

func plantedValue[T any](on bool, planted, true T) T {
	if on {
		return planted
	}
	return true
}
`

// Environment is the variable that says which plants are on: their numbers, with spaces between them.
const Environment = "KVFENCE_PLANTS"

// source is one package's functions.
type source struct {
	dir   string
	files map[string][]byte // by path
	funcs map[string]place  // by name within the package
}

type place struct {
	path   string
	lo, hi int
}

func readSource(root, dir string) (*source, error) {
	s := &source{dir: dir, files: map[string][]byte{}, funcs: map[string]place{}}
	paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		name := filepath.ToSlash(filepath.Join(dir, filepath.Base(p)))
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.files[name] = src
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				s.funcs[receiver(fn)+fn.Name.Name] = place{name, set.Position(fn.Body.Pos()).Offset, set.Position(fn.Body.End()).Offset}
			}
		}
	}
	return s, nil
}

func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) != 1 {
		return ""
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}

// squeeze is a text with one space for each run of white space, and where each of its bytes was.
func squeeze(src []byte) (text []byte, at []int) {
	space := true
	for i, b := range src {
		switch b {
		case ' ', '\t', '\n', '\r':
			if !space {
				text, at = append(text, ' '), append(at, i)
			}
			space = true
		default:
			text, at = append(text, b), append(at, i)
			space = false
		}
	}
	return text, append(at, len(src))
}

// spot is an edit at its place.
type spot struct {
	path        string
	lo, hi      int
	open, close string
}

// locate finds the place of an edit of plant n.
func (s *source) locate(e Edit, n int) (spot, error) {
	_, name, _ := strings.Cut(e.In, ".")
	p, ok := s.funcs[name]
	if !ok {
		return spot{}, fmt.Errorf("%w: there is no function %s", ErrPlant, e.In)
	}
	text, at := squeeze(s.files[p.path][p.lo:p.hi])
	old, _ := squeeze([]byte(strings.TrimSpace(e.Old)))
	if c := strings.Count(string(text), string(old)); c != 1 || len(old) == 0 {
		return spot{}, fmt.Errorf("%w: %q stands %d times in %s, once is wanted", ErrPlant, e.Old, c, e.In)
	}
	i := strings.Index(string(text), string(old))
	open, close, err := e.around(n)
	return spot{p.path, p.lo + at[i], p.lo + at[i+len(old)-1] + 1, open, close}, err
}

// around is the text before and behind what stands there.
func (e Edit) around(n int) (open, close string, err error) {
	on := fmt.Sprintf("planted(%d)", n)
	if (e.How == Never || e.How == Always || e.How == Skip) != (e.New == "") {
		return "", "", fmt.Errorf("%w: %s: what %s has the text %q", ErrPlant, e.In, e.How, e.New)
	}
	switch e.How {
	case Never:
		return "(!" + on + " && (", "))", nil
	case Always:
		return "(" + on + " || (", "))", nil
	case Skip:
		return "if !" + on + " { ", " }", nil
	case Instead:
		return "if " + on + " { " + e.New + " } else { ", " }", nil
	case First:
		return "if " + on + " { " + e.New + " }; ", "", nil
	case Value:
		return "plantedValue(" + on + ", " + e.New + ", ", ")", nil
	}
	return "", "", fmt.Errorf("%w: %s: there is no way %q", ErrPlant, e.In, e.How)
}

// WriteOverlay writes the packages with all plants into dir and returns the file for `go build -overlay`, and a hash of what it wrote. The
// error joins every plant whose place is not there.
func WriteOverlay(root, dir string, all []Plant) (path, sum string, err error) {
	w, err := overlay.New(root, dir)
	if err != nil {
		return "", "", err
	}
	sources, spots := map[string]*source{}, map[string][]spot{}
	var bad []error
	for n, p := range all {
		for _, e := range p.Edits {
			pkg, _, _ := strings.Cut(e.In, ".")
			s := sources[pkg]
			if s == nil {
				if s, err = readSource(root, folders()[pkg]); err != nil {
					return "", "", err
				}
				sources[pkg] = s
			}
			at, err := s.locate(e, n)
			if err != nil {
				bad = append(bad, fmt.Errorf("%s: %w", p.Name, err))
				continue
			}
			spots[at.path] = append(spots[at.path], at)
		}
	}
	if err := errors.Join(bad...); err != nil {
		return "", "", err
	}
	for _, pkg := range slices.Sorted(maps.Keys(sources)) {
		s := sources[pkg]
		for _, path := range slices.Sorted(maps.Keys(s.files)) {
			if len(spots[path]) == 0 {
				continue
			}
			edits, err := nested(path, spots[path])
			if err != nil {
				return "", "", err
			}
			bad = append(bad, w.Put(path, overlay.Rewritten(Tag, path, s.files[path], edits)))
		}
		bad = append(bad, w.Put(s.dir+"/plants_switch.go", fmt.Appendf(nil, switchFile, pkg, len(all))))
	}
	if err := errors.Join(bad...); err != nil {
		return "", "", err
	}
	return w.Close()
}

// nested orders the edits of a file from outer to inner. Two that cross are refused.
func nested(path string, spots []spot) (out []overlay.Edit, err error) {
	slices.SortStableFunc(spots, func(a, b spot) int { return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(b.hi, a.hi)) })
	for i, s := range spots {
		for _, o := range spots[:i] {
			if o.lo < s.lo && s.lo < o.hi && o.hi < s.hi {
				return nil, fmt.Errorf("%w: two places of %s cross each other", ErrPlant, path)
			}
		}
		out = append(out, overlay.Edit{At: s.lo, Seq: i, Text: s.open}, overlay.Edit{At: s.hi, Close: true, Seq: i, Text: s.close})
	}
	return out, nil
}
