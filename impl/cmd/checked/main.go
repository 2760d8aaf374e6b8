// Command checked writes docs/checked.md: which public case has which tests, what the model checker is told to find, and how many
// tests of which kind there are. It reads the sources and TLA/manifest.json and runs no test; whether they pass is make test's to
// say. Its own test fails when the page is stale. `make docs` calls it.
// Read next: scan.go (what is read), page.go (what is written), cases.json (the public cases).
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// pagePath is the generated page, from the root of the repository.
const pagePath = "docs/checked.md"

func main() {
	root := flag.String("root", ".", "root of the repository")
	flag.Parse()
	if err := write(*root); err != nil {
		fmt.Fprintln(os.Stderr, "checked:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	page, err := pageOf(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, pagePath), page, 0o644)
}
