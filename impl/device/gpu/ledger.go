package gpu

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Seen is a fault and how often it was found.
type Seen struct {
	Fault
	Times uint64 `json:"times"`
}

// errUnwatched is why a card that nobody watches is not ready.
var errUnwatched = errors.New("nobody watches the GPU's health")

// maxFaults bounds what is kept of a card; the first of each kind and code are, and a fatal one in any case.
const maxFaults = 256

// ledger keeps the faults of one card. Safe for concurrent use.
type ledger struct {
	mu      sync.Mutex
	seen    []Seen
	busy    bool // a watch is on
	seeing  bool // and has looked
	dropped uint64
}

// add keeps a fault and reports whether it is new: for a counter a larger one is not.
func (l *ledger) add(f Fault) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.seen, func(s Seen) bool {
		return s.Kind == f.Kind && (s.Code == f.Code || f.Kind == KindUncorrectable) && s.Fatal == f.Fatal
	})
	if at >= 0 {
		l.seen[at].Times++
		if f.Kind == KindUncorrectable {
			l.seen[at].Fault = f // the latest count
		}
		return false
	}
	if len(l.seen) >= maxFaults && !(f.Fatal && !slices.ContainsFunc(l.seen, func(s Seen) bool { return s.Fatal })) {
		l.dropped++
		return f.Fatal // said each time rather than lost
	}
	l.seen = append(l.seen, Seen{f, 1})
	return true
}

// faults is a copy.
func (l *ledger) faults() []Seen {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

// begin is the start of a watch. It gives the faults of earlier ones, but for their own ends.
func (l *ledger) begin() ([]Fault, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy {
		return nil, ErrWatched
	}
	l.busy = true
	var old []Fault
	for _, s := range l.seen {
		if s.Kind != KindBlind {
			old = append(old, s.Fault)
		}
	}
	return old, nil
}

// looked says that the watch has begun to see.
func (l *ledger) looked() {
	l.mu.Lock()
	l.seeing = true
	l.mu.Unlock()
}

func (l *ledger) end() {
	l.mu.Lock()
	l.busy, l.seeing = false, false
	l.mu.Unlock()
}

// ready is the worst of what stands against new leases. A Blind of an earlier watch does not: the watch that goes on now sees.
func (l *ledger) ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var worst *Seen
	for i := range l.seen {
		s := &l.seen[i]
		if s.Kind == KindBlind || s.Action() == Report {
			continue
		}
		if worst == nil || s.Action() > worst.Action() {
			worst = s
		}
	}
	switch {
	case worst != nil:
		return fmt.Errorf("%w: %w", ErrUnusable, worst.Fault)
	case !l.seeing:
		return fmt.Errorf("%w: %w", ErrUnusable, errUnwatched)
	}
	return nil
}
