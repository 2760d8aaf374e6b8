//go:build cuda && cgo && linux

package gpu

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// ends are where a card's NVLinks lead.
type ends struct {
	to       map[string]int // links by the PCI address of a card
	switches int
}

// Place is where the card sits, by what the kernel shows below root (/sys) and what the library says of the other cards.
func (c *Card) Place(root string) (Place, error) {
	if _, err := c.handle(); err != nil {
		return Place{NUMA: -1}, err
	}
	p := placeOf(root, c.info.PCI)
	mine, err := c.ends()
	if err != nil {
		return p, err
	}
	for _, o := range c.all.cards {
		if o == c || o.dev == nil {
			continue
		}
		peer := Peer{UUID: o.info.UUID, PCI: o.info.PCI, Links: mine.to[o.info.PCI]}
		if peer.Meet, err = c.meet(o); err != nil {
			return p, err
		}
		if mine.switches > 0 {
			theirs, err := o.ends()
			if err != nil {
				return p, err
			}
			peer.Switch = min(mine.switches, theirs.switches)
		}
		p.Peers = append(p.Peers, peer)
	}
	return p, nil
}

// ends asks for the far ends of all links that are up.
func (c *Card) ends() (ends, error) {
	type found struct {
		e   ends
		err error
	}
	f, err := call(c.calls, 0, func() found {
		e := ends{to: map[string]int{}}
		l := look{card: c, h: c.dev}
		for k := range nvml.NVLINK_MAX_LINKS {
			if !l.may(symLink) {
				break
			}
			on, ret := l.h.GetNvLinkState(k)
			if ret == nvml.ERROR_INVALID_ARGUMENT || !l.got(symLink, ret) {
				break
			}
			if on != nvml.FEATURE_ENABLED || !l.may(symLinkType) {
				continue
			}
			kind, ret := l.h.GetNvLinkRemoteDeviceType(k)
			if !l.got(symLinkType, ret) {
				continue
			}
			if kind == nvml.NVLINK_DEVICE_TYPE_SWITCH {
				e.switches++
			}
			if kind == nvml.NVLINK_DEVICE_TYPE_GPU && l.may(symLinkPeer) {
				if pci, ret := l.h.GetNvLinkRemotePciInfo(k); l.got(symLinkPeer, ret) {
					e.to[sysfsAddress(chars(pci.BusId[:]))]++
				}
			}
		}
		return found{e, l.err}
	})
	if err == nil {
		err = f.err
	}
	if err != nil {
		return ends{}, fmt.Errorf("NVLinks of GPU %d: %w", c.info.Index, err)
	}
	return f.e, nil
}

// meet is where the PCIe paths of two cards meet.
func (c *Card) meet(o *Card) (string, error) {
	if !c.all.syms.has[symAncestor] {
		return "unknown", nil
	}
	type found struct {
		level nvml.GpuTopologyLevel
		ret   nvml.Return
	}
	c.calls.step(symAncestor)
	f, err := call(c.calls, 0, func() (f found) {
		f.level, f.ret = handle(c.dev).GetTopologyCommonAncestor(o.dev)
		return f
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("GPU %d: %w", c.info.Index, err)
	case absent(f.ret):
		return "unknown", nil
	case f.ret != nvml.SUCCESS:
		return "", fmt.Errorf("GPU %d: %w", c.info.Index, failed(symAncestor, f.ret))
	}
	switch f.level {
	case nvml.TOPOLOGY_INTERNAL:
		return "same board", nil
	case nvml.TOPOLOGY_SINGLE:
		return "one switch", nil
	case nvml.TOPOLOGY_MULTIPLE:
		return "several switches", nil
	case nvml.TOPOLOGY_HOSTBRIDGE:
		return "host bridge", nil
	case nvml.TOPOLOGY_NODE:
		return "NUMA node", nil
	case nvml.TOPOLOGY_SYSTEM:
		return "across NUMA nodes", nil
	}
	return fmt.Sprintf("level %d", int(f.level)), nil
}
