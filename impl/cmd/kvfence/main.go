// Command kvfence runs prefill nodes, decode nodes and gateways that move KV caches without mixing them up. One file a
// subcommand; they read flags, call packages and print. Read next: serve.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailed  = 1 // the work itself failed
	exitUsage   = 2 // flags, configuration, files, addresses
	exitStopped = 3 // the node stopped itself
)

// exitError carries an exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code, err}
}

func main() { os.Exit(run(os.Args[1:])) }

// run executes one command line and returns the exit code; errors go to standard error, one line each.
func run(args []string) int {
	root := &cobra.Command{
		Use: "kvfence", Short: "Disaggregated serving that cannot answer with another tenant's bytes",
		SilenceUsage: true, SilenceErrors: true, Version: versionText(),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetArgs(args)
	root.AddCommand(serveCommand(), checkCommand(), gatewayCommand(), statusCommand(), configCommand(), devicesCommand(), benchCommand(), specCommand(), simulateCommand(), versionCommand())
	root.CompletionOptions.HiddenDefaultCmd = true
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return exitOK
	}
	for _, problem := range flatten(err) {
		for line := range strings.Lines(problem) {
			if line = strings.TrimSpace(line); line != "" {
				fmt.Fprintln(os.Stderr, "kvfence: "+line)
			}
		}
	}
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return exitUsage // cobra: unknown command or flag
}

// flatten gives each of several joined problems a line of its own.
func flatten(err error) []string {
	var e *exitError
	if errors.As(err, &e) {
		err = e.err
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []string{err.Error()}
	}
	if _, wrapped := err.(interface{ Is(error) bool }); wrapped || !isJoin(err, joined.Unwrap()) {
		return []string{err.Error()}
	}
	var lines []string
	for _, x := range joined.Unwrap() {
		lines = append(lines, flatten(x)...)
	}
	return lines
}

// isJoin tells errors.Join, whose text is its parts' on lines of their own, from fmt.Errorf with several %w.
func isJoin(err error, parts []error) bool { return err.Error() == errors.Join(parts...).Error() }
