package mutants

import (
	"bytes"
	"embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// differences are tests that exist in the build with switches only. They assert nothing by themselves: they hash everything that the
// machines do in a run, and the lab compares the hash with that of the run without a mutant.
//
//go:embed testdata/*_difference.txt
var differences embed.FS

// differenceTests is how many a suite has.
func differenceTests(suite string) int { return map[string]int{"core": 64, "sim": 12}[suite] }

const differencePrefix = "TestDifference_"

var differenceLine = regexp.MustCompile(`(?m)^DIFFERENCE (\S+)$`)

// putDifferences adds the tests of differences to the overlay, and to the joint world of the core's tests a hook that sees every step.
func putDifferences(root string, read func(string) ([]byte, error), put func(string, []byte) error) error {
	lists, err := madeLists(root)
	if err != nil {
		return err
	}
	for _, s := range []string{"core", "sim"} {
		text, err := differences.ReadFile("testdata/" + s + "_difference.txt")
		if err != nil {
			return err
		}
		var b bytes.Buffer
		b.Write(text)
		if s == "core" {
			b.WriteString(lists)
		}
		for i := range differenceTests(s) {
			fmt.Fprintf(&b, "\nfunc %s%03d(t *testing.T) { differ(t, %d) }\n", differencePrefix, i, i)
		}
		if err := put("impl/"+s+"/mutants_difference_test.go", b.Bytes()); err != nil {
			return err
		}
	}
	const hooked, hook = "impl/core/joint_trace_test.go", "func (w *world) trace(who string, ev any, acts []Action) {\n"
	src, err := read(filepath.Join(root, hooked))
	if err != nil {
		return err
	}
	if strings.Count(string(src), hook) != 1 {
		return fmt.Errorf("%w: %s has no place for the hook", ErrBase, hooked)
	}
	return put(hooked, []byte(strings.Replace(string(src), hook, hook+"\tif differing != nil {\n\t\tdiffering.saw(who, ev, acts, nil)\n\t}\n", 1)))
}

// madeLists are functions that give an empty value of every event, every message between ranks of a side, and every message of peers.
func madeLists(root string) (string, error) {
	core, err := parseFolder(filepath.Join(root, "impl/core"))
	if err != nil {
		return "", err
	}
	wire, err := parseFolder(filepath.Join(root, "spec"))
	if err != nil {
		return "", err
	}
	list := func(name, of, prefix string, names []string) string {
		slices.Sort(names)
		text := fmt.Sprintf("\nfunc %s() []%s {\n\treturn []%s{", name, of, of)
		for _, n := range names {
			text += prefix + n + "{}, "
		}
		return text + "}\n}\n"
	}
	return list("madeEvents", "Event", "", embedding(core, "event")) + list("madeSides", "SideMsg", "", embedding(core, "side")) +
		list("madeMessages", "spec.Message", "spec.", withMethod(wire, "Kind")), nil
}

func parseFolder(dir string) (out []*ast.File, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// embedding is the exported struct types that embed another.
func embedding(files []*ast.File, other string) (out []string) {
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					if id, ok := field.Type.(*ast.Ident); ok && len(field.Names) == 0 && id.Name == other {
						out = append(out, spec.Name.Name)
					}
				}
			}
			return true
		})
	}
	return out
}

// withMethod is the exported types with a method of that name.
func withMethod(files []*ast.File, name string) (out []string) {
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == name {
				if of := strings.TrimSuffix(receiver(fn), "."); ast.IsExported(of) {
					out = append(out, of)
				}
			}
		}
	}
	return out
}

func isDifference(test string) bool { return strings.HasPrefix(test, differencePrefix) }
