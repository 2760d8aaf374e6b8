package gpu

import (
	"fmt"
	"math/bits"

	"kvfence/spec"
)

// Memory is what a card's memory is taken by, in bytes, measured when it was asked.
type Memory struct {
	Total    uint64    `json:"total_bytes"`
	Free     uint64    `json:"free_bytes"`
	Used     uint64    `json:"used_bytes"`              // with Reserved, where the driver does not say it apart
	Reserved uint64    `json:"reserved_bytes"`          // by driver and firmware; 0 if not said
	Others   []Process `json:"other_processes"`         // all but this one
	Unlisted string    `json:"processes_why,omitempty"` // why Others is not known
	Card     string    `json:"-"`                       // for texts
}

// Process is one that has memory on a card. In a container its number may be of another namespace, and others may not be seen at all.
type Process struct {
	PID   uint32 `json:"pid"`
	Bytes uint64 `json:"bytes"` // 0 if the driver does not say
}

// Others' bytes, as far as they are known.
func (m Memory) taken() (n uint64) {
	for _, p := range m.Others {
		n += p.Bytes
	}
	return n
}

// Fits is nil if need bytes of pools fit what is free and reserve bytes stay free for everyone else: contexts, the serving engine's work space.
// An error wraps ErrCapacity.
func (m Memory) Fits(need, reserve uint64) error {
	sum, carry := bits.Add64(need, reserve, 0)
	if carry == 0 && sum <= m.Free {
		return nil
	}
	text := fmt.Sprintf("%s of %s are free", mebibytes(m.Free), mebibytes(m.Total))
	if m.Card != "" {
		text = m.Card + ": " + text
	}
	switch {
	case m.Unlisted != "":
		text += "; what other processes hold is not known: " + m.Unlisted
	case len(m.Others) > 0:
		text += fmt.Sprintf("; %d other processes hold %s", len(m.Others), mebibytes(m.taken()))
	}
	return fmt.Errorf("%w: the pools take %s and %s are kept back, %s", ErrCapacity, mebibytes(need), mebibytes(reserve), text)
}

// PoolBytes is what pools of these layouts take of a card when the bytes and the tags of each are one allocation of a multiple of granularity (a power of two; 0: 2 MiB,
// CUDA's smallest on cards of today).
func PoolBytes(granularity uint64, layouts ...spec.Layout) (uint64, error) {
	if granularity == 0 {
		granularity = 2 << 20
	}
	if granularity&(granularity-1) != 0 {
		return 0, fmt.Errorf("%w: allocations of multiples of %d bytes: no power of two", ErrCapacity, granularity)
	}
	total, over := uint64(0), uint64(0)
	for _, l := range layouts {
		pages := uint64(l.Shape.Pages)
		for _, n := range [2]uint64{pages * uint64(l.Shape.PageBytes), pages * uint64(l.Shape.TagSlots) * spec.TagBytes} {
			up, carry := bits.Add64(n, granularity-1, 0)
			sum, more := bits.Add64(total, up&^(granularity-1), 0)
			total, over = sum, over|carry|more
		}
	}
	if over != 0 {
		return 0, fmt.Errorf("%w: the layouts' bytes are not a 64 bit number", ErrCapacity)
	}
	return total, nil
}

// mebibytes is exact where it can be: a refusal must never show two equal numbers for a need and a smaller rest.
func mebibytes(n uint64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
