package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kvfence/impl/tlc"
	"kvfence/proofs/dump"
)

// errTLC is what is said of a run of TLC that does not end well.
var errTLC = errors.New("TLC failed")

// fewStates is below what it costs java to compile TLC well.
const fewStates = 30_000

// checker runs TLC over a setting: the whole graph, without symmetry, with no property to check.
type checker struct {
	specs *tlc.Specs
	tools tlc.Tools
}

// place writes the modules, as edit leaves them, and the setting's configuration to a new folder, which the caller removes.
func (c checker) place(s setting) (dir string, err error) {
	plain := *s.config
	plain.Check, plain.Steps, plain.Symmetry = nil, nil, ""
	text, err := c.specs.ConfigText(&plain)
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp("", "model"); err != nil {
		return "", err
	}
	files := map[string]string{"run.cfg": text}
	names, err := fs.Glob(c.specs.Files, "*.tla")
	for _, n := range names {
		raw, e := fs.ReadFile(c.specs.Files, n)
		err = errors.Join(err, e)
		files[n] = string(raw)
	}
	if s.edit != nil {
		err = errors.Join(err, s.edit(files))
	}
	for n, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, n), []byte(text), 0o644))
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// command is java on the setting placed in dir.
func (c checker) command(ctx context.Context, s setting, dir string, flags []string, args ...string) *exec.Cmd {
	all := append(flags, "-cp", c.tools.Jar, "tlc2.TLC", "-checkpoint", "0", "-metadir", filepath.Join(dir, "states"), "-config", "run.cfg")
	cmd := exec.CommandContext(ctx, c.tools.Java, append(append(all, args...), c.specs.Modules[s.config.Module].Model+".tla")...)
	cmd.Dir = dir
	return cmd
}

// dump has TLC explore the setting with one worker and reads the graph while TLC writes it, through a pipe: nothing is kept on disk.
func (c checker) dump(ctx context.Context, s setting, d dump.Receiver) error {
	dir, err := c.place(s)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	pipe := filepath.Join(dir, "graph.dot")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		return fmt.Errorf("a pipe for the dump: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var said bytes.Buffer
	flags := []string{"-XX:+UseSerialGC", "-XX:CICompilerCount=2"}
	if s.states > 0 && s.states < fewStates {
		flags = []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
	}
	cmd := c.command(ctx, s, dir, flags, "-workers", "1", "-dump", "dot,actionlabels", pipe)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return err
	}
	read := make(chan error, 1)
	go func() {
		f, err := os.Open(pipe)
		if err == nil {
			err = errors.Join(dump.Read(f, d), f.Close())
		}
		if err != nil {
			cancel() // TLC would wait for a reader
		}
		read <- err
	}()
	ran := cmd.Wait()
	if f, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil { // a TLC that failed early has never opened it
		_ = f.Close() // nothing was written
	}
	dumped := <-read
	if ran != nil && !errors.Is(ran, context.Canceled) && !isKilled(ran) {
		return fmt.Errorf("%w: %w\n%s", errTLC, ran, tail(said.String()))
	}
	return errors.Join(dumped, ctx.Err())
}

func isKilled(err error) bool {
	var e *exec.ExitError
	return errors.As(err, &e) && !e.Exited()
}

// tail is the end of what TLC said.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-25):], "\n")
}

// time has TLC explore the setting without a dump and says how long that took: from the line that it begins with the initial
// states to the line that it is done, as they come. So the start of the JVM and the parsing of the modules do not count.
func (c checker) time(ctx context.Context, s setting, workers int) (took time.Duration, states int, err error) {
	dir, err := c.place(s)
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	cmd := c.command(ctx, s, dir, []string{"-XX:+UseParallelGC"}, "-workers", strconv.Itoa(workers))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	took, states, said, err := follow(out, time.Now)
	if ran := cmd.Wait(); ran != nil {
		return 0, 0, fmt.Errorf("%w: %w\n%s", errTLC, ran, tail(said))
	}
	return took, states, err
}

// follow reads what TLC prints.
func follow(out io.Reader, now func() time.Time) (took time.Duration, states int, said string, err error) {
	var began, ended time.Time
	var all strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := lines.Text()
		all.WriteString(line + "\n")
		switch {
		case strings.HasPrefix(line, "Computing initial states"):
			began = now()
		case strings.HasPrefix(line, "Model checking completed. No error has been found."):
			ended = now()
		case strings.Contains(line, " distinct states found, 0 states left on queue."):
			_, rest, _ := strings.Cut(line, " states generated, ")
			count, _, _ := strings.Cut(rest, " ")
			if states, err = strconv.Atoi(count); err != nil {
				return 0, 0, all.String(), fmt.Errorf("%w: %q", errTLC, line)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return 0, 0, all.String(), err
	}
	if began.IsZero() || ended.IsZero() || states == 0 {
		return 0, 0, all.String(), fmt.Errorf("%w: it did not print when it began and ended:\n%s", errTLC, tail(all.String()))
	}
	return ended.Sub(began), states, all.String(), nil
}
