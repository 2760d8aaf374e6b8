// Command tlc is kvfence spec check under its older name, for scripts: it checks the specifications in TLA/ and compares every
// outcome with TLA/manifest.json. impl/tlc does all of it.
//
//	go run ./impl/cmd/tlc [-only NAME] [-jar PATH] [-long] [-write] [-show]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"kvfence/impl/tlc"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tlc:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	var o tlc.Options
	flags := flag.NewFlagSet("tlc", flag.ContinueOnError)
	dir := flags.String("dir", "TLA", "folder of the specifications and manifest.json")
	only := flags.String("only", "", "run only the configuration of this name, else those whose name contains it")
	jar := flags.String("jar", "", "path of the TLA+ tools jar")
	flags.IntVar(&o.Jobs, "jobs", 2, "configurations to run at a time")
	flags.DurationVar(&o.Limit, "limit", time.Hour, "time limit of one configuration")
	flags.BoolVar(&o.Long, "long", false, "run the long configurations, too")
	flags.BoolVar(&o.Write, "write", false, "rewrite the manifest, the .cfg files and the table from what was found")
	flags.BoolVar(&o.Show, "show", false, "print TLC's own output")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected arguments %q", flags.Args())
	}
	if *only != "" {
		o.Names = []string{*only}
	}
	s, err := tlc.Open(*dir)
	if err != nil {
		return err
	}
	if o.Tools, err = tlc.FindTools(*jar); err != nil {
		return err
	}
	return s.Check(context.Background(), o, out)
}
