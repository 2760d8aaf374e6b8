package main

import (
	"fmt"
	"slices"
	"strings"

	"kvfence/impl/device/gpu"
	"kvfence/impl/transport/verbs"
)

// gpuReport is what devices prints of GPUs: what NVML says, and the RDMA devices that are nearest to each card, by the kernel's paths.
type gpuReport struct {
	gpu.Listing
	Nearest map[string][]string `json:"nearest_rdma"` // by the card's PCI address, which is what transport.verbs.near takes
}

func reportGPUs(list gpu.Listing, rdma []verbs.Device) gpuReport {
	r := gpuReport{list, map[string][]string{}}
	for _, c := range list.Cards {
		if c.PCI != "" {
			r.Nearest[c.PCI] = nearest(c.PCI, rdma)
		}
	}
	return r
}

// nearest names the RDMA devices at the least distance from a card.
func nearest(pci string, rdma []verbs.Device) []string {
	out, least := []string{}, verbs.OtherNode+1
	for _, d := range rdma {
		at := slices.IndexFunc(d.GPUs, func(g verbs.GPUPath) bool { return g.PCI == pci })
		if at < 0 || d.GPUs[at].Distance > least {
			continue
		}
		if d.GPUs[at].Distance < least {
			out, least = out[:0], d.GPUs[at].Distance
		}
		out = append(out, fmt.Sprintf("%s (%s)", d.Name, least))
	}
	return out
}

// print writes by p, which keeps the first error.
func (r gpuReport) print(p func(string, ...any)) {
	p("\nlibnvidia-ml  %s\n", r.Library)
	if v := r.Versions; v != nil {
		p("              driver %s, NVML %s, CUDA %s\n", v.Driver, v.NVML, v.CUDA)
	}
	for _, c := range r.Cards {
		p("\nGPU %d  %s  %s  PCI %s  compute mode %s", c.Index, c.UUID, c.Name, c.PCI, c.Compute)
		if c.NUMA >= 0 {
			p("  NUMA node %d", c.NUMA)
		}
		if c.CPUs != "" {
			p("  CPUs %s", c.CPUs)
		}
		p("\n")
		if m := c.Memory; m != nil {
			p("  memory: %d bytes, %d free, %d used, %d reserved; %d other processes\n", m.Total, m.Free, m.Used, m.Reserved, len(m.Others))
			for _, o := range m.Others {
				p("    process %d: %d bytes\n", o.PID, o.Bytes)
			}
			if m.Unlisted != "" {
				p("    other processes are not known: %s\n", m.Unlisted)
			}
		}
		if c.Health != nil {
			p("  health: %s\n", c.Health.Text())
		}
		for _, f := range c.Faults {
			p("  FAULT (%s) %s: %s\n", f.Action(), f.Kind, f.Detail)
		}
		for _, why := range c.Why {
			p("  %s\n", why)
		}
		for _, o := range c.Peers {
			p("  to %s: PCIe %s", o.PCI, o.Meet)
			if o.Links+o.Switch > 0 {
				p(", NVLinks %d straight and %d by switches", o.Links, o.Switch)
			}
			p("\n")
		}
		near := "none that a way is known to"
		if n := r.Nearest[c.PCI]; len(n) > 0 {
			near = strings.Join(n, ", ")
		}
		p("  nearest RDMA: %s\n", near)
	}
}
