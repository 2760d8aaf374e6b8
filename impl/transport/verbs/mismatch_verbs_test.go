//go:build verbs && rig

package verbs

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvfence/spec"
)

// Ends that do not fit are refused while the link opens, at decode with the field and both values, and nothing is left behind.
func TestOpening_EndsThatDiffer_AreRefusedWithBothValues(t *testing.T) {
	rs := rails(t, 1)
	small := os.Getenv("KVFENCE_RDMA_SMALL")
	require.NotEmpty(t, small)
	l := kvLayout(16, 2, 0, 2, 2, 8)
	other := kvLayout(16, 3, 0, 2, 2, 8)
	other.Equal.Layers = 3
	cases := map[string]struct {
		so, do Options
		src    spec.Layout
		says   []string
	}{
		"MTU of the ports": {Options{Rails: []Rail{{small, 1, GIDAuto}}}, Options{Rails: rs}, l, []string{"MTU", "4096", "1024"}},
		"MTU by choice":    {Options{Rails: rs, MTU: 1024}, Options{Rails: rs}, l, []string{"MTU", "4096", "1024"}},
		"kind of GID":      {Options{Rails: []Rail{{rs[0].Device, 1, 0}}}, Options{Rails: rs}, l, []string{"GID type", gidRoCE24, gidRoCE26}},
		"layout":           {Options{Rails: rs}, Options{Rails: rs}, other, []string{"layers", "2", "3"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnds(t, memoryOf(t, c.src), memoryOf(t, l), c.so, c.do)
			k, err := e.tryLink()
			require.ErrorIs(t, err, ErrMismatch)
			for _, s := range c.says {
				require.ErrorContains(t, err, s)
			}
			lost := await(t, k.ssink.lost, "prefill's loss")
			require.ErrorIs(t, lost, ErrMismatch)
			k.fenceSource()
			require.Zero(t, e.da.Stats().Kept)
		})
	}
}

// An MTU that no port has, a device and a port that are not there: said at start or at the opening, by name.
func TestOpen_WhatIsNotThere_IsSaid(t *testing.T) {
	l := kvLayout(16, 2, 0, 2, 2, 8)
	_, err := Open(Options{Rails: []Rail{{"mlx5_nowhere", 1, GIDAuto}}}, memoryOf(t, l))
	require.ErrorIs(t, err, ErrNoDevice)
	require.ErrorContains(t, err, "mlx5_nowhere")
	_, err = Open(Options{Rails: []Rail{{rails(t, 1)[0].Device, 9, GIDAuto}}}, memoryOf(t, l))
	require.ErrorIs(t, err, ErrNoDevice)
	e := newEnds(t, memoryOf(t, l), memoryOf(t, l), Options{Rails: rails(t, 1)}, Options{Rails: []Rail{{rails(t, 1)[0].Device, 1, 200}}})
	k, err := e.tryLink()
	require.ErrorIs(t, err, ErrNoDevice)
	require.ErrorContains(t, err, "GID 200")
	k.fenceSource()
}

// childMemlock opens pools that its limit of locked memory cannot hold.
func childMemlock(out io.Writer) {
	must(unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 8 << 20, Max: 8 << 20}))
	l := kvLayout(64, 4, 0, 4, 4, 128) // 16 MiB
	_, err := Open(Options{Rails: rails(childTB{}, 1), Target: true}, memoryOf(childTB{}, l))
	fmt.Fprint(out, err)
}

func TestOpen_MemlockTooSmall_IsRefusedWithBothNumbers(t *testing.T) {
	rails(t, 1)
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(self)
	c.Env = append(os.Environ(), childVar+"=memlock")
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), ErrMemlock.Error())
	require.Contains(t, string(out), "8388608")
	require.Contains(t, string(out), "16809984", "16 MiB of pages and 32 KiB of tags")
}

// The same link cannot be opened twice in one epoch, and a stream without the key opens nothing.
func TestExpect_SameLinkAgain_IsRefused(t *testing.T) {
	e := fenceRig(t, 1, LeasesAuto)
	k := e.link()
	_, err := e.listener.Expect(linkInfo(k.epoch), newSourceSink())
	require.Error(t, err)
	require.NotNil(t, k)
}
