//go:build cuda && cgo && linux

package gpu

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/require"
)

// The linker leaves NVML's functions open (go-nvml's flags): what is linked must start without the library, and bind each at its first call.
func TestBuild_NeedsNoLibraryToStart(t *testing.T) {
	name, err := os.Executable()
	require.NoError(t, err)
	f, err := elf.Open(name)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	libs, err := f.ImportedLibraries()
	require.NoError(t, err)
	for _, l := range libs {
		require.NotContains(t, l, "nvidia")
		require.NotContains(t, l, "cuda")
	}
	for tag, bit := range map[elf.DynTag]uint64{elf.DT_FLAGS: uint64(elf.DF_BIND_NOW), elf.DT_FLAGS_1: 1} {
		values, err := f.DynValue(tag)
		require.NoError(t, err)
		for _, v := range values {
			require.Zero(t, v&bit, "bound when it starts: it would not start without the library")
		}
	}
}

func TestOpen_WithoutTheLibrary_SaysWhatIsMissing(t *testing.T) {
	_, err := open(nvml.New(nvml.WithLibraryPath("libnvidia-ml-that-is-not-there.so.1")), quick())
	require.ErrorIs(t, err, ErrNoLibrary)
	require.ErrorContains(t, err, "libnvidia-ml.so.1 is not there")
}

func TestOpen_OldOrBrokenLibrary_IsRefused(t *testing.T) {
	r := dgx(t)
	r.LookupSymbolFunc = func(s string) error {
		if s == "nvmlDeviceGetUUID" {
			return errors.New("no such symbol")
		}
		return nil
	}
	_, err := open(r, quick())
	require.ErrorIs(t, err, ErrNoLibrary)
	require.ErrorContains(t, err, "it has no nvmlDeviceGetUUID")
	require.Len(t, r.ShutdownCalls(), 1)

	r = dgx(t)
	r.InitFunc = func() nvml.Return { return nvml.ERROR_DRIVER_NOT_LOADED }
	_, err = open(r, quick())
	require.ErrorIs(t, err, ErrNoLibrary)
	require.ErrorContains(t, err, "ERROR_DRIVER_NOT_LOADED")

	r = dgx(t)
	r.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }
	_, err = open(r, quick())
	require.ErrorIs(t, err, ErrCall)
	require.ErrorContains(t, err, "nvmlDeviceGetCount")
}

// The one test that goes through go-nvml's own calls: a library of ours that lacks all that can be lacking.
func TestOpen_OldestLibrary_IsUsedWithoutWhatItLacks(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	lib := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	out, err := exec.Command(cc, "-shared", "-fPIC", "-Wall", "-Werror", "-o", lib, "testdata/old_nvml.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	c, err := open(nvml.New(nvml.WithLibraryPath(lib)), patient())
	require.NoError(t, err)
	require.Equal(t, Versions{"418.0", "10.418.0", "10.1"}, c.Versions())
	card, err := c.Find("0000:3b:00.0")
	require.NoError(t, err)
	require.Equal(t, Info{0, "GPU-old", "0000:3b:00.0", "old card", "exclusive process", false}, card.Info())
	m, err := card.Memory()
	require.NoError(t, err)
	require.EqualValues(t, 15<<30, m.Free)
	h, err := card.Health()
	require.NoError(t, err)
	require.Equal(t, Health{}, h)
	_, err = card.Place(t.TempDir())
	require.NoError(t, err)
	w := watchCard(t, card)
	require.Equal(t, KindNoEvents, w.next().Kind)
	require.Eventually(t, func() bool { return card.Ready() == nil }, 20*time.Second, time.Millisecond)
	w.stop()
	require.NoError(t, w.end())
	require.NoError(t, c.Close())
}

func TestOpen_InitHangs_IsBounded(t *testing.T) {
	r := dgx(t)
	hang := make(chan struct{})
	defer close(hang)
	r.InitFunc = func() nvml.Return { <-hang; return nvml.ERROR_UNKNOWN }
	_, err := open(r, quick())
	require.ErrorIs(t, err, ErrNoLibrary)
	require.ErrorIs(t, err, ErrHung)
	require.ErrorContains(t, err, "nvmlInit did not return")
}

func TestCards_DGX_AreFoundByEachName(t *testing.T) {
	c := dgx(t).open(t, patient())
	require.Equal(t, Versions{"550.54.15", "12.550.54.15", "12.4"}, c.Versions())
	require.Len(t, c.List(), 8)
	for i, card := range c.List() {
		info := card.Info()
		require.Equal(t, i, info.Index)
		require.Equal(t, "default", info.Compute)
		require.False(t, info.MIG)
		for _, id := range []string{info.UUID, info.PCI} {
			got, err := c.Find(id)
			require.NoError(t, err)
			require.Same(t, card, got)
		}
	}
	got, err := c.Find("3")
	require.NoError(t, err)
	require.Equal(t, "0000:1e:00.0", got.Info().PCI)
	_, err = c.Find("8")
	require.ErrorIs(t, err, ErrNoCard)
	require.ErrorContains(t, err, "0000:1b:00.0")
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
}

func TestCards_ThoseThatCannotHoldPools_AreRefusedWithTheReason(t *testing.T) {
	r := dgx(t)
	r.cards[1].dev.MigMode = nvml.DEVICE_MIG_ENABLE
	r.cards[2].dev.GetComputeModeFunc = func() (nvml.ComputeMode, nvml.Return) { return nvml.COMPUTEMODE_PROHIBITED, nvml.SUCCESS }
	r.cards[3].dev.GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 1, nvml.SUCCESS }
	r.cards[4].dev.GetUUIDFunc = func() (string, nvml.Return) { return "", nvml.ERROR_GPU_IS_LOST }
	r.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i == 5 {
			return nil, nvml.ERROR_GPU_IS_LOST
		}
		return r.Devices[i], nvml.SUCCESS
	}
	c := r.open(t, patient())
	for id, want := range map[string]string{"1": "MIG", "2": "compute mode", "3": "MIG", "4": "nvmlDeviceGetUUID", "5": "nvmlDeviceGetHandleByIndex", "MIG-1": "instance"} {
		_, err := c.Find(id)
		require.ErrorIs(t, err, ErrUnusable, id)
		require.ErrorContains(t, err, want, id)
	}
	lost := c.List()[5]
	for _, f := range []func() error{
		func() error { _, err := lost.Memory(); return err }, func() error { _, err := lost.Health(); return err },
		func() error { _, err := lost.Place("/sys"); return err }, func() error { return lost.Watch(t.Context(), nil) }, lost.Ready, lost.Usable,
	} {
		require.ErrorIs(t, f(), ErrUnusable)
	}
	_, err := c.Find("0")
	require.NoError(t, err, "a card is usable beside one that is not")
	require.NoError(t, c.Close())
}

func TestCards_OneHangsAtTheStart_OthersAreFound(t *testing.T) {
	r := dgx(t)
	hang := make(chan struct{})
	r.cards[0].hang["nvmlDeviceGetComputeMode"] = hang
	c := r.open(t, quick())
	_, err := c.Find("0")
	require.ErrorIs(t, err, ErrHung)
	_, err = c.Find("1")
	require.NoError(t, err)
	require.ErrorIs(t, c.Close(), ErrHung)
	require.Empty(t, r.ShutdownCalls(), "not under a call")
	close(hang)
}

func TestMemory_IsMeasured_WithOtherProcesses(t *testing.T) {
	r := dgx(t)
	r.cards[0].procs = []nvml.ProcessInfo{{Pid: uint32(os.Getpid()), UsedGpuMemory: 5 << 30}, {Pid: 77, UsedGpuMemory: 4 << 30}, {Pid: 78, UsedGpuMemory: unsaid}}
	c := r.open(t, patient())
	card, err := c.Find("0")
	require.NoError(t, err)
	m, err := card.Memory()
	require.NoError(t, err)
	require.Equal(t, Memory{Total: 80 << 30, Free: 70 << 30, Used: 9 << 30, Reserved: 1 << 30, Others: []Process{{77, 4 << 30}, {78, 0}}, Card: "GPU 0 " + card.Info().UUID}, m)
	require.NoError(t, m.Fits(70<<30, 0))
	r.cards[0].set(func(i *ill) { i.mem.Free = 1 << 30 })
	m, err = card.Memory()
	require.NoError(t, err)
	require.ErrorIs(t, m.Fits(1<<30, 1), ErrCapacity)
	r.cards[0].set(func(i *ill) { i.mem.Free = 81 << 30 })
	_, err = card.Memory()
	require.ErrorContains(t, err, "no measurement")
	r.cards[0].set(func(i *ill) { i.ret[symMemory2] = nvml.ERROR_GPU_IS_LOST })
	_, err = card.Memory()
	require.ErrorIs(t, err, ErrCall)
}

func TestMemory_OldDriver_IsAskedTheOldWay(t *testing.T) {
	r := dgx(t)
	r.cards[0].dev.MemoryInfo.Free, r.cards[0].dev.MemoryInfo.Used = 3<<30, 77<<30
	r.LookupSymbolFunc = func(s string) error {
		if s == symMemory2 || strings.HasPrefix(s, symGraphics) {
			return errors.New("no such symbol")
		}
		return nil
	}
	r.cards[0].dev.GetMemoryInfo_v2Func, r.cards[0].dev.GetGraphicsRunningProcessesFunc = nil, nil // a call would end the process
	c := r.open(t, patient())
	m, err := c.List()[0].Memory()
	require.NoError(t, err)
	require.EqualValues(t, 3<<30, m.Free)
	require.Zero(t, m.Reserved)
	require.Contains(t, m.Unlisted, symGraphics)
}

func TestHealth_OldDriver_MissingFunctionsAreNotCalled(t *testing.T) {
	r := dgx(t)
	for _, w := range want {
		r2 := dgx(t)
		r2.LookupSymbolFunc = func(s string) error {
			if strings.HasPrefix(s, w) {
				return errors.New("no such symbol")
			}
			return nil
		}
		c := r2.open(t, patient())
		card := c.List()[0]
		_, err := card.Health()
		require.NoError(t, err, w)
		_, err = card.Place(t.TempDir())
		require.NoError(t, err, w)
		_, err = card.Memory()
		require.NoError(t, err, w)
		require.NoError(t, c.Close())
	}
	r.LookupSymbolFunc = func(s string) error {
		for _, n := range need {
			if s == n {
				return nil
			}
		}
		return errors.New("no such symbol")
	}
	for _, i := range r.cards {
		i.dev.GetMigModeFunc, i.dev.GetEccModeFunc, i.dev.GetTotalEccErrorsFunc, i.dev.GetRemappedRowsFunc, i.dev.GetRetiredPagesPendingStatusFunc = nil, nil, nil, nil, nil
		i.dev.GetFieldValuesFunc, i.dev.GetNvLinkStateFunc, i.dev.GetTopologyCommonAncestorFunc, i.dev.GetSupportedEventTypesFunc = nil, nil, nil, nil
	}
	c := r.open(t, patient())
	h, err := c.List()[0].Health()
	require.NoError(t, err)
	require.Equal(t, Health{}, h)
	p, err := c.List()[0].Place(t.TempDir())
	require.NoError(t, err)
	require.Len(t, p.Peers, 7)
	require.Equal(t, "unknown", p.Peers[0].Meet)
	w := watchCard(t, c.List()[0])
	require.Equal(t, KindNoEvents, w.next().Kind)
	w.stop()
	require.NoError(t, w.end())
}

func TestHealth_HungCall_IsBoundedAndSaysWhere(t *testing.T) {
	r := dgx(t)
	c := r.open(t, quick())
	card := c.List()[0]
	hang := make(chan struct{})
	r.cards[0].set(func(i *ill) { i.hang[symRemapped] = hang })
	start := time.Now()
	_, err := card.Health()
	require.ErrorIs(t, err, ErrHung)
	require.ErrorContains(t, err, symRemapped+" did not return")
	_, err = card.Memory()
	require.ErrorIs(t, err, ErrHung)
	require.ErrorContains(t, err, symRemapped+" is still under way")
	require.Less(t, time.Since(start), 10*time.Second)
	_, err = c.List()[1].Memory()
	require.NoError(t, err, "another card answers")
	r.cards[0].set(func(i *ill) { delete(i.hang, symRemapped) })
	close(hang)
	require.Eventually(t, func() bool { _, err := card.Health(); return err == nil }, 20*time.Second, time.Millisecond, "the call came back")
	require.NoError(t, c.Close())
}

func TestPlace_PeersByPCIeAndNVLink(t *testing.T) {
	r := dgx(t)
	for k, i := range r.cards[:2] { // two cards joined by four links, without switches
		other := r.cards[1-k].dev.PciBusID
		i.dev.GetNvLinkRemoteDeviceTypeFunc = func(l int) (nvml.IntNvLinkDeviceType, nvml.Return) {
			return nvml.NVLINK_DEVICE_TYPE_GPU, nvml.SUCCESS
		}
		i.dev.GetNvLinkRemotePciInfoFunc = func(l int) (p nvml.PciInfo, _ nvml.Return) {
			if l < 4 {
				p.BusId = busID(other)
			}
			return p, nvml.SUCCESS
		}
		i.dev.GetTopologyCommonAncestorFunc = func(d nvml.Device) (nvml.GpuTopologyLevel, nvml.Return) {
			if d == r.Devices[1-k] {
				return nvml.TOPOLOGY_SINGLE, nvml.SUCCESS
			}
			return nvml.TOPOLOGY_SYSTEM, nvml.SUCCESS
		}
	}
	c := r.open(t, patient())
	p, err := c.List()[0].Place(t.TempDir())
	require.NoError(t, err)
	require.Equal(t, -1, p.NUMA)
	require.Equal(t, Peer{c.List()[1].Info().UUID, "0000:1c:00.0", "one switch", 4, 0}, p.Peers[0])
	require.Equal(t, Peer{c.List()[2].Info().UUID, "0000:1d:00.0", "across NUMA nodes", 0, 0}, p.Peers[1])
	p, err = c.List()[2].Place(t.TempDir())
	require.NoError(t, err)
	require.Equal(t, Peer{c.List()[3].Info().UUID, "0000:1e:00.0", "NUMA node", 0, 18}, p.Peers[2])
	require.Zero(t, p.Peers[0].Switch, "the other has no link to a switch")
	r.cards[2].set(func(i *ill) { i.ret[symAncestor] = nvml.ERROR_GPU_IS_LOST })
	_, err = c.List()[2].Place(t.TempDir())
	require.ErrorIs(t, err, ErrCall)
}

func TestReport_ShowsAllCards_AndWhatIsWrong(t *testing.T) {
	r := dgx(t)
	r.cards[0].h.Uncorrectable.N = 2
	r.cards[1].dev.MigMode = nvml.DEVICE_MIG_ENABLE
	r.cards[2].ret[symECC] = nvml.ERROR_GPU_IS_LOST
	c := r.open(t, patient())
	out := c.report(t.TempDir())
	require.Equal(t, "can be used", out.Library)
	require.Len(t, out.Cards, 8)
	require.Equal(t, KindUncorrectable, out.Cards[0].Faults[0].Kind)
	require.Contains(t, out.Cards[1].Why[0], "MIG")
	require.Nil(t, out.Cards[2].Health)
	require.Contains(t, out.Cards[2].Why[0], "ERROR_GPU_IS_LOST")
	require.Empty(t, out.Cards[3].Why)
	require.EqualValues(t, 70<<30, out.Cards[3].Memory.Free)
}
