package core

import (
	"errors"
	"fmt"
	"slices"

	"kvfence/spec"
)

// ErrConfig is wrapped by every refusal of a machine's configuration.
var ErrConfig = errors.New("bad configuration of a core machine")

// ErrContract is wrapped by every error of a Step: the driver broke its contract (doc.go), for example by ending work that was
// never started. The machine has not changed. Nothing that a peer sends causes it.
var ErrContract = errors.New("the driver of a core machine broke its contract")

// requiredCapabilities are those that both ends of a link must offer.
func requiredCapabilities() []string {
	return []string{spec.CapDrainReceipts, spec.CapMarks, spec.CapTags}
}

// AuxWriter is the one declared writer of a whole-request record (Aux): the lowest prefill rank that has such a pool. ok is false
// when none has. Both sides use this rule.
func AuxWriter(sideLayouts [][]spec.Layout) (r spec.Rank, ok bool) {
	for k, ls := range sideLayouts {
		if layoutOf(ls, spec.Aux) != nil {
			return spec.Rank(k), true
		}
	}
	return 0, false
}

// layoutOf returns the layout of c in ls, or nil.
func layoutOf(ls []spec.Layout, c spec.Component) *spec.Layout {
	for i := range ls {
		if ls[i].Component == c {
			return &ls[i]
		}
	}
	return nil
}

// bound is a number that must be positive.
type bound struct {
	name  string
	value int64
}

func positive(bs []bound) error {
	for _, b := range bs {
		if b.value <= 0 {
			return fmt.Errorf("%w: %s = %d must be positive", ErrConfig, b.name, b.value)
		}
	}
	return nil
}

// validateSide checks every pool of a side: bounds, one pool a component, equal meaning, and a KV pool at each rank.
func validateSide(side [][]spec.Layout) error {
	for k, ls := range side {
		if layoutOf(ls, spec.KV) == nil {
			return fmt.Errorf("%w: prefill rank %d has no kv pool", ErrConfig, k)
		}
		for i, l := range ls {
			if err := l.Validate(); err != nil {
				return fmt.Errorf("%w: prefill rank %d: %w", ErrConfig, k, err)
			}
			if layoutOf(ls[:i], l.Component) != nil {
				return fmt.Errorf("%w: prefill rank %d has two %s pools", ErrConfig, k, l.Component)
			}
			if first := layoutOf(side[0], l.Component); first != nil {
				if err := first.Equal.Compare(l.Component, l.Equal); err != nil {
					return fmt.Errorf("%w: prefill ranks 0 and %d: %w", ErrConfig, k, err)
				}
			}
		}
	}
	return nil
}

func orDur(d *Duration, v Duration) {
	if *d == 0 {
		*d = v
	}
}

func orInt(n *int, v int) {
	if *n == 0 {
		*n = v
	}
}

// validateRank checks a rank's own identity: its role, its place, and that the side's list names it there.
func validateRank(id spec.Identity, role string) error {
	switch {
	case id.Role != role:
		return fmt.Errorf("%w: role %q, need %q", ErrConfig, id.Role, role)
	case id.Incarnation.IsZero():
		return fmt.Errorf("%w: no incarnation", ErrConfig)
	case id.Size == 0 || int(id.Size) > spec.MaxRanks || id.Rank >= spec.Rank(id.Size):
		return fmt.Errorf("%w: rank %d of %d", ErrConfig, id.Rank, id.Size)
	case len(id.Side) != int(id.Size) || id.Side[id.Rank] != id.Incarnation:
		return fmt.Errorf("%w: the side's list does not name this rank's incarnation at its place", ErrConfig)
	}
	return nil
}

// validateOffer checks that every required capability is offered.
func validateOffer(offered []string) error {
	for _, need := range requiredCapabilities() {
		if !slices.Contains(offered, need) {
			return fmt.Errorf("%w: capability %q is required and not offered", ErrConfig, need)
		}
	}
	return nil
}
