package mutants

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"kvfence/impl/overlay"
)

// Kind is what a mutant of the core drops.
type Kind string

// The kinds.
const (
	Guard     Kind = "guard"     // a whole condition: a refusal never refuses, a condition of an update always holds
	Operand   Kind = "operand"   // one part of && (then true) or of || (then false)
	Update    Kind = "update"    // one statement that changes the state of a machine or what it sends
	Assertion Kind = "assertion" // a condition that only an invariant's assertion reads
)

// Site is one place of the core that can be switched off at run time.
type Site struct {
	Name string // package, function, kind, text; of several alike the second is "#2"
	Kind Kind
	Func string // package.Receiver.function
	Hash string // of the function's text without comments
	File string // relative to the repository
	Line int
}

// file is one source file while it is read.
type file struct {
	set   *token.FileSet
	ast   *ast.File
	src   []byte
	path  string
	pkg   string
	first int // number of the first site
	sites []Site
	edits []overlay.Edit
	names map[string]int
	chain map[ast.Expr]bool // conditions that a longer one has covered

	fn     string // function that is being read
	hash   string
	assert bool // it is an assertion's
}

// readFile finds the sites of one file; names counts names over the whole package.
func readFile(path, pkg string, src []byte, first int, names map[string]int) (*file, error) {
	f := &file{set: token.NewFileSet(), src: src, path: path, pkg: pkg, first: first, names: names, chain: map[ast.Expr]bool{}}
	var err error
	if f.ast, err = parser.ParseFile(f.set, path, src, parser.SkipObjectResolution); err != nil {
		return nil, err
	}
	for _, d := range f.ast.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || apart(path, fn.Name.Name) {
			continue
		}
		f.fn = pkg + "." + receiver(fn) + fn.Name.Name
		f.assert = strings.HasPrefix(fn.Name.Name, "assert") || fn.Name.Name == "touch"
		if f.hash, err = textHash(fn); err != nil {
			return nil, err
		}
		ast.Inspect(fn.Body, f.visit)
	}
	return f, nil
}

// apart is what is no part of a machine at work: what runs before it starts (configuration, constructors), and what only looks at it
// (status, texts, the checkers of the ledgers, which have planted cases of their own).
func apart(path, fn string) bool {
	base := filepath.Base(path)
	return strings.HasSuffix(base, "config.go") || base == "check.go" || base == "inspect.go" || strings.HasPrefix(fn, "New") ||
		slices.Contains([]string{"String", "Error", "Status"}, fn)
}

func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) != 1 {
		return ""
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}

// textHash is over a node as gofmt prints it, without comments: an edit of a comment or of another function changes nothing.
func textHash(n ast.Node) (string, error) {
	if fn, ok := n.(*ast.FuncDecl); ok {
		bare := *fn
		bare.Doc = nil
		n = &bare
	}
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), n); err != nil {
		return "", err
	}
	return shortHash(strings.Join(strings.Fields(b.String()), " ")), nil
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

func (f *file) offset(p token.Pos) int { return f.set.Position(p).Offset }

func (f *file) text(n ast.Node) string {
	return strings.Join(strings.Fields(string(f.src[f.offset(n.Pos()):f.offset(n.End())])), " ")
}

// site books a mutant and returns its number.
func (f *file) site(kind Kind, n ast.Node, text string) int {
	if f.assert {
		kind = Assertion
	}
	f.sites = append(f.sites, Site{Name: unique(f.names, f.fn, kind, text), Kind: kind, Func: f.fn, Hash: f.hash, File: f.path, Line: f.set.Position(n.Pos()).Line})
	return f.first + len(f.sites) - 1
}

// wrap puts text before and behind a node.
func (f *file) wrap(n ast.Node, open, close string) {
	seq := len(f.edits)
	f.edits = append(f.edits, overlay.Edit{At: f.offset(n.Pos()), Seq: seq, Text: open}, overlay.Edit{At: f.offset(n.End()), Close: true, Seq: seq, Text: close})
}

// never and always are the two ways in which a condition is dropped.
func (f *file) never(kind Kind, e ast.Expr) {
	f.wrap(e, "(", fmt.Sprintf(" && !mutant(%d))", f.site(kind, e, f.text(e))))
}

func (f *file) always(kind Kind, e ast.Expr) {
	f.wrap(e, "(", fmt.Sprintf(" || mutant(%d))", f.site(kind, e, f.text(e))))
}

func unparen(e ast.Expr) ast.Expr {
	for {
		p, ok := e.(*ast.ParenExpr)
		if !ok {
			return e
		}
		e = p.X
	}
}

// logical is && or ||, else 0.
func logical(e ast.Expr) token.Token {
	if b, ok := unparen(e).(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) {
		return b.Op
	}
	return 0
}
