package gpucheck_test

import (
	"fmt"
	"os"
	"testing"

	"kvfence/impl/gpucheck"
)

// The sections are processes of this binary.
func TestMain(m *testing.M) {
	is, err := gpucheck.Role(os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case is:
		os.Exit(0)
	}
	os.Exit(m.Run())
}
