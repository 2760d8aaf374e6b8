// Package fake builds a CUDA driver library without a card, for dry runs of the GPU check: host memory, kernels by the emulation. What it
// measures is the speed of this machine's emulation and means nothing. Called by impl/cmd/gpucheck and tests. Read next: src/fake.cc.
package fake

import (
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"kvfence/kernels"
	"kvfence/kernels/emulation"
)

//go:embed src/fake.cc
var sources embed.FS

// EmulationVariable is where the library finds the emulation.
const EmulationVariable = "KVFENCE_FAKE_EMULATION"

// Build compiles the library into dir; kernels are those of s, with warps of 32. It returns its path and that of the emulation, for
// EmulationVariable.
func Build(dir string, s emulation.Source) (library, emulated string, err error) {
	cxx, err := exec.LookPath("g++")
	if err != nil {
		return "", "", emulation.ErrNoCompiler
	}
	if emulated, err = emulation.Library(s); err != nil {
		return "", "", err
	}
	source, err := sources.ReadFile("src/fake.cc")
	if err != nil {
		return "", "", err
	}
	text, library := filepath.Join(dir, "fake.cc"), filepath.Join(dir, "libfakecuda.so")
	if err := os.WriteFile(text, source, 0o644); err != nil {
		return "", "", err
	}
	args := []string{"-std=c++17", "-O1", "-fPIC", "-shared", "-Wall", "-fvisibility=hidden", "-o", library}
	for name, v := range map[string]any{"MOVE": kernels.MoveArgs{}, "VERIFY": kernels.VerifyArgs{}, "SCRUB": kernels.ScrubArgs{}, "PUT": kernels.PutArgs{}} {
		args = append(args, fmt.Sprintf("-D%s_ARGS=%d", name, binary.Size(v)))
	}
	if out, err := exec.Command(cxx, append(args, text, "-ldl")...).CombinedOutput(); err != nil {
		return "", "", errors.Join(err, errors.New(string(out)))
	}
	return library, emulated, nil
}
