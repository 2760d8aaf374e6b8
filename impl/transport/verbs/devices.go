package verbs

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Device is an RDMA device as the kernel shows it. What could not be read is empty, or -1.
type Device struct {
	Name   string    `json:"name"`
	PCI    string    `json:"pci,omitempty"` // address; empty for one that is no PCI function (soft RoCE)
	NUMA   int       `json:"numa"`          // node, -1 where there is none
	Netdev string    `json:"netdev,omitempty"`
	Ports  []Port    `json:"ports"`
	GPUs   []GPUPath `json:"gpus,omitempty"` // nearest first
}

// Port is one port of a device.
type Port struct {
	Number uint8  `json:"port"`
	State  string `json:"state"` // ACTIVE, DOWN, ...
	Layer  string `json:"link_layer"`
	Rate   string `json:"rate"`
	GIDs   []GID  `json:"gids"`
	Chosen int    `json:"chosen_gid"` // what GIDAuto stands for; -1: none
	Why    string `json:"why"`
}

// GID is one entry of a port's table.
type GID struct {
	Index int    `json:"index"`
	Type  string `json:"type"`
	Text  string `json:"address"`
}

// GPUPath is how far a GPU is from a device.
type GPUPath struct {
	PCI      string   `json:"pci"`
	Distance Distance `json:"distance"`
}

// Distance is what lies between two PCI functions, near to far.
type Distance int

// The distances. PCIe traffic between two functions stays below a switch, crosses a root port, a socket, or the link between sockets.
const (
	SameSwitch Distance = iota + 1
	SameRoot
	SameNode
	OtherNode
)

// String implements fmt.Stringer.
func (d Distance) String() string {
	return [...]string{"unknown", "same switch", "same root", "same NUMA node", "other NUMA node"}[max(0, min(d, OtherNode))]
}

// MarshalText implements encoding.TextMarshaler.
func (d Distance) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Devices reads all RDMA devices below a sysfs, /sys in production, by name. A machine without any has an empty list.
func Devices(root string) []Device {
	class := filepath.Join(root, "class", "infiniband")
	names, _ := os.ReadDir(class)
	gpus := findGPUs(root)
	out := make([]Device, 0, len(names))
	for _, n := range names {
		dir := filepath.Join(class, n.Name())
		d := Device{Name: n.Name(), NUMA: number(filepath.Join(dir, "device", "numa_node"), -1), Ports: ports(class, n.Name())}
		path, err := filepath.EvalSymlinks(filepath.Join(dir, "device"))
		if err == nil && pciAddress(filepath.Base(path)) {
			d.PCI = filepath.Base(path)
			for _, g := range gpus {
				d.GPUs = append(d.GPUs, GPUPath{filepath.Base(g), distance(path, g)})
			}
			slices.SortStableFunc(d.GPUs, func(a, b GPUPath) int { return cmp.Compare(a.Distance, b.Distance) })
		}
		if nets, _ := os.ReadDir(filepath.Join(dir, "device", "net")); len(nets) > 0 {
			d.Netdev = nets[0].Name()
		} else {
			d.Netdev = word(filepath.Join(dir, "parent"))
		}
		out = append(out, d)
	}
	return out
}

func ports(class, dev string) (out []Port) {
	names, _ := os.ReadDir(filepath.Join(class, dev, "ports"))
	for _, n := range names {
		k, err := strconv.ParseUint(n.Name(), 10, 8)
		if err != nil || k == 0 {
			continue
		}
		dir := portDir(class, dev, uint8(k))
		_, state, _ := strings.Cut(word(filepath.Join(dir, "state")), ": ")
		p := Port{Number: uint8(k), State: state, Layer: word(filepath.Join(dir, "link_layer")), Rate: word(filepath.Join(dir, "rate")), Chosen: -1}
		entries, _ := os.ReadDir(filepath.Join(dir, "gids"))
		for _, e := range entries {
			i, err := strconv.Atoi(e.Name())
			if g, ok := readGID(filepath.Join(dir, "gids", e.Name())); err == nil && i >= 0 && i <= 255 && ok {
				p.GIDs = append(p.GIDs, GID{i, gidType(class, dev, p.Number, i, g), net.IP(g[:]).String()})
			}
		}
		slices.SortFunc(p.GIDs, func(a, b GID) int { return cmp.Compare(a.Index, b.Index) })
		p.choose(bestGID(class, dev, p.Number))
		out = append(out, p)
	}
	return out
}

// choose keeps which GID GIDAuto stands for, and why.
func (p *Port) choose(best int) {
	at := slices.IndexFunc(p.GIDs, func(g GID) bool { return g.Index == best })
	if at < 0 {
		p.Why = "the table is empty"
		return
	}
	p.Chosen = best
	switch g := p.GIDs[at]; g.Type {
	case gidRoCE24:
		p.Why = "RoCE v2 over IPv4: routed, and the same at both ends once each has an address"
	case gidRoCE26:
		p.Why = "RoCE v2 over IPv6: no IPv4 address is there"
	case gidRoCE1:
		p.Why = "RoCE v1: nothing of v2 is there; it is not routed"
	default:
		p.Why = "InfiniBand: the first; the LID decides"
	}
}

// findGPUs are the paths of display and 3D controllers of NVIDIA and AMD.
func findGPUs(root string) (out []string) {
	links, _ := filepath.Glob(filepath.Join(root, "bus", "pci", "devices", "*"))
	for _, l := range links {
		class, vendor := word(filepath.Join(l, "class")), word(filepath.Join(l, "vendor"))
		gpu := strings.HasPrefix(class, "0x0300") || strings.HasPrefix(class, "0x0302") || strings.HasPrefix(class, "0x0380") || strings.HasPrefix(class, "0x1200")
		if !gpu || vendor != "0x10de" && vendor != "0x1002" {
			continue
		}
		if path, err := filepath.EvalSymlinks(l); err == nil {
			out = append(out, path)
		}
	}
	return out
}

// distance compares two functions' places in the tree of bridges.
func distance(a, b string) Distance {
	pa, pb := strings.Split(filepath.Dir(a), "/"), strings.Split(filepath.Dir(b), "/")
	shared, bridges := 0, 0
	for shared < len(pa) && shared < len(pb) && pa[shared] == pb[shared] {
		if pciAddress(pa[shared]) {
			bridges++
		}
		shared++
	}
	na, nb := number(filepath.Join(a, "numa_node"), -1), number(filepath.Join(b, "numa_node"), -1)
	switch {
	case bridges >= 2: // a root port and at least one bridge below it
		return SameSwitch
	case shared > 0 && strings.HasPrefix(pa[shared-1], "pci") || bridges == 1:
		return SameRoot
	case na == nb && na >= 0:
		return SameNode
	}
	return OtherNode
}

// pciAddress reports whether a name is one of a PCI function, domain:bus:device.function.
func pciAddress(s string) bool {
	return len(s) >= 12 && strings.Count(s, ":") == 2 && strings.Contains(s, ".") && strings.Trim(s, "0123456789abcdef:.") == ""
}

func word(path string) string {
	b, err := os.ReadFile(path)
	if err != nil || len(b) > 4096 {
		return ""
	}
	return printable(strings.TrimSpace(string(b)))
}

func number(path string, none int) int {
	n, err := strconv.Atoi(word(path))
	if err != nil {
		return none
	}
	return n
}

// Choice is a rail with the reason of its place.
type Choice struct {
	Rail
	Why string
}

// ErrNear says that a place to be near to is no GPU's PCI address and no NUMA node.
var ErrNear = fmt.Errorf("%w: near", ErrOptions)

// ChooseRails are the active ports, nearest first, at most most. near is the PCI address of a GPU, "numa:N", or empty: then by name.
func ChooseRails(root, near string, most int) (out []Choice, err error) {
	rank, err := ranking(near)
	if err != nil {
		return nil, err
	}
	type found struct {
		Choice
		far int
	}
	var all []found
	var down []string
	for _, d := range Devices(root) {
		far, why := rank(d)
		for _, p := range d.Ports {
			if p.State != "ACTIVE" {
				down = append(down, fmt.Sprintf("%s port %d is %q", d.Name, p.Number, p.State))
				continue
			}
			all = append(all, found{Choice{Rail{d.Name, p.Number, GIDAuto}, why}, far})
		}
	}
	if len(all) == 0 {
		if len(down) == 0 {
			down = append(down, "no device is there")
		}
		return nil, fmt.Errorf("%w: no active port: %s", ErrNoDevice, strings.Join(down, ", "))
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(a.far, b.far) })
	for _, f := range all[:min(most, len(all))] {
		out = append(out, f.Choice)
	}
	return out, nil
}

// ranking orders devices by what they are to be near to.
func ranking(near string) (func(Device) (int, string), error) {
	node, isNode := strings.CutPrefix(near, "numa:")
	switch {
	case near == "":
		return func(Device) (int, string) { return 0, "by name: nothing is named that it should be near to" }, nil
	case isNode:
		n, err := strconv.Atoi(node)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%w: %q", ErrNear, printable(near))
		}
		return func(d Device) (int, string) {
			if d.NUMA == n {
				return 0, fmt.Sprintf("on NUMA node %d", n)
			}
			return 1, fmt.Sprintf("on NUMA node %d, not %d", d.NUMA, n)
		}, nil
	case pciAddress(near):
		return func(d Device) (int, string) {
			for _, g := range d.GPUs {
				if g.PCI == near {
					return int(g.Distance), fmt.Sprintf("%s as GPU %s", g.Distance, near)
				}
			}
			return int(OtherNode) + 1, "no way to GPU " + near + " is known"
		}, nil
	}
	return nil, fmt.Errorf("%w: %q is neither a PCI address nor numa:N", ErrNear, printable(near))
}
