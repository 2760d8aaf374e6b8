package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kvfence/impl/sim"
)

// simulateFlags are what simulate can be told.
type simulateFlags struct {
	plan                       sim.Plan
	seeds, shard, out, scripts string
	shards                     int
	seed                       uint64
	script                     string
	trace, merge, keepSeeds    bool
}

// simulateCommand runs seeds of the simulation, merges what several machines found, and replays seeds and scenario files.
func simulateCommand() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{Use: "simulate [--merge FILE...]", Short: "Run the engine's own machines in a simulated cluster under every fault",
		Long: "Run the engine's own machines in a simulated cluster: clock, network, fabric and memory are simulated, and break in every way. A seed is a\n" +
			"run. What breaks the promise is made small and written as a scenario file. docs/simulation.md has more, also a Kubernetes Job."}
	flags := cmd.Flags()
	flags.StringVar(&f.seeds, "seeds", "", "seeds to run, like 1-1000; in place of --from and --count")
	flags.Uint64Var(&f.plan.From, "from", 1, "first seed")
	flags.Uint64Var(&f.plan.Count, "count", 0, "seeds of all machines together; 0: as many as --steps needs")
	flags.Int64Var(&f.plan.Steps, "steps", 0, "end with the seed that reaches so many steps (default 1000000 without --seeds and --count)")
	flags.IntVar(&f.plan.Workers, "workers", 0, "seeds at a time; 0: one for each processor")
	flags.StringVar(&f.shard, "shard", "", "i/n: this is machine i, from 0, of n that share the seeds")
	flags.IntVar(&f.shards, "shards", 0, "the same in a Kubernetes indexed Job of so many: i is $JOB_COMPLETION_INDEX")
	flags.Uint64Var(&f.plan.Follow, "follow", 20, "hold the seeds that this divides to the specification, step by step; 0: none")
	flags.StringVar(&f.out, "out", "", "write the result as JSON to this file (-: standard output)")
	flags.StringVar(&f.scripts, "scripts", ".", "folder for the scenario files of violations")
	flags.BoolVar(&f.keepSeeds, "no-shrink", false, "write no scenario files")
	flags.BoolVar(&f.merge, "merge", false, "add up the results in the files that are named")
	flags.Uint64Var(&f.seed, "seed", 0, "run this seed alone")
	flags.StringVar(&f.script, "script", "", "run this scenario file")
	flags.BoolVar(&f.trace, "trace", false, "print all that happens (with --seed or --script)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 != f.merge {
			return withCode(exitUsage, errors.New("--merge takes files, and nothing else does"))
		}
		switch {
		case f.merge:
			return f.runMerge(cmd, args)
		case f.script != "":
			return f.runScript(cmd)
		case cmd.Flags().Changed("seed"):
			return f.runSeed(cmd)
		}
		return f.runMany(cmd)
	}
	return cmd
}

// prepare turns flags into a plan.
func (f *simulateFlags) prepare() (err error) {
	if f.seeds != "" {
		f.plan.From, f.plan.Count, err = sim.ParseSeeds(f.seeds)
	}
	if f.shards > 0 {
		f.shard = os.Getenv("JOB_COMPLETION_INDEX") + "/" + strconv.Itoa(f.shards)
	}
	if f.shard != "" && err == nil {
		f.plan.Shard, f.plan.Of, err = sim.ParseShard(f.shard)
	}
	if f.plan.Count == 0 && f.plan.Steps == 0 {
		f.plan.Steps = 1_000_000
	}
	return err
}

func (f *simulateFlags) runMany(cmd *cobra.Command) error {
	if err := f.prepare(); err != nil {
		return withCode(exitUsage, err)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // clusters are small and short-lived
	begun, said := time.Now(), time.Now()
	f.plan.Progress = func(r sim.Result) {
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			r.Seconds = time.Since(begun).Seconds()
			fmt.Fprintln(cmd.ErrOrStderr(), r.Line())
		}
	}
	r, err := sim.Many(ctx, f.plan)
	if errors.Is(err, sim.ErrPlan) {
		return withCode(exitUsage, err)
	}
	r.Version, r.Seconds = versionText(), time.Since(begun).Seconds()
	return withCode(exitFailed, errors.Join(err, f.write(cmd, &r), f.judge(ctx, cmd, &r, true)))
}

func (f *simulateFlags) runMerge(cmd *cobra.Command, files []string) error {
	var rs []sim.Result
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return withCode(exitUsage, err)
		}
		r, err := sim.ParseResult(text)
		if err != nil {
			return withCode(exitUsage, fmt.Errorf("%s: %w", name, err))
		}
		rs = append(rs, r)
	}
	r, err := sim.Merge(rs)
	if err != nil {
		return withCode(exitUsage, err)
	}
	return withCode(exitFailed, errors.Join(f.write(cmd, &r), f.judge(cmd.Context(), cmd, &r, false)))
}

func (f *simulateFlags) write(cmd *cobra.Command, r *sim.Result) error {
	if f.out == "" {
		return nil
	}
	b, err := r.Text()
	if err != nil {
		return err
	}
	if f.out == "-" {
		_, err = cmd.OutOrStdout().Write(b)
		return err
	}
	return os.WriteFile(f.out, b, 0o644)
}

// judge prints what was found, makes scenario files of it, and the closing line.
func (f *simulateFlags) judge(ctx context.Context, cmd *cobra.Command, r *sim.Result, shrink bool) error {
	w := cmd.OutOrStdout()
	if f.out == "-" {
		w = cmd.ErrOrStderr()
	}
	fmt.Fprint(w, r.Table())
	var errs []error
	for i, v := range r.Violations {
		first, _, _ := strings.Cut(v.Text, "\n")
		fmt.Fprintf(w, "VIOLATION seed %d %s: %s\n", v.Seed, v.Oracle, first)
		if shrink && !f.keepSeeds && i < 3 && ctx.Err() == nil {
			errs = append(errs, f.shrink(cmd, v.Seed, v.Oracle))
		}
	}
	fmt.Fprintln(w, r.Line())
	if len(r.Violations) > 0 {
		errs = append(errs, sim.ErrViolation)
	}
	return errors.Join(errs...)
}

func (f *simulateFlags) shrink(cmd *cobra.Command, seed uint64, o sim.Oracle) error {
	var change func(*sim.Config)
	if o == sim.Followed {
		change = sim.Following(nil)
	}
	s, err := sim.Shrink(seed, change)
	if s == nil {
		return fmt.Errorf("seed %d breaks nothing when it is run again: %w", seed, err)
	}
	text, err := s.Text()
	if err != nil {
		return err
	}
	name := filepath.Join(f.scripts, fmt.Sprintf("scenario-%d.yaml", seed))
	fmt.Fprintf(cmd.OutOrStdout(), "  made small: %d decisions, in %s\n", s.Decisions(), name)
	return os.WriteFile(name, text, 0o644)
}

// change is what the flags alter in one cluster.
func (f *simulateFlags) change(cmd *cobra.Command) func(*sim.Config) {
	change := func(c *sim.Config) {
		if f.trace {
			c.Trace = func(line string) { fmt.Fprintln(cmd.OutOrStdout(), line) }
		}
	}
	if f.plan.Follow > 0 {
		return sim.Following(change)
	}
	return change
}

func (f *simulateFlags) runSeed(cmd *cobra.Command) error {
	out, err := sim.Run(f.seed, f.change(cmd))
	fmt.Fprintln(cmd.OutOrStdout(), out)
	if err != nil && !f.keepSeeds {
		err = errors.Join(err, f.shrink(cmd, f.seed, sim.OracleOf(err)))
	}
	return withCode(exitFailed, err)
}

func (f *simulateFlags) runScript(cmd *cobra.Command) error {
	text, err := os.ReadFile(f.script)
	if err != nil {
		return withCode(exitUsage, err)
	}
	s, err := sim.ParseScript(text)
	if err != nil {
		return withCode(exitUsage, fmt.Errorf("%s: %w", f.script, err))
	}
	out, err := s.Play(f.change(cmd))
	fmt.Fprintln(cmd.OutOrStdout(), out)
	if bad := s.Judge(err); bad != nil {
		return withCode(exitFailed, bad)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "as expected: %s\n", s.Expect)
	return nil
}
