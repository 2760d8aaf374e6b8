package verbs

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// sysfs is where the kernel shows devices.
const sysfs = "/sys/class/infiniband"

// Types of GIDs as the ends compare them: packets of one never reach another.
const (
	gidIB     = "IB"
	gidRoCE1  = "RoCE v1"
	gidRoCE24 = "RoCE v2 IPv4"
	gidRoCE26 = "RoCE v2 IPv6"
)

func portDir(root, dev string, port uint8) string {
	return filepath.Join(root, dev, "ports", strconv.Itoa(int(port)))
}

// gidType is the type of one entry of a port's table.
func gidType(root, dev string, port uint8, index int, gid [16]byte) string {
	layer, _ := os.ReadFile(filepath.Join(portDir(root, dev, port), "link_layer"))
	if strings.TrimSpace(string(layer)) == "InfiniBand" {
		return gidIB
	}
	t, _ := os.ReadFile(filepath.Join(portDir(root, dev, port), "gid_attrs", "types", strconv.Itoa(index)))
	switch {
	case strings.TrimSpace(string(t)) != "RoCE v2":
		return gidRoCE1
	case mappedIPv4(gid):
		return gidRoCE24
	}
	return gidRoCE26
}

func mappedIPv4(g [16]byte) bool {
	return [12]byte(g[:12]) == [12]byte{10: 0xff, 11: 0xff}
}

// bestGID is the index that GIDAuto stands for: RoCE v2 over IPv4, else RoCE v2, else the first. Equal ones: the lowest index.
func bestGID(root, dev string, port uint8) int {
	names, _ := os.ReadDir(filepath.Join(portDir(root, dev, port), "gids"))
	best, rank := 0, 0
	for _, n := range names {
		i, err := strconv.Atoi(n.Name())
		if err != nil || i < 0 || i > 255 {
			continue
		}
		g, ok := readGID(filepath.Join(portDir(root, dev, port), "gids", n.Name()))
		if !ok {
			continue
		}
		k := map[string]int{gidRoCE24: 3, gidRoCE26: 2, gidRoCE1: 1, gidIB: 1}[gidType(root, dev, port, i, g)]
		if k > rank || k == rank && i < best {
			best, rank = i, k
		}
	}
	return best
}

// readGID reads an entry; false for an empty one.
func readGID(path string) (g [16]byte, ok bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return g, false
	}
	words := strings.Split(strings.TrimSpace(string(b)), ":")
	if len(words) != 8 {
		return g, false
	}
	for i, w := range words {
		v, err := strconv.ParseUint(w, 16, 16)
		if err != nil {
			return g, false
		}
		g[2*i], g[2*i+1] = byte(v>>8), byte(v)
	}
	return g, g != [16]byte{}
}
