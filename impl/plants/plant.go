package plants

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// ErrPlant is wrapped by everything that is wrong with a plant or with what is recorded of it.
var ErrPlant = errors.New("planted bug")

// How is what an edit does to the text that stands at its place.
type How string

// What an edit does.
const (
	Never   How = "never holds"      // a condition
	Always  How = "always holds"     // a condition
	Skip    How = "is left out"      // statements
	Instead How = "is replaced by"   // statements; New stands in their place
	First   How = "comes only after" // statements; New runs before them
	Value   How = "has the value"    // an expression; New is its value, both are computed
)

// Edit changes one place. Old must stand once within the function; white space does not matter.
type Edit struct {
	In  string // package.Receiver.function, or package.function
	How How
	Old string
	New string // "" for Never, Always and Skip
}

// Plant is one bug.
type Plant struct {
	Name  string
	What  string   // for people, one line
	Guard string   // of the design page: which one is missing; "" for an aid
	Cases []string // public reports of this kind
	Edits []Edit
	With  []string // plants that are on with it: what else must be off for it to show
	Mix   string   // the runs that show it
	Want  []string // properties by which it is caught; any other one would be an accident
	Model bool     // the runs are held to the specification: nothing else sees it
	Tests bool     // the tests of the packages are its only gate: simulation does not run what it changes
	Why   string   // why With, Model or Tests
}

// Aid reports a change that is no bug by itself: it takes away what would hide others.
func (p *Plant) Aid() bool { return p.Guard == "" }

// All is every plant, in the order of their numbers.
func All() []Plant {
	return slices.Concat(aids(), admission(), release(), timeouts(), others(), leaks(), receipts(), words(), fences(), epochs(), freshness(), verdicts(), filling(), detection(), shares(), pulling(), driver())
}

// Find is the number of a plant; -1 if there is none.
func Find(all []Plant, name string) int {
	return slices.IndexFunc(all, func(p Plant) bool { return p.Name == name })
}

// Numbers are the numbers of a plant and of everything that is on with it, rising.
func Numbers(all []Plant, names ...string) ([]int, error) {
	var out []int
	for len(names) > 0 {
		n := Find(all, names[0])
		if n < 0 {
			return nil, fmt.Errorf("%w: there is none named %q", ErrPlant, names[0])
		}
		names = names[1:]
		if !slices.Contains(out, n) {
			out = append(out, n)
			names = append(slices.Clip(names), all[n].With...)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Check refuses plants that say nothing, or the same name twice.
func Check(all []Plant) error {
	var bad []error
	for i, p := range all {
		switch {
		case p.Name == "" || p.What == "":
			bad = append(bad, fmt.Errorf("%w: number %d has no name, or does not say what it is", ErrPlant, i))
		case Find(all, p.Name) != i:
			bad = append(bad, fmt.Errorf("%w: two are named %q", ErrPlant, p.Name))
		case len(p.Edits) == 0 && len(p.With) == 0:
			bad = append(bad, fmt.Errorf("%w: %s changes nothing", ErrPlant, p.Name))
		case !p.Aid() && !p.Tests && len(p.Want) == 0:
			bad = append(bad, fmt.Errorf("%w: %s does not say by what it is to be caught", ErrPlant, p.Name))
		case (len(p.With) > 0 || p.Model || p.Tests) && p.Why == "":
			bad = append(bad, fmt.Errorf("%w: %s does not say why it needs that", ErrPlant, p.Name))
		}
		if _, err := Numbers(all, p.Name); err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", p.Name, err))
		}
		if _, err := FindMix(p.Mix); err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", p.Name, err))
		}
	}
	return errors.Join(bad...)
}

// hash is over all that decides what a plant does; its texts for people do not.
func (p *Plant) hash(all []Plant) string {
	h := sha256.New()
	numbers, _ := Numbers(all, p.Name) // Check has refused unknown names
	for _, n := range numbers {
		fmt.Fprintf(h, "%q\n", all[n].Edits)
	}
	fmt.Fprintf(h, "%q %q %t", p.Mix, p.Want, p.Model)
	return hex.EncodeToString(h.Sum(nil)[:6])
}
