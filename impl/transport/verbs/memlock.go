package verbs

import (
	"fmt"

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

// checkMemlock refuses pools that the limit cannot hold, with both numbers. Each device locks them anew.
func checkMemlock(mem device.Memory, devices int, limit uint64, limited bool) error {
	if need := PoolBytes(mem) * uint64(devices); limited && need > limit {
		return fmt.Errorf("%w: the pools need %d bytes on %d devices, the limit (ulimit -l, memlock) is %d", ErrMemlock, need, devices, limit)
	}
	return nil
}
