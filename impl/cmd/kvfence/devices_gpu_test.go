package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device/gpu"
	"kvfence/impl/transport/verbs"
)

func TestDevices_GPUs_AreShownWithTheirNearestRails(t *testing.T) {
	path := func(pci string, d verbs.Distance) verbs.GPUPath { return verbs.GPUPath{PCI: pci, Distance: d} }
	a, b := "0000:1b:00.0", "0000:cb:00.0"
	rdma := []verbs.Device{
		{Name: "mlx5_0", GPUs: []verbs.GPUPath{path(b, verbs.OtherNode), path(a, verbs.SameNode)}},
		{Name: "mlx5_1", GPUs: []verbs.GPUPath{path(a, verbs.SameSwitch), path(b, verbs.OtherNode)}},
		{Name: "mlx5_2", GPUs: []verbs.GPUPath{path(a, verbs.SameSwitch), path(b, verbs.OtherNode)}},
		{Name: "rxe0"},
	}
	require.Equal(t, []string{"mlx5_1 (same switch)", "mlx5_2 (same switch)"}, nearest(a, rdma))
	require.Len(t, nearest(b, rdma), 3)
	require.Empty(t, nearest("0000:cc:00.0", rdma))

	r := reportGPUs(gpu.Listing{Library: "can be used", Versions: &gpu.Versions{Driver: "550.54.15"}, Cards: []gpu.CardReport{
		{Info: gpu.Info{UUID: "GPU-1", PCI: a, Name: "H100", Compute: "default"}, Place: gpu.Place{NUMA: 0, Peers: []gpu.Peer{{PCI: b, Meet: "NUMA node", Switch: 18}}},
			Memory: &gpu.Memory{Total: 80, Free: 70, Others: []gpu.Process{{PID: 7, Bytes: 4}}}, Health: &gpu.Health{},
			Faults: []gpu.Fault{{Kind: gpu.KindRemapFailed, Detail: "replace the GPU", Fatal: true}}},
		{Info: gpu.Info{Index: 1}, Place: gpu.Place{NUMA: -1}, Why: []string{"it hangs"}},
	}}, rdma)
	var out strings.Builder
	r.print(func(format string, args ...any) { fmt.Fprintf(&out, format, args...) })
	for _, want := range []string{"driver 550.54.15", "GPU 0  GPU-1  H100  PCI " + a, "80 bytes, 70 free", "process 7: 4 bytes", "FAULT (fence) row remapping failed: replace the GPU",
		"to " + b + ": PCIe NUMA node, NVLinks 0 straight and 18 by switches", "nearest RDMA: mlx5_1 (same switch), mlx5_2", "  it hangs\n  nearest RDMA: none"} {
		require.Contains(t, out.String(), want)
	}
	j, err := json.Marshal(r)
	require.NoError(t, err)
	for _, want := range []string{`"libnvidia_ml":"can be used"`, `"nearest_rdma":{"` + a + `":["mlx5_1 (same switch)"`, `"free_bytes":70`, `"kind":"row remapping failed"`} {
		require.Contains(t, string(j), want)
	}
}

func TestDevices_WithoutNVML_SayWhatIsMissing(t *testing.T) {
	r, err := reportDevices(t.TempDir(), "", 4)
	require.NoError(t, err)
	if len(r.GPUs.Cards) > 0 {
		t.Skip("this machine has GPUs, and this build sees them")
	}
	var out strings.Builder
	require.NoError(t, r.print(&out))
	require.Contains(t, out.String(), "libnvidia-ml  ")
	require.NotContains(t, out.String(), "GPU 0")
}
