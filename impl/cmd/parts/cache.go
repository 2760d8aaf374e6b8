package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// cacheKey is a hash over the part's name, the toolchain and every file under its inputs, by path and content.
func cacheKey(root string, p part) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n", p.name, runtime.Version())
	for _, in := range p.inputs {
		top := filepath.Join(root, in)
		if _, err := os.Stat(top); os.IsNotExist(err) {
			fmt.Fprintf(h, "%s is absent\n", in)
			continue
		}
		if err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			return hashFile(h, root, path)
		}); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

func hashFile(h io.Writer, root, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	fmt.Fprintf(h, "%s %d %x\n", rel, n, sum.Sum(nil))
	return err
}

// kept is what the cache remembers of a part that passed.
type kept struct {
	Passed int
	Skips  []skip
}

func cachePath(root string, p part, key string) string {
	return filepath.Join(root, "build", "cache", p.name+"-"+key+".json")
}

// cached is the result of the same part with the same inputs, if it passed.
func cached(root string, p part, key string) (result, bool) {
	b, err := os.ReadFile(cachePath(root, p, key))
	if err != nil {
		return result{}, false
	}
	var k kept
	if json.Unmarshal(b, &k) != nil {
		return result{}, false
	}
	return result{part: p.name, passed: k.Passed, skips: k.Skips, cached: true}, true
}

// keep remembers a part that passed.
func keep(root string, p part, key string, r result) error {
	path := cachePath(root, p, key)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	b, err := json.Marshal(kept{r.passed, r.skips})
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}
