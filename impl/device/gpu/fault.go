package gpu

import (
	"errors"
	"fmt"
)

var (
	// ErrNotBuilt is returned by a build without NVML.
	ErrNotBuilt = errors.New("this build knows no GPUs: use kvfence-native, or build with the tag cuda and cgo")
	// ErrNoLibrary is wrapped when NVIDIA's management library cannot be used.
	ErrNoLibrary = errors.New("libnvidia-ml cannot be used")
	// ErrNoCard is wrapped when no card has the name given.
	ErrNoCard = errors.New("no such GPU")
	// ErrUnusable is wrapped for a card that is there but cannot hold pools, with the reason.
	ErrUnusable = errors.New("GPU cannot be used")
	// ErrCall is wrapped when a call of the library failed.
	ErrCall = errors.New("libnvidia-ml")
	// ErrHung is wrapped when a call did not return in time. It may still be under way: the next ones wait for it, and fail likewise.
	ErrHung = errors.New("libnvidia-ml does not answer")
	// ErrCapacity is wrapped when pools do not fit the memory that is free.
	ErrCapacity = errors.New("pools do not fit the GPU's free memory")
	// ErrWatched is returned by a second Watch of a card.
	ErrWatched = errors.New("the GPU is being watched already")
	// ErrFault is what every Fault is, for errors.Is.
	ErrFault = errors.New("GPU fault")
)

// Kind is what went wrong with a card.
type Kind uint8

// The kinds.
const (
	KindXid           Kind = iota + 1 // an error that the driver reported by number: Code
	KindUncorrectable                 // volatile count of uncorrectable ECC errors is not zero: Code is the count
	KindRemapFailed                   // a bad row could not be remapped
	KindRemapPending                  // a row is remapped at the next reset
	KindRetirePending                 // pages are retired at the next restart of the driver (cards before Ampere)
	KindPoison                        // poisoned data was met
	KindLost                          // fell off the bus, or otherwise out of reach
	KindReset                         // the driver asks for a reset, or there was one
	KindLinkDown                      // an NVLink that was up is down: Code is the link
	KindLinkErrors                    // an NVLink counted errors: Code is the link
	KindBlind                         // the card's health cannot be seen
	KindNoEvents                      // the card tells no Xids: only counters are polled
	kindCount
)

// String implements fmt.Stringer.
func (k Kind) String() string {
	names := [kindCount]string{"unknown", "xid", "uncorrectable ECC error", "row remapping failed", "row remapping pending", "page retirement pending", "poisoned data",
		"lost", "reset", "NVLink down", "NVLink errors", "blind", "no events"}
	if k >= kindCount {
		k = 0
	}
	return names[k]
}

// MarshalText implements encoding.TextMarshaler.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Action is what the rule of this package asks for.
type Action uint8

// The actions, mild to severe.
const (
	Report Action = iota // say it and count it
	Refuse               // no new leases on this card
	Fence                // fence the card, quarantine its pool
)

// String implements fmt.Stringer.
func (a Action) String() string { return [...]string{"report", "refuse", "fence"}[min(a, Fence)] }

// MarshalText implements encoding.TextMarshaler.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Fault is one finding about one card. It is sticky: once found it stays, until the process ends.
type Fault struct {
	UUID   string `json:"uuid"`
	Kind   Kind   `json:"kind"`
	Code   uint64 `json:"code,omitempty"` // what Kind says
	Detail string `json:"detail"`
	Fatal  bool   `json:"fatal"` // bytes of the card may be wrong or gone
}

// Error implements error.
func (f Fault) Error() string { return fmt.Sprintf("GPU %s: %s: %s", f.UUID, f.Kind, f.Detail) }

// Unwrap makes every Fault an ErrFault.
func (f Fault) Unwrap() error { return ErrFault }

// Action is what is to be done about it.
func (f Fault) Action() Action {
	if f.Fatal {
		return Fence
	}
	switch f.Kind {
	case KindRemapPending, KindRetirePending, KindReset, KindLinkDown, KindBlind:
		return Refuse
	}
	return Report
}

// fault makes one by the rule; Xids and resets say themselves whether they are fatal.
func fault(uuid string, k Kind, code uint64, format string, args ...any) Fault {
	fatal := k == KindUncorrectable || k == KindRemapFailed || k == KindPoison || k == KindLost
	return Fault{uuid, k, code, fmt.Sprintf(format, args...), fatal}
}
