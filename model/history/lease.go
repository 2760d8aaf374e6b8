package history

import (
	"slices"

	"github.com/anishathalye/porcupine"

	"kvfence/spec"
)

// Operations on the leases of one decode rank, as its leader sees them. Transfers are numbered by the caller, each once. Fault and
// Healed are moments as for ClientAPI.
type (
	// Lease takes N pages for a transfer and sends its grants; its answer is Leased.
	Lease struct {
		Transfer uint64
		N        int
	}
	// Await waits for what becomes of a lease; its answer is Fate.
	Await struct{ Transfer uint64 }
	// Peruse reads the pages of a ready lease that prefill filled, Filled of them; its answer is the transfer that each page's bytes say.
	Peruse struct {
		Transfer uint64
		Filled   int
	}
	// Yield says that a lease is no longer wanted, ready or not; Freed is the moment at which its last hold has ended. Both answer nothing.
	Yield struct{ Transfer uint64 }
	Freed struct{ Transfer uint64 }
	// Room is how many pages are free; its answer is an int.
	Room struct{}
)

// Leased is what a lease was given, or why nothing.
type Leased struct {
	Refused spec.Cause // "": it was given
	Lease   spec.LeaseID
	Pages   []spec.GrantedPage
}

// NoPages is the cause of a lease that waits for pages.
const NoPages spec.Cause = "no room"

// Fate is what became of a lease: ready, or failed by a cause.
type Fate struct {
	Ready bool
	Cause spec.Cause
}

// Leases is the sequential specification of the leases of a pool of so many pages. No page is in two live leases, and none comes back before
// its lease has failed or is no longer wanted, and not twice; generations and lease numbers only rise; what is read from a ready lease is its
// own; only a fault fails a lease, and what has failed, or is free, is never ready.
func Leases(pages int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return &leases{gen: make([]spec.Generation, pages), of: make([]uint64, pages)} },
		Step: func(state, in, out any) (bool, any) {
			s := *state.(*leases)
			s.gen, s.of, s.live = slices.Clone(s.gen), slices.Clone(s.of), slices.Clone(s.live)
			if !s.step(in, out) {
				return false, state
			}
			return true, &s
		},
		Equal: func(a, b any) bool {
			x, y := a.(*leases), b.(*leases)
			return x.shaky == y.shaky && x.last == y.last && slices.Equal(x.gen, y.gen) && slices.Equal(x.of, y.of) && slices.Equal(x.live, y.live)
		},
		Hash: func(state any) (h uint64) {
			s := state.(*leases)
			for i, g := range s.gen {
				h = (h ^ uint64(g)<<16 ^ s.of[i]) * 0x100000001b3
			}
			return h ^ uint64(s.last)
		},
	}
}

// leases is the state.
type leases struct {
	shaky bool
	last  spec.LeaseID
	gen   []spec.Generation
	of    []uint64 // transfer whose lease has the page; 0: free
	live  []lease  // in order of their numbers
}

type lease struct {
	transfer uint64
	fate     Fate
	known    bool // fate is
	hit      bool // something broke since it was granted
	yielded  bool // nobody wants it
	freed    bool // its pages are free; it stands until it is yielded, too
}

func (s *leases) find(transfer uint64) *lease {
	if i := slices.IndexFunc(s.live, func(l lease) bool { return l.transfer == transfer }); i >= 0 {
		return &s.live[i]
	}
	return nil
}

// bury forgets a lease that is free and that nobody wants.
func (s *leases) bury(transfer uint64) {
	s.live = slices.DeleteFunc(s.live, func(l lease) bool { return l.transfer == transfer && l.freed && l.yielded })
}

func (s *leases) free() (n int) {
	for _, t := range s.of {
		if t == 0 {
			n++
		}
	}
	return n
}

func (s *leases) step(in, out any) bool {
	switch x := in.(type) {
	case Lease:
		a, ok := out.(Leased)
		return ok && s.find(x.Transfer) == nil && x.Transfer != 0 && s.take(x, a)
	case Await:
		f, ok := out.(Fate)
		l := s.find(x.Transfer)
		return ok && l != nil && s.await(l, f)
	case Peruse:
		of, ok := out.([]uint64)
		l := s.find(x.Transfer)
		return ok && l != nil && l.fate.Ready && !l.yielded && len(of) == x.Filled && !slices.ContainsFunc(of, func(t uint64) bool { return t != x.Transfer })
	case Yield:
		l := s.find(x.Transfer)
		if l == nil || l.yielded {
			return false
		}
		l.yielded = true
		s.bury(x.Transfer)
	case Freed:
		l := s.find(x.Transfer)
		if l == nil || l.freed || !l.yielded && (!l.hit || l.fate.Ready) {
			return false
		}
		l.freed = true
		for p := range s.of {
			if s.of[p] == x.Transfer {
				s.of[p] = 0
			}
		}
		s.bury(x.Transfer)
	case Room:
		return out == any(s.free())
	case Fault:
		s.shaky = true
		for i := range s.live {
			s.live[i].hit = true
		}
	case Healed:
		s.shaky = false
	default:
		return false
	}
	return out == nil
}

func (s *leases) take(x Lease, a Leased) bool {
	switch a.Refused {
	case "":
	case NoPages:
		return s.free() < x.N && len(a.Pages) == 0
	case spec.CausePeerLost:
		return s.shaky && len(a.Pages) == 0
	default:
		return false
	}
	if a.Lease <= s.last || len(a.Pages) != x.N {
		return false
	}
	s.last = a.Lease
	for _, g := range a.Pages {
		if int(g.Page) >= len(s.of) || s.of[g.Page] != 0 || g.Gen != s.gen[g.Page]+1 {
			return false
		}
		s.of[g.Page], s.gen[g.Page] = x.Transfer, g.Gen
	}
	s.live = append(s.live, lease{transfer: x.Transfer, hit: s.shaky})
	return true
}

// await takes a fate once; asked again it is the same.
func (s *leases) await(l *lease, f Fate) bool {
	if l.known {
		return l.fate == f
	}
	l.fate, l.known = f, true
	if f.Ready {
		return f.Cause == "" && !l.freed
	}
	switch f.Cause {
	case spec.CauseFenced, spec.CausePeerLost, spec.CausePeerFailed, spec.CauseTransport:
		return l.hit || s.shaky
	}
	return false
}
