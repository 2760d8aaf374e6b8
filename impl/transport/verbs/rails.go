package verbs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// FindRails are the ports that are active now, at most most of them, by device name and port.
func FindRails(most int) ([]Rail, error) { return findRails(sysfs, most) }

func findRails(root string, most int) (rs []Rail, err error) {
	ports, err := filepath.Glob(filepath.Join(root, "*", "ports", "*"))
	if err != nil {
		return nil, err
	}
	slices.Sort(ports)
	down := []string{}
	for _, p := range ports {
		dev := filepath.Base(filepath.Dir(filepath.Dir(p)))
		n, err := strconv.ParseUint(filepath.Base(p), 10, 8)
		if err != nil || n == 0 {
			continue
		}
		state, err := os.ReadFile(filepath.Join(p, "state"))
		if err != nil || !strings.HasPrefix(strings.TrimSpace(string(state)), "4:") { // 4: ACTIVE
			down = append(down, fmt.Sprintf("%s port %d is %q", dev, n, strings.TrimSpace(string(state))))
			continue
		}
		if len(rs) < most {
			rs = append(rs, Rail{Device: dev, Port: uint8(n), GID: GIDAuto})
		}
	}
	if len(rs) == 0 {
		if len(down) == 0 {
			down = append(down, "none is there")
		}
		return nil, fmt.Errorf("%w: no active port: %s", ErrNoDevice, strings.Join(down, ", "))
	}
	return rs, nil
}
