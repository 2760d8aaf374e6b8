package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tree makes a sysfs: "path=content", "path>target" for a link, "path/" for a folder.
func tree(t *testing.T, entries ...string) string {
	root := t.TempDir()
	for _, e := range entries {
		if path, target, link := strings.Cut(e, ">"); link {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
			require.NoError(t, os.Symlink(filepath.Join(root, target), filepath.Join(root, path)))
			continue
		}
		path, content, _ := strings.Cut(e, "=")
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
		if !strings.HasSuffix(path, "/") {
			require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(content+"\n"), 0o644))
		}
	}
	return root
}

const (
	none4   = "0000:0000:0000:0000:0000:0000:0000:0000"
	local6  = "fe80:0000:0000:0000:ba59:9fff:fe01:0203"
	mapped4 = "0000:0000:0000:0000:0000:ffff:0a63:0001"
)

// card is one PCI function with one or two ports.
func card(name, at, numa string, states ...string) (e []string) {
	e = []string{at + "/numa_node=" + numa, "class/infiniband/" + name + "/device>" + at, at + "/net/eth_" + name + "/", at + "/net/eth_" + name + "/x=1"}
	for i, s := range states {
		p := "class/infiniband/" + name + "/ports/" + string(rune('1'+i))
		e = append(e, p+"/state="+s, p+"/link_layer=Ethernet", p+"/rate=100 Gb/sec (4X EDR)", p+"/gids/0="+local6, p+"/gids/1="+local6, p+"/gids/2="+mapped4, p+"/gids/3="+mapped4, p+"/gids/4="+none4,
			p+"/gid_attrs/types/0=IB/RoCE v1", p+"/gid_attrs/types/1=RoCE v2", p+"/gid_attrs/types/2=IB/RoCE v1", p+"/gid_attrs/types/3=RoCE v2")
	}
	return e
}

func gpu(at, numa string) []string {
	return []string{at + "/numa_node=" + numa, at + "/class=0x030200", at + "/vendor=0x10de", "bus/pci/devices/" + filepath.Base(at) + ">" + at}
}

// server has two cards and three GPUs: one behind the switch of the first card, one at another root port of its socket, one at the other socket.
func server(t *testing.T) string {
	var e []string
	e = append(e, card("mlx5_0", "devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0", "0", "4: ACTIVE", "1: DOWN")...)
	e = append(e, card("mlx5_1", "devices/pci0000:90/0000:90:01.0/0000:91:00.0", "1", "4: ACTIVE")...)
	e = append(e, gpu("devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.0", "0")...)
	e = append(e, gpu("devices/pci0000:10/0000:10:02.0/0000:20:00.0", "0")...)
	e = append(e, gpu("devices/pci0000:90/0000:90:02.0/0000:a0:00.0", "1")...)
	e = append(e, "devices/pci0000:10/0000:10:03.0/class=0x020000", "devices/pci0000:10/0000:10:03.0/vendor=0x10de", "bus/pci/devices/0000:10:03.0>devices/pci0000:10/0000:10:03.0")
	return tree(t, e...)
}

func TestDevices_Server_PortsAddressesAndDistances(t *testing.T) {
	ds := Devices(server(t))
	require.Len(t, ds, 2)
	d := ds[0]
	require.Equal(t, []any{"mlx5_0", "0000:13:00.0", 0, "eth_mlx5_0"}, []any{d.Name, d.PCI, d.NUMA, d.Netdev})
	require.Equal(t, []GPUPath{{"0000:14:00.0", SameSwitch}, {"0000:20:00.0", SameRoot}, {"0000:a0:00.0", OtherNode}}, d.GPUs)
	require.Equal(t, "SameSwitch same switch", "SameSwitch "+d.GPUs[0].Distance.String())
	require.Len(t, d.Ports, 2)
	require.Equal(t, []string{"ACTIVE", "DOWN"}, []string{d.Ports[0].State, d.Ports[1].State})
	require.Equal(t, []GID{{0, gidRoCE1, "fe80::ba59:9fff:fe01:203"}, {1, gidRoCE26, "fe80::ba59:9fff:fe01:203"}, {2, gidRoCE1, "10.99.0.1"}, {3, gidRoCE24, "10.99.0.1"}}, d.Ports[0].GIDs)
	require.Equal(t, 3, d.Ports[0].Chosen)
	require.Contains(t, d.Ports[0].Why, "IPv4")
}

func TestChooseRails_NearestFirst(t *testing.T) {
	root := server(t)
	for near, want := range map[string]string{"": "mlx5_0", "0000:14:00.0": "mlx5_0", "0000:a0:00.0": "mlx5_1", "numa:1": "mlx5_1", "numa:0": "mlx5_0"} {
		cs, err := ChooseRails(root, near, 8)
		require.NoError(t, err, near)
		require.Len(t, cs, 2, "the port that is down is left out")
		require.Equal(t, Rail{want, 1, GIDAuto}, cs[0].Rail, near)
		require.NotEmpty(t, cs[0].Why)
	}
	cs, err := ChooseRails(root, "", 1)
	require.NoError(t, err)
	require.Len(t, cs, 1)
	for _, bad := range []string{"numa:x", "numa:-1", "gpu0", "0000:14"} {
		_, err := ChooseRails(root, bad, 8)
		require.ErrorIs(t, err, ErrNear, bad)
	}
}

func TestDevices_OddTrees_AreReadAsFarAsTheyGo(t *testing.T) {
	require.Empty(t, Devices(t.TempDir()))
	root := tree(t, "class/infiniband/rxe0/ports/1/state=4: ACTIVE", "class/infiniband/rxe0/ports/1/gids/0=garbage", "class/infiniband/rxe0/ports/x/state=4: ACTIVE",
		"class/infiniband/rxe0/ports/1/gids/99999999999="+mapped4, "class/infiniband/rxe0/parent=eth0", "class/infiniband/bad/ports/", "class/infiniband/bad/ports/0/state=4: ACTIVE")
	ds := Devices(root)
	require.Len(t, ds, 2)
	require.Empty(t, ds[0].Ports)
	rxe := ds[1]
	require.Equal(t, []any{"rxe0", "", -1, "eth0"}, []any{rxe.Name, rxe.PCI, rxe.NUMA, rxe.Netdev})
	require.Len(t, rxe.Ports, 1)
	require.Equal(t, -1, rxe.Ports[0].Chosen)
	require.Empty(t, rxe.Ports[0].GIDs)
	cs, err := ChooseRails(root, "0000:14:00.0", 8)
	require.NoError(t, err)
	require.Contains(t, cs[0].Why, "no way")
	_, err = ChooseRails(tree(t, "class/infiniband/d/ports/1/state=1: DOWN"), "", 8)
	require.ErrorIs(t, err, ErrNoDevice)
	require.ErrorContains(t, err, `d port 1 is "DOWN"`)
}
