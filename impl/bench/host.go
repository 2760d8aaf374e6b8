//go:build linux

package bench

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

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

// busy is the CPU time that everything on this machine has used so far, in nanoseconds, and that its cores have had.
func busy() (used, had int64) {
	line, _, _ := strings.Cut(oneFile("/proc/stat"), "\n")
	f := strings.Fields(line)
	for i, v := range f {
		n, err := strconv.ParseInt(v, 10, 64)
		if i == 0 || i > 8 || err != nil { // the rest is guests', counted in user
			continue
		}
		n *= int64(time.Second / 100) // USER_HZ
		had += n
		if i != 4 && i != 5 { // idle, iowait
			used += n
		}
	}
	return used, had
}

// meter tells how much of the machine others use.
type meter struct {
	pids            []int
	used, had, ours int64
}

func newMeter(pids []int) (m meter, err error) {
	m.pids = pids
	m.used, m.had = busy()
	m.ours, err = cpuOf(pids)
	return m, err
}

// others is the share of all cores that other processes had since the meter was made; 0 where /proc/stat cannot be read.
func (m meter) others() (float64, error) {
	used, had := busy()
	ours, err := cpuOf(m.pids)
	if had <= m.had {
		return 0, err
	}
	return max(0, float64((used-m.used)-(ours-m.ours))/float64(had-m.had)), err
}
