package tlc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// recordedBase is the configuration whose guards, features and properties a recorded run is held to: all of them.
const recordedBase = "all-1"

// Recorded runs TLC over a module that extends MCTransfer and replays one recorded run: RSpec is its specification, constants go over those
// of the configuration with every feature. All invariants are checked in each state of the run. TLC's exit code 0 means that the run is a
// behaviour of the specification, 11 (deadlock) that its next step is none: then Depth steps were.
func (s *Specs) Recorded(ctx context.Context, tools Tools, name, module string, constants map[string]string, limit time.Duration) (Outcome, error) {
	c, err := s.Find(recordedBase)
	if err != nil {
		return Outcome{}, err
	}
	base := *c
	base.Constants = maps.Clone(c.Constants)
	values := ""
	for _, name := range sortedKeys(constants) {
		if constants[name] == name { // a model value that the module names
			values += fmt.Sprintf("CONSTANT %s = %s\n", name, name)
		} else {
			base.Constants[name] = constants[name]
		}
	}
	tmp, text, err := s.place(&base)
	if err != nil {
		return Outcome{}, err
	}
	defer os.RemoveAll(tmp)
	text = strings.Replace(text, "SPECIFICATION Spec", "SPECIFICATION RSpec", 1)
	text = strings.Replace(text, "CHECK_DEADLOCK FALSE", "CHECK_DEADLOCK TRUE", 1)
	text += values
	for file, body := range map[string]string{configName: text, name + ".tla": module} { // in any order
		if err := os.WriteFile(filepath.Join(tmp, file), []byte(body), 0o644); err != nil {
			return Outcome{}, err
		}
	}
	args := append(javaFlags(tmp), "-Xss64m", "-cp", tools.Jar, "tlc2.TLC", "-workers", "1", "-metadir", filepath.Join(tmp, "states"), "-config", configName, name+".tla")
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, tools.Java, args...)
	cmd.Dir = tmp
	began := time.Now()
	raw, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return Outcome{}, fmt.Errorf("TLC over %s: %w", name, err)
	}
	got := parse(string(raw), &base)
	got.Exit, got.Took = cmd.ProcessState.ExitCode(), time.Since(began)
	return got, nil
}
