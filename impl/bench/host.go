//go:build linux

package bench

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"kvfence/impl/device"
)

// Host is the machine at the start of a run.
type Host struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	Memory     string `json:"memory"`
	Kernel     string `json:"kernel"`
	Load       string `json:"load"`
	Congestion string `json:"system_congestion_control"`
	Stream     string `json:"non_temporal_copy"` // what device.CopyStream uses
	Go         string `json:"go"`
	C          string `json:"c"` // compiler of the references; "" if there is none
}

func hostNow() Host {
	h := Host{Cores: runtime.NumCPU(), Load: load(), Stream: device.StreamKind(), Go: runtime.Version() + " " + runtime.GOARCH, Congestion: oneLine("/proc/sys/net/ipv4/tcp_congestion_control")}
	for line := range strings.Lines(oneFile("/proc/cpuinfo")) {
		if name, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			h.CPU = strings.TrimSpace(v)
			break
		}
	}
	if first, _, ok := strings.Cut(oneFile("/proc/meminfo"), "\n"); ok {
		h.Memory = strings.Join(strings.Fields(first)[1:], " ")
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	return h
}

// load is the load average of the last minute, 5 and 15 minutes.
func load() string {
	f := strings.Fields(oneFile("/proc/loadavg"))
	return strings.Join(f[:min(3, len(f))], " ")
}

func oneFile(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(b)
}

func oneLine(name string) string { return strings.TrimSpace(oneFile(name)) }

// monotonic is the clock that all processes of a host share, in nanoseconds.
func monotonic() (int64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0, fmt.Errorf("%w: clock: %w", ErrBench, err)
	}
	return t.Nano(), nil
}

// cpuOf is the CPU time that processes have used so far, in nanoseconds.
func cpuOf(pids []int) (sum int64, err error) {
	for _, pid := range pids {
		var t unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil { // CPUCLOCK_SCHED of a process
			return 0, fmt.Errorf("%w: CPU time of process %d: %w", ErrBench, pid, err)
		}
		sum += t.Nano()
	}
	return sum, nil
}
