package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// serial is a writer for several writers at once: a command's two outputs and the runner's own words.
type serial struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *serial) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}

// env is what a part works with: it runs commands in the root, streams to out and books into result.
type env struct {
	ctx    context.Context
	root   string
	out    io.Writer
	ci     bool
	result *result
}

// start is a command in a process group of its own, so that its children end with it when the part's limit is over.
func (e *env) start(vars []string, name string, args ...string) *exec.Cmd {
	fmt.Fprintf(e.out, "$ %s\n", strings.Join(append(append(vars[:len(vars):len(vars)], name), args...), " "))
	c := exec.CommandContext(e.ctx, name, args...)
	c.Dir = e.root
	c.Env = append(os.Environ(), vars...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 5 * time.Second
	c.Stderr = e.out
	return c
}

// command runs one command; it counts as one check.
func (e *env) command(what string, vars []string, name string, args ...string) {
	var last closing
	c := e.start(vars, name, args...)
	c.Stdout = io.MultiWriter(e.out, &last)
	e.book(what, c.Run())
	e.figure(what, last.String())
}

// silent runs a command whose every output line is a finding.
func (e *env) silent(what, name string, args ...string) {
	var found bytes.Buffer
	c := e.start(nil, name, e.present(args)...)
	c.Stdout = io.MultiWriter(e.out, &found)
	err := c.Run()
	if lines := strings.Fields(found.String()); err == nil && len(lines) > 0 {
		err = fmt.Errorf("%s", strings.Join(lines, " "))
	}
	e.book(what, err)
}

// lines are what a command prints.
func (e *env) lines(name string, args ...string) ([]string, error) {
	c := e.start(nil, name, args...)
	out, err := c.Output()
	return strings.Fields(string(out)), err
}

// present drops the paths that do not exist; options stay.
func (e *env) present(args []string) (out []string) {
	for _, a := range args {
		if _, err := os.Stat(e.root + "/" + a); err == nil || strings.HasPrefix(a, "-") {
			out = append(out, a)
		}
	}
	return out
}

// figure keeps the closing line of a command.
func (e *env) figure(what, line string) {
	if line != "" {
		e.result.figures = append(e.result.figures, what+": "+line)
	}
}

func (e *env) book(what string, err error) {
	if err != nil {
		e.result.fail(what, err.Error(), e.out)
		return
	}
	e.result.passed++
}

// counted runs a command whose last line that matches closing says how many checks passed, failed and were left out, in this order;
// why is the reason for those left out.
func (e *env) counted(what string, closing *regexp.Regexp, why, name string, args ...string) {
	var all bytes.Buffer
	c := e.start(nil, name, args...)
	c.Stdout = io.MultiWriter(e.out, &all)
	err := c.Run()
	found := closing.FindAllStringSubmatch(all.String(), -1)
	if len(found) == 0 {
		e.book(what, orElse(err, errors.New("it did not end with a line of counts")))
		return
	}
	e.figure(what, found[len(found)-1][0])
	var n [3]int
	for i := range n {
		n[i], _ = strconv.Atoi(found[len(found)-1][i+1]) // digits, by the pattern
	}
	e.result.passed += n[0]
	if err != nil || n[1] > 0 {
		e.result.fail(what, fmt.Sprint(orElse(err, fmt.Errorf("%d failed", n[1]))), e.out)
	}
	if n[2] > 0 {
		e.result.skips = append(e.result.skips, skip{what, fmt.Sprintf("%d %s", n[2], why)})
	}
}

// needs reports whether a command is installed. Without it the part is a skip with its reason; in CI it fails.
func (e *env) needs(what, command string) bool {
	there := have(command)
	switch {
	case there:
	case e.ci:
		e.result.fail(what, command+" is not installed", e.out)
	default:
		e.result.skips = append(e.result.skips, skip{what, command + " is not installed (make setup, as root)"})
	}
	return there
}

func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// have finds a command, or a file that is named by its whole path.
func have(what string) bool {
	if strings.HasPrefix(what, "/") {
		_, err := os.Stat(what)
		return err == nil
	}
	_, err := exec.LookPath(what)
	return err == nil
}
