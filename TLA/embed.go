// Package tla holds the specifications of this folder, so that a program without the sources beside it can run them. It computes
// nothing. impl/tlc reads it. Read next: README.md.
package tla

import "embed"

// Files are the modules, the manifest, its table and the files for TLC, as they were when the program was built.
//
//go:embed *.tla manifest.json configurations.md cfg
var Files embed.FS
