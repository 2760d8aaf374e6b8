package main

import (
	"cmp"
	"slices"
	"strings"
)

// input is one candidate with what it reaches.
type input struct {
	name   string
	bytes  []byte
	blocks map[string]bool
}

// fewest keeps inputs that together reach all that base and the inputs reach: always the one that adds most, of equals the smallest, then
// the first by name; and then drops each that the others have made needless.
func fewest(base map[string]bool, inputs []input) (kept []input) {
	seen := map[string]bool{}
	for b := range base {
		seen[b] = true
	}
	left := slices.Clone(inputs)
	for {
		best, most := -1, 0
		for i, in := range left {
			n := adds(seen, in)
			if n > most || n == most && best >= 0 && n > 0 && less(in, left[best]) {
				best, most = i, n
			}
		}
		if best < 0 {
			break
		}
		kept = append(kept, left[best])
		for b := range left[best].blocks {
			seen[b] = true
		}
		left = slices.Delete(left, best, best+1)
	}
	for i := 0; i < len(kept); {
		others := map[string]bool{}
		for b := range base {
			others[b] = true
		}
		for j, in := range kept {
			for b := range in.blocks {
				if j != i {
					others[b] = true
				}
			}
		}
		if adds(others, kept[i]) == 0 {
			kept = slices.Delete(kept, i, i+1)
		} else {
			i++
		}
	}
	slices.SortFunc(kept, func(a, b input) int { return cmp.Compare(a.name, b.name) })
	return kept
}

func adds(seen map[string]bool, in input) (n int) {
	for b := range in.blocks {
		if !seen[b] {
			n++
		}
	}
	return n
}

func less(a, b input) bool {
	return cmp.Or(cmp.Compare(len(a.bytes), len(b.bytes)), cmp.Compare(a.name, b.name)) < 0
}

// reached reads a coverage profile of mode set: the blocks that were run.
func reached(profile string) map[string]bool {
	blocks := map[string]bool{}
	for line := range strings.Lines(profile) {
		line = strings.TrimSpace(line)
		if block, ok := strings.CutSuffix(line, " 1"); ok && !strings.HasPrefix(line, "mode:") {
			blocks[block] = true
		}
	}
	return blocks
}
