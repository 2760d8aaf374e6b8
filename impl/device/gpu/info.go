package gpu

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Info is what a card is, found when the cards were opened.
type Info struct {
	Index   int    `json:"index"` // NVML's
	UUID    string `json:"uuid"`
	PCI     string `json:"pci"` // as in sysfs, and as transport.verbs.near wants it: 0000:1b:00.0
	Name    string `json:"name"`
	Compute string `json:"compute_mode"`
	MIG     bool   `json:"mig"`
}

// Versions are those of what is installed.
type Versions struct {
	Driver string `json:"driver"`
	NVML   string `json:"nvml"`
	CUDA   string `json:"cuda"` // the newest that the driver can do
}

// Place is where a card sits. What could not be read is -1 or empty.
type Place struct {
	NUMA  int    `json:"numa"`
	CPUs  string `json:"cpus"` // the kernel's list of those that are near
	Peers []Peer `json:"peers,omitempty"`
}

// Peer is another card, seen from one.
type Peer struct {
	UUID   string `json:"uuid"`
	PCI    string `json:"pci"`
	Meet   string `json:"pcie"`              // where their PCIe paths meet
	Links  int    `json:"nvlinks"`           // straight to it
	Switch int    `json:"nvlinks_by_switch"` // to NVSwitches that both have links to; that all switches join them is assumed
}

// placeOf reads what the kernel says of a PCI function below a sysfs.
func placeOf(root, pci string) Place {
	dir := filepath.Join(root, "bus", "pci", "devices", pci)
	p := Place{NUMA: -1, CPUs: line(filepath.Join(dir, "local_cpulist"))}
	if n, err := strconv.Atoi(line(filepath.Join(dir, "numa_node"))); err == nil {
		p.NUMA = n
	}
	return p
}

func line(path string) string {
	b, err := os.ReadFile(path)
	if err != nil || len(b) > 4096 {
		return ""
	}
	return printable(strings.TrimSpace(string(b)))
}

// printable is s with what could move a terminal's cursor replaced, and at most 200 bytes of it.
func printable(s string) string {
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s[:min(len(s), 200)]), "?")
}

// sysfsAddress is a PCI address as sysfs writes it: NVML writes 00000000:1B:00.0, and domains above ffff (of virtual bridges) keep their digits in both.
func sysfsAddress(s string) string {
	s = strings.ToLower(s)
	domain, rest, ok := strings.Cut(s, ":")
	if ok && len(domain) == 8 && strings.HasPrefix(domain, "0000") {
		return domain[4:] + ":" + rest
	}
	return s
}

// names reports whether id is one of the names of a card.
func (i Info) names(id string) bool {
	return id != "" && (id == strconv.Itoa(i.Index) || id == i.UUID || sysfsAddress(id) == i.PCI)
}
