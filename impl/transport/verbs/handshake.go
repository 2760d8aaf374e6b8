package verbs

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"kvfence/spec"
)

// opening is what each end of a link says of itself, decode first, as JSON in a frameOpen. An unknown or missing field, an
// unknown value or a second opening is refused: both ends are kvfence.
type opening struct {
	Version int        `json:"version"`
	Windows bool       `json:"windows"` // decode's: leases come with keys
	Rails   []railEnd  `json:"rails"`   // by index; rails that are down are left out
	Pools   []poolEnd  `json:"pools"`
	Oldest  spec.Epoch `json:"oldest"` // prefill's: its queue pairs with this decode process of older epochs are destroyed
	Refused string     `json:"refused"`
}

// railEnd is one end of a rail.
type railEnd struct {
	Index     int    `json:"index"`
	Device    string `json:"device"`
	QueuePair uint32 `json:"queue_pair"`
	PSN       uint32 `json:"psn"`
	LID       uint16 `json:"lid"`
	GID       string `json:"gid"`      // 32 hex digits
	GIDType   string `json:"gid_type"` // "IB", "RoCE v1", "RoCE v2 IPv4" or "RoCE v2 IPv6"
	MTU       int    `json:"mtu"`
	// Keys open decode's pools to this queue pair's device, by component: pages and tag slots. Only where leases are off.
	Keys []poolKey `json:"keys"`
}

// poolKey is what opens one pool on one rail.
type poolKey struct {
	Component spec.Component `json:"component"`
	Pages     uint32         `json:"pages"`
	Tags      uint32         `json:"tags"`
}

// poolEnd is one pool: what lies where in it. Addresses are those of the first byte of pages and of tag slots.
type poolEnd struct {
	Layout spec.Layout `json:"layout"`
	Pages  uint64      `json:"pages"`
	Tags   uint64      `json:"tags"`
}

// openingVersion changes with the meaning of anything on the stream.
const openingVersion = 1

// maxOpening bounds an opening: a few rails and pools.
const maxOpening = 64 << 10

// parseOpening reads an opening and checks its own bounds; whether two ends fit is agree's.
func parseOpening(b []byte) (o opening, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, fmt.Errorf("%w: opening: %w", ErrMismatch, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return o, fmt.Errorf("%w: opening: bytes behind it", ErrMismatch)
	}
	if o.Refused != "" {
		return o, fmt.Errorf("%w: the peer refuses: %s", ErrMismatch, printable(o.Refused))
	}
	if o.Version != openingVersion {
		return o, differs("version", openingVersion, o.Version)
	}
	if len(o.Rails) > MaxRails || len(o.Pools) > int(spec.ComponentCount) {
		return o, fmt.Errorf("%w: opening: %d rails and %d pools", ErrMismatch, len(o.Rails), len(o.Pools))
	}
	for i, r := range o.Rails {
		if _, err := r.gid(); err != nil || r.Index < 0 || r.Index >= MaxRails || (i > 0 && r.Index <= o.Rails[i-1].Index) ||
			r.QueuePair == 0 || r.QueuePair > 1<<24-1 || r.PSN > 1<<24-1 || len(r.Keys) > int(spec.ComponentCount) {
			return o, fmt.Errorf("%w: opening: rail %d is out of range", ErrMismatch, r.Index)
		}
	}
	seen := [spec.ComponentCount]bool{}
	for _, p := range o.Pools {
		if err := p.check(); err != nil {
			return o, err
		}
		if seen[p.Layout.Component] {
			return o, fmt.Errorf("%w: opening: pool %s twice", ErrMismatch, p.Layout.Component)
		}
		seen[p.Layout.Component] = true
	}
	return o, nil
}

// check tests a peer's pool: no address may wrap, since addresses of writes are computed from it.
func (p poolEnd) check() error {
	if err := p.Layout.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	s := p.Layout.Shape
	pages, tags := uint64(s.Pages)*uint64(s.PageBytes), uint64(s.Pages)*uint64(s.TagSlots)*spec.TagBytes
	if p.Pages+pages < p.Pages || p.Tags+tags < p.Tags {
		return fmt.Errorf("%w: pool %s wraps the address space", ErrMismatch, p.Layout.Component)
	}
	return nil
}

func (r railEnd) gid() (g [16]byte, err error) {
	b, err := hex.DecodeString(r.GID)
	if err != nil || len(b) != len(g) {
		return g, fmt.Errorf("%w: GID %q", ErrMismatch, printable(r.GID))
	}
	return [16]byte(b), nil
}

func differs(field string, ours, theirs any) error {
	return fmt.Errorf("%w: %s: ours %v, theirs %v", ErrMismatch, field, ours, printable(fmt.Sprint(theirs)))
}

// printable bounds and cleans text of a peer for an error.
func printable(s string) string {
	if len(s) > 200 {
		s = s[:200]
	}
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s), "?")
}

// agree finds the rails that both ends have up, and refuses ends that do not fit, by name and with both values. Rail k of one end
// goes to rail k of the other.
func agree(ours, theirs opening) (rails []int, err error) {
	peer := map[int]railEnd{}
	for _, r := range theirs.Rails {
		peer[r.Index] = r
	}
	for _, r := range ours.Rails {
		t, both := peer[r.Index]
		if !both {
			continue
		}
		name := fmt.Sprintf("rail %d (%s, %s)", r.Index, r.Device, printable(t.Device))
		if r.MTU != t.MTU {
			return nil, differs(name+" MTU", r.MTU, t.MTU)
		}
		if r.GIDType != t.GIDType {
			return nil, differs(name+" GID type", r.GIDType, t.GIDType)
		}
		rails = append(rails, r.Index)
	}
	if len(rails) == 0 {
		return nil, differs("rails that are up", indexes(ours.Rails), indexes(theirs.Rails))
	}
	return rails, agreePools(ours.Pools, theirs.Pools)
}

// agreePools compares what decides the meaning of bytes, component by component.
func agreePools(ours, theirs []poolEnd) error {
	layouts := [spec.ComponentCount]*spec.Layout{}
	for i := range theirs {
		layouts[theirs[i].Layout.Component] = &theirs[i].Layout
	}
	for _, o := range ours {
		c := o.Layout.Component
		if layouts[c] == nil {
			return differs("pools", c.String(), "none of that kind")
		}
		if err := o.Layout.Equal.Compare(c, layouts[c].Equal); err != nil {
			return fmt.Errorf("%w: %w", ErrMismatch, err)
		}
	}
	if len(ours) != len(theirs) {
		return differs("number of pools", len(ours), len(theirs))
	}
	return nil
}

func indexes(rs []railEnd) string {
	out := []string{}
	for _, r := range rs {
		out = append(out, fmt.Sprintf("%d (%s)", r.Index, r.Device))
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}
