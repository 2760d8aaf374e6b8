package verbs

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"kvfence/impl/device"
)

// PoolBytes is the memory that registering mem locks, once for each device, in whole 4 KiB pages.
func PoolBytes(mem device.Memory) (n uint64) {
	for _, p := range mem {
		if p != nil {
			n += uint64(device.PageAlign(int64(len(p.Bytes)))) + uint64(device.PageAlign(int64(len(p.Tags))))
		}
	}
	return n
}

// Memlock is this process's limit of locked memory; unlimited where ok is false.
func Memlock() (limit uint64, ok bool) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r); err != nil || r.Cur == unix.RLIM_INFINITY {
		return 0, false
	}
	return r.Cur, true
}

// checkMemlock refuses pools that the limit cannot hold, with both numbers. Each device locks them anew, and so do regions of leases; pinned is what
// this process has locked already.
func checkMemlock(need, pinned, limit uint64, limited bool) error {
	if limited && need+pinned > limit {
		return fmt.Errorf("%w: the pools need %d bytes beside %d that are locked, the limit (ulimit -l, memlock) is %d", ErrMemlock, need, pinned, limit)
	}
	return nil
}

// Pinned is the memory that devices of this process have locked.
func Pinned() uint64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if v, is := strings.CutPrefix(line, "VmPin:"); is {
			n, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 54)
			return n << 10
		}
	}
	return 0
}
