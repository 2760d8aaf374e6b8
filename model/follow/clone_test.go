package follow

import (
	"maps"
	"slices"
)

// clone is a copy that shares nothing.
func (s *State) clone() *State {
	c := &State{transfers: make(map[Transfer]*transfer, len(s.transfers)), leases: make(map[Lease]*lease, len(s.leases)), pages: make(map[Page]*page, len(s.pages)), apart: s.apart, asking: s.asking}
	for id, t := range s.transfers {
		x := *t
		x.leases = slices.Clone(t.leases)
		c.transfers[id] = &x
	}
	for id, p := range s.pages {
		x := *p
		x.slots, x.pubs, x.sharers = slices.Clone(p.slots), slices.Clone(p.pubs), slices.Clone(p.sharers)
		c.pages[id] = &x
	}
	owes := map[*owe]*owe{}
	for id, l := range s.leases {
		x := *l
		x.plan, x.shr, x.sub, x.at, x.krn, x.tok = slices.Clone(l.plan), slices.Clone(l.shr), slices.Clone(l.sub), maps.Clone(l.at), maps.Clone(l.krn), maps.Clone(l.tok)
		x.owes = nil
		for _, o := range l.owes {
			y := *o
			y.lease, y.owed, y.nin, y.nsent, y.sent = &x, maps.Clone(o.owed), slices.Clone(o.nin), slices.Clone(o.nsent), nil
			if o.sent != nil {
				y.sent = map[at]*write{}
				for a, w := range o.sent {
					z := *w
					y.sent[a] = &z
				}
			}
			owes[o] = &y
			x.owes = append(x.owes, &y)
		}
		c.leases[id] = &x
	}
	for _, n := range s.nodes {
		x := *n
		x.links, x.pages, x.leases = slices.Clone(n.links), maps.Clone(n.pages), map[Lease]*lease{}
		for id := range n.leases {
			x.leases[id] = c.leases[id]
		}
		c.nodes = append(c.nodes, &x)
	}
	for _, k := range s.links {
		x := *k
		x.pfenced, x.acc, x.src, x.owed = maps.Clone(k.pfenced), maps.Clone(k.acc), map[SPage]*source{}, map[Lease]*owe{}
		for q, y := range k.src {
			z := *y
			x.src[q] = &z
		}
		for id, o := range k.owed {
			x.owed[id] = owes[o]
		}
		c.links = append(c.links, &x)
	}
	return c
}
