package overlay

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strings"
)

// Writer writes files that stand in place of those of a repository, or are added to it. Make it with New; not safe for concurrent use.
type Writer struct {
	root, dir string
	replace   map[string]string
	hash      hash.Hash
}

// New makes a writer that puts the files for the repository at root into dir.
func New(root, dir string) (*Writer, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	return &Writer{root, dir, map[string]string{}, sha256.New()}, os.MkdirAll(dir, 0o755)
}

// Put writes the text that stands for a file, by its path in the repository.
func (w *Writer) Put(path string, text []byte) error {
	to := filepath.Join(w.dir, strings.ReplaceAll(path, "/", "_"))
	w.replace[filepath.Join(w.root, path)] = to
	fmt.Fprintf(w.hash, "%s %d\n%s", path, len(text), text)
	return os.WriteFile(to, text, 0o644)
}

// Close writes the file for `go build -overlay` and returns its path, and a hash of all that was put.
func (w *Writer) Close() (overlay, sum string, err error) {
	b, err := json.Marshal(map[string]any{"Replace": w.replace})
	if err != nil {
		return "", "", err
	}
	overlay = filepath.Join(w.dir, "overlay.json")
	return overlay, hex.EncodeToString(w.hash.Sum(nil)[:4]), os.WriteFile(overlay, b, 0o644)
}
