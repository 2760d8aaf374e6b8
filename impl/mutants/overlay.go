package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvfence/impl/overlay"
)

// Tag is the build tag of the switches; without it the rewritten files do not compile.
const Tag = "mutants"

// Packages are the folders whose guards and updates can be switched, in the order of their numbers.
func Packages() []string { return []string{"impl/pages", "impl/core"} }

// switchFile is added to each package. The number of the mutant that is on, and the file that learns which ones a run has come by,
// are variables of the environment of a test binary.
const switchFile = `//go:build mutants

package %s

import (
	"os"
	"strconv"
)

var mutantOn, mutantFile, mutantSeen = mutantInit()

func mutantInit() (int, *os.File, []bool) {
	on, err := strconv.Atoi(os.Getenv("KVFENCE_MUTANT"))
	if err != nil {
		on = -1
	}
	var seen *os.File
	if name := os.Getenv("KVFENCE_MUTANTS_SEEN"); name != "" {
		if seen, err = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
			panic(err)
		}
	}
	return on, seen, make([]bool, %d)
}

func mutant(n int) bool {
	if mutantFile != nil && !mutantSeen[n] {
		mutantSeen[n] = true
		if _, err := mutantFile.WriteString(strconv.Itoa(n) + "\n"); err != nil {
			panic(err)
		}
	}
	return n == mutantOn
}
`

// Sites finds every site of the packages below root, in order of package, file and place.
func Sites(root string) ([]Site, error) {
	files, err := readAll(root)
	if err != nil {
		return nil, err
	}
	var out []Site
	for _, f := range files {
		out = append(out, f.sites...)
	}
	return out, nil
}

func readAll(root string) (out []*file, err error) {
	n := 0
	for _, dir := range Packages() {
		paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			return nil, err
		}
		slices.Sort(paths)
		names := map[string]int{}
		for _, p := range paths {
			if strings.HasSuffix(p, "_test.go") {
				continue
			}
			src, err := os.ReadFile(p)
			if err != nil {
				return nil, err
			}
			f, err := readFile(filepath.ToSlash(filepath.Join(dir, filepath.Base(p))), filepath.Base(dir), src, n, names)
			if err != nil {
				return nil, err
			}
			n += len(f.sites)
			out = append(out, f)
		}
	}
	return out, nil
}

// WriteOverlay writes the rewritten packages into dir and returns the file for `go build -overlay`, the sites by number, and a hash
// of what it wrote.
func WriteOverlay(root, dir string) (path string, sites []Site, sum string, err error) {
	files, err := readAll(root)
	if err != nil {
		return "", nil, "", err
	}
	w, err := overlay.New(root, dir)
	if err != nil {
		return "", nil, "", err
	}
	for _, f := range files {
		sites = append(sites, f.sites...)
		if err := w.Put(f.path, f.rewritten()); err != nil {
			return "", nil, "", err
		}
	}
	for _, p := range Packages() {
		text := fmt.Sprintf(switchFile, filepath.Base(p), len(sites))
		if err := w.Put(p+"/mutants_switch.go", []byte(text)); err != nil {
			return "", nil, "", err
		}
	}
	if err := putDifferences(root, os.ReadFile, w.Put); err != nil {
		return "", nil, "", err
	}
	path, sum, err = w.Close()
	return path, sites, sum, err
}

// rewritten is the file with its switches.
func (f *file) rewritten() []byte { return overlay.Rewritten(Tag, f.path, f.src, f.edits) }
