package mutants

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
func WriteOverlay(root, dir string) (overlay string, sites []Site, sum string, err error) {
	files, err := readAll(root)
	if err != nil {
		return "", nil, "", err
	}
	if root, err = filepath.Abs(root); err != nil {
		return "", nil, "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", nil, "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, "", err
	}
	replace, h := map[string]string{}, sha256.New()
	put := func(path string, text []byte) error {
		to := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		replace[filepath.Join(root, path)] = to
		fmt.Fprintf(h, "%s %d\n%s", path, len(text), text)
		return os.WriteFile(to, text, 0o644)
	}
	for _, f := range files {
		sites = append(sites, f.sites...)
		if err := put(f.path, f.rewritten()); err != nil {
			return "", nil, "", err
		}
	}
	for _, p := range Packages() {
		text := fmt.Sprintf(switchFile, filepath.Base(p), len(sites))
		if err := put(p+"/mutants_switch.go", []byte(text)); err != nil {
			return "", nil, "", err
		}
	}
	if err := putDifferences(root, os.ReadFile, put); err != nil {
		return "", nil, "", err
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", nil, "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, sites, hex.EncodeToString(h.Sum(nil)[:4]), os.WriteFile(overlay, b, 0o644)
}

// rewritten is the file with its switches, line by line where it was.
func (f *file) rewritten() []byte {
	edits := slices.Clone(f.edits)
	slices.SortStableFunc(edits, func(a, b edit) int {
		switch {
		case a.at != b.at:
			return cmp.Compare(a.at, b.at)
		case a.close != b.close && a.close:
			return -1
		case a.close != b.close:
			return 1
		case a.close:
			return cmp.Compare(b.seq, a.seq)
		}
		return cmp.Compare(a.seq, b.seq)
	})
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, f.src[at:e.at]...), e.text...)
		at = e.at
	}
	return append([]byte("//go:build mutants\n\n//line "+filepath.Base(f.path)+":1\n"), append(out, f.src[at:]...)...)
}
