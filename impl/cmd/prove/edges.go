package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"kvfence/proofs/edges"
	"kvfence/proofs/tla2smt"
)

// comparison says which configurations of TLC the translation is compared with.
type comparison struct {
	Folder         string            `json:"folder"`
	Root           string            `json:"root"`
	Configurations []string          `json:"configurations"`
	Bounds         map[string]string `json:"bounds"`
	Sample         int               `json:"sample"` // states of each, beside two for each action; 0: all
}

// compareEdges compares the translation with TLC's edges; every action must have an edge in one of the configurations.
func compareEdges(ctx context.Context, set *settings, jar string) error {
	began := time.Now()
	spec, err := set.read(ctx, jar)
	if err != nil {
		return err
	}
	states, edgesSeen, differ := 0, 0, 0
	seen := map[string]int{}
	var actions []tla2smt.Action
	for _, name := range set.Edges.Configurations {
		s := edges.Setting{Folder: filepath.Join(set.dir, set.Edges.Folder), Root: set.Edges.Root,
			Config: filepath.Join(set.dir, "cfg", name+".cfg"), Bounds: set.Edges.Bounds}
		text, f, bounds, err := s.Load()
		if err != nil {
			return err
		}
		opt := set.options()
		opt.Bounds = bounds
		l, err := tla2smt.NewLower(spec, opt)
		if err != nil {
			return err
		}
		if actions, err = l.Actions(); err != nil {
			return err
		}
		g, err := s.Dump(ctx, jar, text)
		if err != nil {
			return err
		}
		r, err := edges.Compare(ctx, l, f, g, set.Edges.Sample, 1)
		if err != nil {
			return err
		}
		fmt.Printf("  %s: states %d of %d, edges %d, only TLC %d, only SMT %d\n", name, r.States, len(g.Texts), r.Edges, len(r.OnlyTLC), len(r.OnlySMT))
		for _, e := range slices.Concat(r.OnlyTLC[:min(3, len(r.OnlyTLC))], r.OnlySMT[:min(3, len(r.OnlySMT))]) {
			fmt.Println("    ", e)
		}
		states, edgesSeen, differ = states+r.States, edgesSeen+r.Edges, differ+len(r.OnlyTLC)+len(r.OnlySMT)
		for a, n := range maps.All(r.Actions) {
			seen[a] += n
		}
	}
	var missing []string
	for _, a := range actions {
		if seen[a.Name] == 0 {
			missing = append(missing, a.Name)
		}
	}
	fmt.Printf("%s: translation compared with TLC in %d configurations: states %d, edges %d, different %d; actions without an edge %v; %.0f s\n",
		set.Spec, len(set.Edges.Configurations), states, edgesSeen, differ, missing, time.Since(began).Seconds())
	if differ > 0 || len(missing) > 0 {
		return fmt.Errorf("%w: the translation is not TLC's", errFailed)
	}
	return nil
}
