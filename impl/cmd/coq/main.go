// Command coq checks the headline theorem of proofs/coq: that Coq accepts the proof, that it rests on no axiom, and that its relation
// has the graph of TLA/Heart.tla in bounded settings; and with TLC, that every step of Transfer is a step of Heart in some.
//
//	go run ./impl/cmd/coq [-long] [-only NAME] [-jar PATH]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"

	"kvfence/proofs/coq"
	"kvfence/proofs/sany"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "coq:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("coq", flag.ContinueOnError)
	long := flags.Bool("long", false, "compare the larger settings, too")
	only := flags.String("only", "", "compare only the graphs of this name, and no refinement")
	asked := flags.String("jar", "", "path of the TLA+ tools jar")
	dir := flags.String("dir", "proofs/coq", "folder of the Coq sources")
	specs := flags.String("specs", "TLA", "folder of the specifications")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected arguments %q", flags.Args())
	}
	jar, err := sany.FindJar(*asked)
	if err != nil {
		return err
	}
	settings, refinements := coq.Settings(), coq.Refinements()
	if *long {
		settings = append(settings, coq.Long()...)
		refinements = append(refinements, coq.LongRefinements()...)
	}
	if *only != "" {
		settings = slices.DeleteFunc(append(coq.Settings(), coq.Long()...), func(s coq.Setting) bool { return s.Name != *only })
		refinements = nil
	}
	for _, r := range refinements {
		states, err := r.Check(context.Background(), *specs, jar)
		if err != nil {
			return err
		}
		fmt.Printf("%-28s %6s states of Transfer, every step one of Heart\n", r.Name, states)
	}
	results, err := coq.Check(context.Background(), *dir, *specs, jar, settings)
	if err != nil {
		return err
	}
	states, edges := 0, 0
	for _, r := range results {
		fmt.Printf("%-28s %6d states %7d edges\n", r.Setting.Name, r.States, r.Edges)
		if n := len(r.OnlyCoq) + len(r.OnlyTLC); n > 0 {
			return fmt.Errorf("%s: the graphs differ in %d places: only Coq %.5q, only TLC %.5q", r.Setting.Name, n, r.OnlyCoq, r.OnlyTLC)
		}
		states, edges = states+r.States, edges+r.Edges
	}
	fmt.Printf("coq: theorem proved, no axioms; %d settings, %d states, %d edges equal to TLC's; Transfer refines Heart in %d settings\n",
		len(results), states, edges, len(refinements))
	return nil
}
