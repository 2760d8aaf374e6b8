//go:build cuda && cgo && linux

package gpu

import (
	"fmt"
	"os"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// unsaid is what NVML puts where it does not say a process's memory.
const unsaid = ^uint64(0)

// Memory measures now.
func (c *Card) Memory() (Memory, error) {
	h, err := c.handle()
	if err != nil {
		return Memory{}, err
	}
	type found struct {
		m   Memory
		err error
	}
	f, err := call(c.calls, 0, func() (f found) {
		f.m, f.err = c.amounts(h)
		if f.err == nil {
			f.m.Others, f.m.Unlisted = c.others(h)
		}
		return f
	})
	if err == nil {
		err = f.err
	}
	if err != nil {
		return Memory{}, fmt.Errorf("memory of GPU %d: %w", c.info.Index, err)
	}
	f.m.Card = fmt.Sprintf("GPU %d %s", c.info.Index, c.info.UUID)
	return f.m, nil
}

// amounts asks the call that tells what is reserved, or the older one.
func (c *Card) amounts(h handle) (Memory, error) {
	m, ret := Memory{}, nvml.ERROR_NOT_SUPPORTED
	if c.all.syms.has[symMemory2] {
		c.calls.step(symMemory2)
		var v nvml.Memory_v2
		v, ret = h.GetMemoryInfo_v2()
		m = Memory{Total: v.Total, Free: v.Free, Used: v.Used, Reserved: v.Reserved}
	}
	if absent(ret) {
		c.calls.step("nvmlDeviceGetMemoryInfo")
		var v nvml.Memory
		v, ret = h.GetMemoryInfo()
		m = Memory{Total: v.Total, Free: v.Free, Used: v.Used}
	}
	if ret != nvml.SUCCESS {
		return Memory{}, failed("nvmlDeviceGetMemoryInfo", ret)
	}
	if m.Free > m.Total {
		return Memory{}, fmt.Errorf("%w: %d bytes free of %d: no measurement", ErrCall, m.Free, m.Total)
	}
	return m, nil
}

// others are the processes that have memory on the card, but for this one.
func (c *Card) others(h handle) (list []Process, why string) {
	list = []Process{}
	for _, q := range [...]struct {
		name string
		f    func() ([]nvml.ProcessInfo, nvml.Return)
	}{{symComputes, h.GetComputeRunningProcesses}, {symGraphics, h.GetGraphicsRunningProcesses}} {
		if !c.all.syms.has[q.name] {
			return list, "the library has no " + q.name
		}
		c.calls.step(q.name)
		ps, ret := q.f()
		if ret != nvml.SUCCESS {
			return list, failed(q.name, ret).Error()
		}
		for _, p := range ps {
			n := p.UsedGpuMemory
			if n == unsaid {
				n = 0
			}
			at := -1
			for i := range list {
				if list[i].PID == p.Pid {
					at = i
				}
			}
			switch {
			case int64(p.Pid) == int64(os.Getpid()):
			case at >= 0:
				list[at].Bytes = max(list[at].Bytes, n) // one with contexts of both kinds stands in both lists, with all its memory
			default:
				list = append(list, Process{p.Pid, n})
			}
		}
	}
	return list, ""
}
