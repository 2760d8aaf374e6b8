//go:build !(cuda && cgo && linux)

package gpu

import "context"

// Cards stands for the cards of a build without NVML: there are none.
type Cards struct{}

// Card is what such Cards do not have.
type Card struct{}

// Open always fails with ErrNotBuilt.
func Open() (*Cards, error) { return nil, ErrNotBuilt }

// Close implements the Cards of the other build.
func (*Cards) Close() error { return nil }

// Versions implements the Cards of the other build.
func (*Cards) Versions() Versions { return Versions{} }

// List implements the Cards of the other build.
func (*Cards) List() []*Card { return nil }

// Find always fails with ErrNotBuilt.
func (*Cards) Find(string) (*Card, error) { return nil, ErrNotBuilt }

// Info implements the Card of the other build.
func (*Card) Info() Info { return Info{Index: -1} }

// Usable implements the Card of the other build.
func (*Card) Usable() error { return ErrNotBuilt }

// Memory implements the Card of the other build.
func (*Card) Memory() (Memory, error) { return Memory{}, ErrNotBuilt }

// Health implements the Card of the other build.
func (*Card) Health() (Health, error) { return Health{}, ErrNotBuilt }

// Place implements the Card of the other build.
func (*Card) Place(string) (Place, error) { return Place{}, ErrNotBuilt }

// Watch implements the Card of the other build.
func (*Card) Watch(context.Context, func(Fault)) error { return ErrNotBuilt }

// Ready implements the Card of the other build.
func (*Card) Ready() error { return ErrNotBuilt }

// Faults implements the Card of the other build.
func (*Card) Faults() []Seen { return nil }
