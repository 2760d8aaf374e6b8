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
	"regexp"
	"runtime"
	"strings"
	"sync"
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

// lanes is how many fuzz targets run beside each other, each with so many workers that all of them together use the machine. A lane
// is never idle while another target is built, so that ten seconds for each of two dozen targets fit into three minutes on two cores.
const lanes = 2

// overhead is what a target costs beside its time: to link it, to start it, to run its corpus.
const overhead = 3 * time.Second

// fuzz runs each target: its corpus, then new inputs for the time that falls to it. What the engine calls interesting is hardly made
// smaller: with its default of a minute for each, a target whose coverage varies a little does nothing else.
func (e *env) fuzz(each, all time.Duration) {
	targets, err := fuzzTargets(e.root)
	if err == nil && len(targets) == 0 {
		err = fmt.Errorf("no fuzz target found")
	}
	if err != nil {
		e.book("fuzz", err)
		return
	}
	each = share(each, all, len(targets))
	workers := max(1, runtime.GOMAXPROCS(0)/lanes)
	errs, next := make([]error, len(targets)), make(chan int)
	var wg sync.WaitGroup
	for range lanes {
		wg.Go(func() {
			for i := range next {
				// What a target says comes in one piece, so that two do not speak into each other.
				said, err := e.fuzzOne(targets[i], each, workers)
				if err != nil && cutOff.MatchString(said) {
					fmt.Fprintf(e.out, "%s$ # its time was over in the middle of an input: once more\n", said)
					said, err = e.fuzzOne(targets[i], each, workers)
				}
				_, _ = io.WriteString(e.out, said)
				errs[i] = err
			}
		})
	}
	for i := range targets {
		next <- i
	}
	close(next)
	wg.Wait()
	for i, t := range targets {
		e.book(t.dir+"."+t.name, errs[i])
	}
}

// cutOff is what a target says that found nothing and was stopped by the end of its time in the middle of an input: the engine of Go 1.26
// calls that a failure now and then (go.dev/issue/75804). Another failure has more to say.
var cutOff = regexp.MustCompile(`now fuzzing with \d+ workers\n(fuzz: elapsed: .*\n)*--- FAIL: \w+ \([0-9.]+s\)\n    context deadline exceeded\nFAIL\n`)

// fuzzOne runs one target and returns what it said.
func (e *env) fuzzOne(t target, each time.Duration, workers int) (string, error) {
	var said bytes.Buffer
	quiet := &env{ctx: e.ctx, root: e.root, out: &said}
	c := quiet.start(nil, "go", "test", "-run=^"+t.name+"$", "-fuzz=^"+t.name+"$", "-fuzztime="+each.String(),
		"-fuzzminimizetime=100x", fmt.Sprintf("-parallel=%d", workers), t.dir)
	c.Stdout = c.Stderr
	err := c.Run()
	return said.String(), err
}

// share is the time for each of n targets, whole seconds, at least one: what is wanted, or what all leaves for it.
func share(each, all time.Duration, n int) time.Duration {
	rounds := time.Duration((n + lanes - 1) / lanes)
	return max(time.Second, min(each, all/rounds-overhead).Truncate(time.Second))
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
