//go:build cuda && cgo && linux

package gpu

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
	"github.com/stretchr/testify/require"
)

// rig is go-nvml's DGX H100 with answers for what it leaves open, and faults to put into it.
type rig struct {
	*server.Server
	cards []*ill
	frees chan *mock.EventSet
}

// ill is one card of it, whose answers a test changes while it is asked. Its mocks' functions run on other goroutines.
type ill struct {
	dev   *server.Device
	mu    sync.Mutex
	h     Health
	mem   nvml.Memory_v2
	procs []nvml.ProcessInfo
	ret   map[string]nvml.Return   // by symbol
	hang  map[string]chan struct{} // by symbol: until it is closed
	types uint64
	sets  int
	event chan answer
}

type answer struct {
	e   nvml.EventData
	ret nvml.Return
}

// quick are settings for tests: a call that hangs is known to after a tenth of a second.
func quick() settings {
	return settings{limit: 100 * time.Millisecond, wait: 5 * time.Millisecond, every: 5 * time.Millisecond}
}

// patient is for tests that must not take a slow machine for a driver that hangs.
func patient() settings {
	s := quick()
	s.limit = 20 * time.Second
	return s
}

func dgx(t *testing.T) *rig {
	t.Helper()
	r := &rig{Server: dgxh100.New(), frees: make(chan *mock.EventSet, 64)}
	for i, d := range r.Devices {
		c := &ill{dev: d.(*server.Device), ret: map[string]nvml.Return{}, hang: map[string]chan struct{}{}, event: make(chan answer, 64), types: nvml.EventTypeAll}
		c.mem = nvml.Memory_v2{Total: 80 << 30, Free: 70 << 30, Used: 9 << 30, Reserved: 1 << 30}
		c.h = Health{ECC: Counter{true, 1}, Links: make([]Link, 18)}
		for k := range c.h.Links {
			c.h.Links[k] = Link{Number: k, Up: true}
		}
		c.answers(i)
		r.cards = append(r.cards, c)
	}
	r.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
		set := &mock.EventSet{}
		set.FreeFunc = func() nvml.Return { r.frees <- set; return nvml.SUCCESS }
		return set, nvml.SUCCESS
	}
	return r
}

// set changes what the card answers.
func (c *ill) set(f func(*ill)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c)
}

// state is what the card answers now to a question, after it hung as long as it is told to.
func (c *ill) state(symbol string) (Health, nvml.Return) {
	c.mu.Lock()
	hang := c.hang[symbol]
	c.mu.Unlock()
	if hang != nil {
		<-hang
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.h
	h.Links = append([]Link(nil), h.Links...)
	return h, c.ret[symbol]
}

func (c *ill) answers(index int) {
	d := c.dev
	d.PciBusID = fmt.Sprintf("00000000:%02X:00.0", 0x1b+index)
	d.GetPciInfoFunc = func() (p nvml.PciInfo, _ nvml.Return) {
		p.BusId = busID(d.PciBusID)
		return p, nvml.SUCCESS
	}
	d.GetComputeModeFunc = func() (nvml.ComputeMode, nvml.Return) {
		_, ret := c.state("nvmlDeviceGetComputeMode")
		return nvml.COMPUTEMODE_DEFAULT, ret
	}
	d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
		_, ret := c.state(symMemory2)
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.mem, ret
	}
	d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		_, ret := c.state(symComputes)
		c.mu.Lock()
		defer c.mu.Unlock()
		return append([]nvml.ProcessInfo(nil), c.procs...), ret
	}
	d.GetGraphicsRunningProcessesFunc = d.GetComputeRunningProcessesFunc
	d.GetEccModeFunc = func() (nvml.EnableState, nvml.EnableState, nvml.Return) {
		h, ret := c.state(symECCMode)
		return nvml.EnableState(h.ECC.N), nvml.EnableState(h.ECC.N), ret
	}
	d.GetTotalEccErrorsFunc = func(kind nvml.MemoryErrorType, _ nvml.EccCounterType) (uint64, nvml.Return) {
		h, ret := c.state(symECC)
		if kind == nvml.MEMORY_ERROR_TYPE_UNCORRECTED {
			return h.Uncorrectable.N, ret
		}
		return h.Corrected.N, ret
	}
	d.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) {
		h, ret := c.state(symRemapped)
		return 0, 0, h.RemapPending.N > 0, h.RemapFailed.N > 0, ret
	}
	d.GetRetiredPagesPendingStatusFunc = func() (nvml.EnableState, nvml.Return) {
		h, ret := c.state(symRetired)
		return nvml.EnableState(h.RetirePending.N), ret
	}
	d.GetFieldValuesFunc = func(v []nvml.FieldValue) nvml.Return {
		h, ret := c.state(symFields)
		v[0].ValueType = uint32(nvml.VALUE_TYPE_UNSIGNED_INT)
		binary.NativeEndian.PutUint32(v[0].Value[:], uint32(h.Recovery.N))
		copy(v[0].Value[4:], "\xff\xff\xff\xff") // not the value's
		return ret
	}
	c.links()
	d.GetTopologyCommonAncestorFunc = func(nvml.Device) (nvml.GpuTopologyLevel, nvml.Return) {
		_, ret := c.state(symAncestor)
		return nvml.TOPOLOGY_NODE, ret
	}
	d.GetSupportedEventTypesFunc = func() (uint64, nvml.Return) {
		_, ret := c.state(symEvents)
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.types, ret
	}
	d.RegisterEventsFunc = func(_ uint64, set nvml.EventSet) nvml.Return {
		_, ret := c.state(symRegister)
		c.set(func(c *ill) { c.sets++ })
		set.(*mock.EventSet).WaitFunc = c.wait
		return ret
	}
}

func (c *ill) links() {
	d := c.dev
	d.GetNvLinkStateFunc = func(k int) (nvml.EnableState, nvml.Return) {
		h, ret := c.state(symLink)
		if ret == nvml.SUCCESS && k >= len(h.Links) {
			return 0, nvml.ERROR_INVALID_ARGUMENT
		}
		if ret == nvml.SUCCESS && h.Links[k].Up {
			return nvml.FEATURE_ENABLED, ret
		}
		return nvml.FEATURE_DISABLED, ret
	}
	d.GetNvLinkErrorCounterFunc = func(k int, e nvml.NvLinkErrorCounter) (uint64, nvml.Return) {
		h, ret := c.state(symLinkErrors)
		return h.Links[k].Errors[e], ret
	}
	d.GetNvLinkRemoteDeviceTypeFunc = func(int) (nvml.IntNvLinkDeviceType, nvml.Return) {
		_, ret := c.state(symLinkType)
		return nvml.NVLINK_DEVICE_TYPE_SWITCH, ret
	}
}

// wait is the library's wait for an event.
func (c *ill) wait(ms uint32) (nvml.EventData, nvml.Return) {
	if _, ret := c.state(symEventWait); ret != nvml.SUCCESS {
		return nvml.EventData{}, ret
	}
	select {
	case a := <-c.event:
		return a.e, a.ret
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return nvml.EventData{}, nvml.ERROR_TIMEOUT
	}
}

func busID(s string) (b [32]int8) {
	for i := range s {
		b[i] = int8(s[i])
	}
	return b
}

func (r *rig) open(t *testing.T, set settings) *Cards {
	t.Helper()
	c, err := open(r, set)
	require.NoError(t, err)
	return c
}

// watched is a Watch under way and what it said.
type watched struct {
	t      *testing.T
	faults chan Fault
	done   chan error
	stop   func()
}

// next is the next fault.
func (w *watched) next() Fault {
	w.t.Helper()
	select {
	case f := <-w.faults:
		return f
	case <-time.After(20 * time.Second):
		w.t.Fatal("no fault")
		return Fault{}
	}
}

// end is what Watch returned.
func (w *watched) end() error {
	w.t.Helper()
	select {
	case err := <-w.done:
		return err
	case <-time.After(20 * time.Second):
		w.t.Fatal("Watch does not end")
		return nil
	}
}
