package node

import (
	"fmt"

	"kvfence/impl/device"
	"kvfence/spec"
)

// cutter gives the segments of page after page of parts in one layout. Pages that are cut alike, as all but the first and last
// of a part are, share one slice, which nobody changes.
type cutter struct {
	layout *spec.Layout
	part   spec.Part
	lo, hi uint32 // tokens within the page
	segs   []spec.Segment
	used   uint32
}

// cut returns the segments and their bytes. An error means that the machine planned what the layouts do not have.
func (c *cutter) cut(p spec.Part, index uint32) ([]spec.Segment, uint32, error) {
	if c.layout == nil || c.layout.Component != p.Component {
		return nil, 0, fmt.Errorf("%w: no pool of component %s", spec.ErrPlan, p.Component)
	}
	lo, hi := p.Tokens(*c.layout, index)
	if c.segs != nil && c.part == p && c.lo == lo && c.hi == hi {
		return c.segs, c.used, nil
	}
	segs, err := p.Segments(*c.layout, index, nil)
	if err != nil {
		return nil, 0, err
	}
	c.part, c.lo, c.hi, c.segs, c.used = p, lo, hi, segs, spec.UsedBytes(segs)
	return segs, c.used, nil
}

// layoutIn is the layout of a pool of mem; nil if it has none.
func layoutIn(mem device.Memory, c spec.Component) *spec.Layout {
	if c >= spec.ComponentCount || mem[c] == nil {
		return nil
	}
	return &mem[c].Layout
}

// cutters are one for each component.
type cutters [spec.ComponentCount]cutter

// of finds the cutter of a part's component; layout is the pool's there, nil if there is none.
func (c *cutters) of(p spec.Part, layout *spec.Layout) *cutter {
	if p.Component >= spec.ComponentCount {
		return &cutter{}
	}
	c[p.Component].layout = layout
	return &c[p.Component]
}
