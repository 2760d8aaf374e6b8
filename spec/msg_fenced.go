package spec

import "math"

// Fenced says that prefill has fenced an epoch of the link. It ends no hold: decode fences too.
type Fenced struct{ Old Epoch }

// Kind is KindFenced.
func (Fenced) Kind() Kind { return KindFenced }

func (m *Fenced) walk(c *cursor) {
	u64(c, "old", &m.Old, 0, math.MaxUint64)
}
