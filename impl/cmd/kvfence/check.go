package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kvfence/impl/check"
	"kvfence/model/follow"
)

func checkCommand() *cobra.Command {
	var o check.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check FILE...", Short: "Hold recorded traces to the specification",
		Long: "Replays traces (kvfence serve --trace FILE) on the specification: each step of each machine must be one of its steps, and what was put out must be what was said.\n" +
			"One file for each process; several are merged by what each node heard. Exit status: 0 accepted, 1 a violation, 2 a file that cannot be checked.",
		Args: cobra.MinimumNArgs(1),
	}
	f := cmd.Flags()
	f.BoolVar(&o.Follow, "follow", false, "go on as the files grow, until interrupted: a monitor of live nodes")
	f.BoolVar(&o.Strict, "strict", false, "all nodes are in the files: refuse what comes from any other")
	f.IntVar(&o.Most, "most", 1, "end after so many violations; what follows the first may be a consequence")
	f.DurationVar(&o.Every, "every", 10*time.Second, "with --follow: between two lines of counts")
	f.BoolVar(&asJSON, "json", false, "violations and counts as JSON, one a line")
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		o.Files = files
		return runCheck(cmd.OutOrStdout(), o, asJSON)
	}
	return cmd
}

func runCheck(w io.Writer, o check.Options, asJSON bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o.Violation = func(v *follow.Violation) { tellViolation(w, v, asJSON) }
	if o.Follow {
		o.Count = func(r check.Result) { tellCounts(w, r, asJSON, false) }
	}
	r, err := check.Run(ctx, o)
	if err == nil || errors.Is(err, check.ErrFile) {
		tellCounts(w, r, asJSON, true)
	}
	switch {
	case r.Violations > 0:
		return withCode(exitFailed, fmt.Errorf("%d violations", r.Violations))
	case err != nil:
		return withCode(exitUsage, err)
	}
	return nil
}

func tellViolation(w io.Writer, v *follow.Violation, asJSON bool) {
	if asJSON {
		_ = json.NewEncoder(w).Encode(map[string]*follow.Violation{"violation": v})
		return
	}
	fmt.Fprintf(w, "VIOLATION %v\n", v)
}

func tellCounts(w io.Writer, r check.Result, asJSON, last bool) {
	if asJSON {
		_ = json.NewEncoder(w).Encode(map[string]check.Result{"counts": r})
		return
	}
	believed := ""
	if r.Believed > 0 {
		believed = fmt.Sprintf(", %d messages of nodes outside of the files believed", r.Believed)
	}
	said := 0
	for _, n := range r.Actions {
		said += n
	}
	fmt.Fprintf(w, "%d lines, %d actions said and %d hidden, %d leases, %d findings of bad pages, %d records in memory%s: %d violations; %.2f million lines a minute\n",
		r.Lines, said, r.Hidden, r.Leases, r.Damaged, r.Live, believed, r.Violations, r.PerMinute/1e6)
	if !last {
		return
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(r.Actions)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, r.Actions[name]))
	}
	if len(parts) > 0 {
		fmt.Fprintf(w, "actions: %s\n", strings.Join(parts, ", "))
	}
}
