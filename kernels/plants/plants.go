// Package plants is kernel bugs that the emulation's checks must see: each replaces one piece of one source, which must stand there exactly
// once, so that a plant cannot go stale unseen. It is a list and two functions; it runs in tests only. Read next: list.go.
package plants

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"kvfence/kernels"
	"kvfence/kernels/check"
	"kvfence/kernels/emulation"
)

// Plant is one bug.
type Plant struct {
	Name     string
	File     string // below kernels/
	From, To string
	Kernel   string // whose check must see it
	Warp     int    // lanes of a warp; 0: 32
}

// ErrStale is wrapped when a plant's text does not stand in its source exactly once.
var ErrStale = errors.New("a plant does not fit its source")

// Source is the kernels with the bug in that of p.Kernel.
func (p Plant) Source() (emulation.Source, error) {
	b, err := fs.ReadFile(kernels.Sources, p.File)
	if err != nil {
		return emulation.Source{}, err
	}
	if n := strings.Count(string(b), p.From); n != 1 || p.From == p.To {
		return emulation.Source{}, fmt.Errorf("%w: %s: found %d times in %s", ErrStale, p.Name, n, p.File)
	}
	warp := p.Warp
	if warp == 0 {
		warp = 32
	}
	planted := map[string][]byte{p.File: []byte(strings.Replace(string(b), p.From, p.To, 1))}
	return emulation.Source{Warp: warp, Files: planted, Unit: kernels.SourceOf(p.Kernel)}, nil
}

// Seen runs the check of the plant's kernel on d from seed 0 on: the first seed that sees it and what it saw; seeds and nil: none did.
func (p Plant) Seen(d check.Device, seeds int) (int, error) {
	for seed := range seeds {
		if err := check.All()[p.Kernel](d, check.NewRandom(uint64(seed)), seed%8 == 7); err != nil {
			return seed, err
		}
	}
	return seeds, nil
}
