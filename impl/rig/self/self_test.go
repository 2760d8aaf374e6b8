//go:build rig

package self

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Variables that impl/rig/devices.sh sets in the machine; plantVar is impl/cmd/rdma's.
const (
	devicesVar = "KVFENCE_RDMA_DEVICES"
	smallVar   = "KVFENCE_RDMA_SMALL"
	plantVar   = "KVFENCE_RIG_PLANT"
)

func inRig(t *testing.T) (rails []string, small string) {
	if os.Getenv(devicesVar) == "" {
		t.Skip(devicesVar + " is not set (make test-rdma sets it in its machine)")
	}
	return strings.Split(os.Getenv(devicesVar), ","), os.Getenv(smallVar)
}

func said(t *testing.T, name string, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	require.NoError(t, err, "%s: %s", name, out)
	return string(out)
}

func TestRig_Devices_AreActiveWithTheirMTUs(t *testing.T) {
	rails, small := inRig(t)
	require.Len(t, rails, 2)
	for _, d := range append(rails, small) {
		info := said(t, "ibv_devinfo", "-d", d)
		require.Contains(t, info, "PORT_ACTIVE", d)
		mtu := "4096"
		if d == small {
			mtu = "1024"
		}
		require.Regexp(t, `active_mtu:\s+`+mtu, info, d)
	}
}

func TestRig_TwoQueuePairs_ReachEachOther(t *testing.T) {
	rails, _ := inRig(t)
	for _, d := range rails {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		server := exec.CommandContext(ctx, "ibv_rc_pingpong", "-d", d, "-g", "1", "-n", "50")
		server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		require.NoError(t, server.Start())
		require.Eventually(t, func() bool {
			return exec.CommandContext(ctx, "ibv_rc_pingpong", "-d", d, "-g", "1", "-n", "50", "127.0.0.1").Run() == nil
		}, 30*time.Second, 20*time.Millisecond, d) // until it listens
		require.NoError(t, server.Wait(), d)
	}
}

// What impl/cmd/rdma must refuse; without the variable there is nothing planted, and nothing to run.
func TestPlanted(t *testing.T) {
	switch os.Getenv(plantVar) {
	case "fail":
		t.Error("planted")
	case "skip":
		t.Skip("planted")
	case "hang":
		select {}
	case "exit":
		os.Exit(0)
	}
}
