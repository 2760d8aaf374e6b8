package gpu

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

func TestXid_Catalogue_IsSortedAndJudged(t *testing.T) {
	for i := 1; i < len(catalogue); i++ {
		require.Less(t, catalogue[i-1].Code, catalogue[i].Code)
	}
	for _, x := range catalogue {
		got, known := XidOf(uint64(x.Code))
		require.True(t, known)
		require.Equal(t, x, got)
		if x.Action == "RESET_GPU" || x.Action == "RESTART_BM" {
			require.True(t, x.Fatal, "Xid %d wants a reset and is not fatal", x.Code)
		}
	}
	for _, code := range []uint64{48, 64, 74, 79, 94, 95, 140, 171, 172} {
		x, _ := XidOf(code)
		require.True(t, x.Fatal, "Xid %d", code)
	}
}

func TestXid_Unknown_IsFatal(t *testing.T) {
	for _, code := range []uint64{0, 47, 173, 999, math.MaxUint64, 1<<32 + 13} {
		x, known := XidOf(code)
		require.False(t, known, "Xid %d", code)
		require.True(t, x.Fatal)
		require.Equal(t, Fence, xidFault("GPU-1", code).Action())
	}
}

func TestFault_Kinds_HaveTheirActions(t *testing.T) {
	want := map[Kind]Action{
		KindUncorrectable: Fence, KindRemapFailed: Fence, KindPoison: Fence, KindLost: Fence,
		KindRemapPending: Refuse, KindRetirePending: Refuse, KindReset: Refuse, KindLinkDown: Refuse, KindBlind: Refuse,
		KindLinkErrors: Report, KindNoEvents: Report,
	}
	for k := KindXid + 1; k < kindCount; k++ {
		require.Equal(t, want[k], fault("GPU-1", k, 0, "x").Action(), k.String())
		require.NotEqual(t, "unknown", k.String())
	}
	require.Equal(t, "unknown", kindCount.String())
	err := error(xidFault("GPU-1", 13))
	require.ErrorIs(t, err, ErrFault)
	require.Equal(t, "GPU GPU-1: xid: Xid 13 ROBUST_CHANNEL_GR_EXCEPTION; NVIDIA's immediate action: RESTART_APP", err.Error())
}

func TestMemory_Fits_ByMeasuredFreeBytes(t *testing.T) {
	m := Memory{Total: 80 << 30, Free: 10 << 30, Others: []Process{{7, 60 << 30}, {8, 1 << 30}}, Card: "GPU 0 GPU-1"}
	require.NoError(t, m.Fits(8<<30, 2<<30))
	err := m.Fits(8<<30+1, 2<<30)
	require.ErrorIs(t, err, ErrCapacity)
	require.ErrorContains(t, err, "the pools take 8589934593 bytes and 2048 MiB are kept back, GPU 0 GPU-1: 10240 MiB of 81920 MiB are free; 2 other processes hold 62464 MiB")
	require.ErrorIs(t, m.Fits(math.MaxUint64, 1), ErrCapacity, "a sum that wraps round fits nothing")
	require.ErrorIs(t, m.Fits(0, 11<<30), ErrCapacity)
	require.ErrorContains(t, Memory{Unlisted: "no permission"}.Fits(1, 0), "what other processes hold is not known: no permission")
}

func TestPoolBytes_RoundsEachAllocation(t *testing.T) {
	l := spec.Layout{Shape: spec.Shape{Pages: 3, PageBytes: 1 << 20, TagSlots: 2}}
	n, err := PoolBytes(0, l, l)
	require.NoError(t, err)
	require.EqualValues(t, 2*(4<<20+2<<20), n)
	n, err = PoolBytes(1, l)
	require.NoError(t, err)
	require.EqualValues(t, 3<<20+3*2*spec.TagBytes, n)
	_, err = PoolBytes(3, l)
	require.ErrorIs(t, err, ErrCapacity)
	huge := spec.Layout{Shape: spec.Shape{Pages: math.MaxUint32, PageBytes: math.MaxUint32}}
	_, err = PoolBytes(0, huge, huge)
	require.ErrorIs(t, err, ErrCapacity)
}

func one(k Kind, code uint64, fatal bool) func([]Fault) error {
	return func(got []Fault) error {
		if len(got) != 1 || got[0].Kind != k || got[0].Code != code || got[0].Fatal != fatal {
			return errors.New("another fault")
		}
		return nil
	}
}

func TestHealth_EachCounter_IsAFault(t *testing.T) {
	known := Counter{Known: true}
	n := func(n uint64) Counter { return Counter{true, n} }
	up := func(e ...uint64) Health {
		l := Link{Number: 3, Up: true}
		copy(l.Errors[:], e)
		return Health{Links: []Link{l}}
	}
	for name, c := range map[string]struct {
		before, now Health
		want        func([]Fault) error
	}{
		"uncorrectable":  {Health{Uncorrectable: known}, Health{Uncorrectable: n(2)}, one(KindUncorrectable, 2, true)},
		"remap failed":   {Health{}, Health{RemapFailed: n(1)}, one(KindRemapFailed, 0, true)},
		"remap pending":  {Health{}, Health{RemapPending: n(1)}, one(KindRemapPending, 0, false)},
		"retire pending": {Health{}, Health{RetirePending: n(1)}, one(KindRetirePending, 0, false)},
		"reset wanted":   {Health{}, Health{Recovery: n(1)}, one(KindReset, 1, true)},
		"drain":          {Health{}, Health{Recovery: n(3)}, one(KindReset, 3, false)},
		"new action":     {Health{}, Health{Recovery: n(77)}, one(KindReset, 77, true)},
		"count fell":     {Health{Corrected: n(5)}, Health{Corrected: n(0)}, one(KindReset, 0, false)},
		"link down":      {up(9), Health{Links: []Link{{Number: 3}}}, one(KindLinkDown, 3, false)},
		"link errors":    {up(9, 0, 0, 0, 1), up(9, 0, 0, 0, 2), one(KindLinkErrors, 3, false)},
	} {
		require.NoError(t, c.want(changes("GPU-1", c.before, c.now)), name)
	}
	require.Empty(t, changes("GPU-1", Health{Corrected: n(1)}, Health{Corrected: n(9)}), "what was corrected is no fault")
	require.Empty(t, changes("GPU-1", Health{Links: []Link{{Number: 3}}}, up(4)), "a link that came up brings its old counts")
	require.Empty(t, standing("GPU-1", Health{}))
}

func TestPlace_IsReadFromSysfs(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "bus", "pci", "devices", "0000:1b:00.0")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "numa_node"), []byte("1\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "local_cpulist"), []byte("56-111\n"), 0o644))
	require.Equal(t, Place{NUMA: 1, CPUs: "56-111"}, placeOf(root, "0000:1b:00.0"))
	require.Equal(t, Place{NUMA: -1}, placeOf(root, "0000:1c:00.0"))
}

func TestInfo_Names_AreIndexUUIDAndPCIAddress(t *testing.T) {
	require.Equal(t, "0000:1b:00.0", sysfsAddress("00000000:1B:00.0"))
	require.Equal(t, "00010000:1b:00.0", sysfsAddress("00010000:1B:00.0"))
	i := Info{Index: 2, UUID: "GPU-1", PCI: "0000:1b:00.0"}
	for id, want := range map[string]bool{"2": true, "GPU-1": true, "0000:1b:00.0": true, "00000000:1B:00.0": true, "02": false, "": false, "GPU": false, "1b:00.0": false} {
		require.Equal(t, want, i.names(id), id)
	}
	require.False(t, Info{Index: 1}.names(""), "a card whose address is not known has no name by it")
}

func TestLedger_Full_KeepsTheFirstFatal(t *testing.T) {
	var l ledger
	for k := range uint64(maxFaults) {
		require.True(t, l.add(fault("GPU-1", KindLinkErrors, k, "x")))
	}
	require.False(t, l.add(fault("GPU-1", KindLinkErrors, maxFaults, "x")), "full")
	require.True(t, l.add(fault("GPU-1", KindLost, 0, "x")))
	require.Len(t, l.faults(), maxFaults+1)
	require.ErrorContains(t, l.ready(), "lost")
}
