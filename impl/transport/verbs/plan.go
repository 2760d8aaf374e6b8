package verbs

import (
	"cmp"
	"fmt"
	"slices"

	"kvfence/spec"
)

// request is one write of a page part: pieces of the source page that lie side by side in the destination page from offset at.
type request struct {
	at     uint32
	bytes  uint32
	pieces []spec.Segment
}

// planner cuts parts of pages into requests. Both lists of segments are the same byte string, cut as each side's page has it. It
// reuses its memory: what cut returns is good until the next call. Not safe for concurrent use.
type planner struct {
	out    []request
	pieces []spec.Segment
}

// cut makes requests of at most most pieces each.
func (p *planner) cut(src, dst []spec.Segment, most int) ([]request, error) {
	p.out, p.pieces = p.out[:0], p.pieces[:0]
	p.pieces = slices.Grow(p.pieces, len(src)+len(dst)) // never moves below: requests point into it
	s, used := 0, uint32(0)                             // place in src
	for _, d := range dst {
		for done := uint32(0); done < d.Bytes; {
			if s == len(src) {
				return nil, fmt.Errorf("%w: the destination has more bytes than the source", spec.ErrPlan)
			}
			n := min(src[s].Bytes-used, d.Bytes-done)
			p.add(spec.Segment{Offset: src[s].Offset + used, Bytes: n}, d.Offset+done, most)
			done += n
			if used += n; used == src[s].Bytes {
				s, used = s+1, 0
			}
		}
	}
	if s != len(src) {
		return nil, fmt.Errorf("%w: the source has more bytes than the destination", spec.ErrPlan)
	}
	return p.out, nil
}

func (p *planner) add(piece spec.Segment, at uint32, most int) {
	if k := len(p.out); k > 0 {
		if r := &p.out[k-1]; r.at+r.bytes == at && len(r.pieces) < most {
			p.pieces = append(p.pieces, piece)
			r.pieces = r.pieces[:len(r.pieces)+1]
			r.bytes += piece.Bytes
			return
		}
	}
	p.pieces = append(p.pieces, piece)
	n := len(p.pieces)
	p.out = append(p.out, request{at, piece.Bytes, p.pieces[n-1 : n : cap(p.pieces)]})
}

// runs are the runs of neighbouring pages of a lease, each page once.
func runs(pages []spec.GrantedPage) (out []windowKey) {
	ids := make([]uint32, 0, len(pages))
	for _, p := range pages {
		if p.Gen != 0 { // generation 0: not granted
			ids = append(ids, uint32(p.Page))
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if k := len(out); k > 0 && out[k-1].First+out[k-1].Count == id {
			out[k-1].Count++
			continue
		}
		out = append(out, windowKey{First: id, Count: 1})
	}
	return out
}

// keyTable finds the window of a page: per rail and component, pages and tag slots, sorted by first page.
type keyTable struct {
	of    [MaxRails][spec.ComponentCount][2][]windowKey
	full  bool
	count int
}

// add takes one frame. A run that overlaps another is refused, and so is one behind the last frame.
func (t *keyTable) add(k leaseKeys) error {
	if t.full {
		return fmt.Errorf("%w: keys of lease %d behind its last", ErrFrame, k.Lease)
	}
	t.count += len(k.Keys)
	for _, w := range k.Keys {
		l := &t.of[w.Rail][w.Component][bit(w.Tags)]
		*l = append(*l, w)
	}
	if t.full = k.Last; !t.full {
		return nil
	}
	for r := range t.of {
		for c := range t.of[r] {
			for i, l := range t.of[r][c] {
				slices.SortFunc(l, func(a, b windowKey) int { return cmp.Compare(a.First, b.First) })
				for j := 1; j < len(l); j++ {
					if l[j-1].First+l[j-1].Count > l[j].First {
						return fmt.Errorf("%w: two keys for page %d", ErrFrame, l[j].First)
					}
				}
				t.of[r][c][i] = l
			}
		}
	}
	return nil
}

// key finds the window of a page.
func (t *keyTable) key(rail int, c spec.Component, tags bool, page spec.PageID) (uint32, bool) {
	l := t.of[rail][c][bit(tags)]
	i, found := slices.BinarySearchFunc(l, uint32(page), func(w windowKey, p uint32) int { return cmp.Compare(w.First, p) })
	if !found {
		i--
	}
	if i < 0 || uint32(page)-l[i].First >= l[i].Count {
		return 0, false
	}
	return l[i].Key, true
}
