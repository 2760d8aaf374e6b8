//go:build cuda && cgo && linux

package gpu

import (
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// card asks for all that does not change.
func (c *Cards) card(index int) *Card {
	card := &Card{all: c, info: Info{Index: index, Compute: "unknown"}, calls: newCaller(c.set.limit), events: newCaller(c.set.limit)}
	type found struct {
		dev  nvml.Device
		info Info
		bad  error
		what string
		ret  nvml.Return
	}
	f, err := call(card.calls, 0, func() (f found) {
		f.info = card.info
		ask := func(what string) { f.what = what; card.calls.step(what) }
		ask("nvmlDeviceGetHandleByIndex")
		dev, ret := c.lib.DeviceGetHandleByIndex(index)
		if f.ret = ret; ret != nvml.SUCCESS {
			return f
		}
		f.dev = dev
		var h handle = dev
		ask("nvmlDeviceGetUUID")
		if f.info.UUID, f.ret = h.GetUUID(); f.ret != nvml.SUCCESS {
			return f
		}
		ask("nvmlDeviceGetPciInfo")
		var pci nvml.PciInfo
		if pci, f.ret = h.GetPciInfo(); f.ret != nvml.SUCCESS {
			return f
		}
		f.info.PCI = sysfsAddress(chars(pci.BusId[:]))
		ask("nvmlDeviceGetName")
		if f.info.Name, f.ret = h.GetName(); f.ret != nvml.SUCCESS {
			return f
		}
		ask("nvmlDeviceGetComputeMode")
		mode, ret := h.GetComputeMode()
		if ret != nvml.SUCCESS && !absent(ret) {
			f.ret = ret
			return f
		}
		if ret == nvml.SUCCESS {
			f.info.Compute, f.bad = computeMode(mode)
		}
		if c.syms.has[symMIG] {
			ask(symMIG)
			now, later, ret := h.GetMigMode()
			switch {
			case ret == nvml.SUCCESS:
				f.info.MIG = now == nvml.DEVICE_MIG_ENABLE || later == nvml.DEVICE_MIG_ENABLE
			case !absent(ret):
				f.ret = ret
			}
		}
		return f
	})
	if err == nil {
		err = failed(f.what, f.ret)
	}
	if err != nil {
		card.dev, card.bad = f.dev, fmt.Errorf("%w: GPU %d: %w", ErrUnusable, index, err)
		if f.info.UUID != "" {
			card.info = f.info
		}
		return card
	}
	f.info.Name, f.info.UUID = printable(f.info.Name), printable(f.info.UUID)
	card.dev, card.info, card.bad = f.dev, f.info, unusable(f.info, f.bad)
	return card
}

// unusable says why a card that answers cannot be used; nil if it can.
func unusable(i Info, bad error) error {
	switch {
	case i.MIG:
		return fmt.Errorf("%w: GPU %d %s is in MIG mode, or will be after a reset: events, memory and health of its instances are not told apart, so none of them can be fenced alone. Turn MIG off, or use another card",
			ErrUnusable, i.Index, i.UUID)
	case bad != nil:
		return fmt.Errorf("%w: GPU %d %s: %w", ErrUnusable, i.Index, i.UUID, bad)
	}
	return nil
}

func computeMode(m nvml.ComputeMode) (string, error) {
	switch m {
	case nvml.COMPUTEMODE_DEFAULT:
		return "default", nil
	case nvml.COMPUTEMODE_EXCLUSIVE_PROCESS, nvml.COMPUTEMODE_EXCLUSIVE_THREAD:
		return "exclusive process", nil
	case nvml.COMPUTEMODE_PROHIBITED:
		return "prohibited", fmt.Errorf("its compute mode forbids contexts")
	}
	return fmt.Sprintf("mode %d", int(m)), nil
}

// Find is the card that has this index, UUID or PCI address, if it can be used.
func (c *Cards) Find(id string) (*Card, error) {
	if strings.HasPrefix(id, "MIG-") {
		return nil, fmt.Errorf("%w: %s is an instance of a card in MIG mode: only whole cards can be watched and fenced", ErrUnusable, printable(id))
	}
	var have []string
	for _, card := range c.cards {
		if card.info.names(id) {
			if card.bad != nil {
				return nil, card.bad
			}
			return card, nil
		}
		have = append(have, fmt.Sprintf("%d %s (%s, PCI %s)", card.info.Index, card.info.UUID, card.info.Name, card.info.PCI))
	}
	if len(have) == 0 {
		have = append(have, "none")
	}
	return nil, fmt.Errorf("%w: %q; there are: %s", ErrNoCard, printable(id), strings.Join(have, ", "))
}

// Info is what the card is.
func (c *Card) Info() Info { return c.info }

// Usable is why the card cannot hold pools, as found when it was opened: MIG, a compute mode, or that it could not be asked.
func (c *Card) Usable() error { return c.bad }

// Ready is nil while new leases may be given: the card can be used, is being watched, and no fault stands against it.
func (c *Card) Ready() error {
	if c.bad != nil {
		return c.bad
	}
	return c.ledger.ready()
}

// Faults are all that were found in this process, oldest first, with how often.
func (c *Card) Faults() []Seen { return c.ledger.faults() }

// handle is what the card is asked by, or why it cannot be.
func (c *Card) handle() (handle, error) {
	if c.dev == nil {
		return nil, c.bad
	}
	return c.dev, nil
}

// chars is a C string in an array.
func chars(in []int8) string {
	var b []byte
	for _, x := range in {
		if x == 0 {
			break
		}
		b = append(b, byte(x))
	}
	return printable(string(b))
}
