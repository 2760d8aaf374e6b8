// Command lockstep holds the engine's machines beside the executable specification (impl/lockstep).
//
//	go run ./impl/cmd/lockstep replay [-share n] [SETTING...]          every n-th step of the specification, on the real core
//	go run ./impl/cmd/lockstep cover [-steps N] [-seed S] [SETTING...]  what simulation reaches of the specification
//	go run ./impl/cmd/lockstep table                                    the refinement mapping: stimuli, chains, cuts, sources
//
// Exit status 0: no difference, every cut explained and every explanation needed; cover without -steps: every setting at or above 95 %.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"

	"kvfence/impl/lockstep"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "lockstep:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: lockstep replay|cover|table [flags] [SETTING...]")

func run(args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet("lockstep "+args[0], flag.ContinueOnError)
	share := flags.Int("share", 1, "replay every n-th step only, and one of each action")
	steps := flags.Int("steps", 0, "things that happen in each setting at most; 0: forty for each step of the specification")
	seed := flags.Uint64("seed", 1, "seed of the simulation")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	settings, err := chosen(flags.Args())
	if err != nil {
		return err
	}
	switch args[0] {
	case "replay":
		return replay(settings, max(*share, 1), flags.NArg() == 0)
	case "cover":
		return cover(settings, *steps, *seed)
	case "table":
		return lockstep.WriteTables(os.Stdout)
	}
	return errUsage
}

func chosen(names []string) ([]lockstep.Setting, error) {
	all := lockstep.Pinned()
	for _, n := range names {
		if !slices.ContainsFunc(all, func(s lockstep.Setting) bool { return s.Name == n }) {
			return nil, fmt.Errorf("no setting %q", n)
		}
	}
	if len(names) > 0 {
		all = slices.DeleteFunc(all, func(s lockstep.Setting) bool { return !slices.Contains(names, s.Name) })
	}
	return all, nil
}

func replay(settings []lockstep.Setting, share int, whole bool) error {
	var all []*lockstep.Report
	edges, different, cut := 0, 0, 0
	for _, s := range settings {
		r, err := lockstep.ReplaySetting(s, share)
		if err != nil {
			return err
		}
		all = append(all, r)
		n := 0
		for _, x := range r.Cut {
			n += x
		}
		fmt.Printf("%-10s %7d states %8d edges %8d replayed %3d different %8d cut  %s\n", s.Name, r.States, r.Edges, r.Replayed, r.Different, n, s.About)
		for _, d := range r.Differences {
			fmt.Println(d)
		}
		edges, different, cut = edges+r.Replayed, different+r.Different, cut+n
	}
	fmt.Println()
	if err := lockstep.WriteCuts(os.Stdout, all); err != nil {
		return err
	}
	fmt.Printf("lockstep: %d edges of %d settings replayed, %d different, %d cut\n", edges, len(settings), different, cut)
	if different > 0 {
		return errors.New("engine and specification differ")
	}
	if whole {
		return lockstep.CheckTables(all)
	}
	return nil
}

func cover(settings []lockstep.Setting, steps int, seed uint64) error {
	hit, edges, did := 0, 0, 0
	low := false
	for _, s := range settings {
		c, err := lockstep.Cover(s, steps, seed)
		if err != nil {
			return err
		}
		share := 100 * float64(c.Hit) / float64(max(c.Edges, 1))
		fmt.Printf("%-10s %8d of %8d edges  %5.1f %%  %9d steps  hash %016x\n", s.Name, c.Hit, c.Edges, share, c.Steps, c.Hash)
		c.WriteNever(os.Stdout)
		if c.Difference != nil {
			return c.Difference
		}
		hit, edges, did, low = hit+c.Hit, edges+c.Edges, did+c.Steps, low || share < 95
	}
	fmt.Printf("lockstep: simulation took %d of %d edges of %d settings, %.1f %%, in %d steps, seed %d\n", hit, edges, len(settings), 100*float64(hit)/float64(max(edges, 1)), did, seed)
	if low && steps == 0 {
		return errors.New("a setting is below 95 %")
	}
	return nil
}
