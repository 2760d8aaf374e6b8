package tlc

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDistributed_WhatItCannotCheck_IsRefused(t *testing.T) {
	s, err := Open(folder(t))
	require.NoError(t, err)
	for _, name := range []string{"breaks-ever", "random"} {
		err = s.Distributed(context.Background(), Options{Names: []string{name}}, 1, true, io.Discard)
		require.ErrorIs(t, err, ErrNotDistributed)
	}
}

func TestDistributed_NetworkThatOthersReach_IsRefused(t *testing.T) {
	s, err := Open(folder(t))
	require.NoError(t, err)
	if loopbackOnly() == nil {
		t.Skip("this machine has no network but loopback")
	}
	err = s.Distributed(context.Background(), Options{Names: []string{"holds"}}, 1, false, io.Discard)
	require.ErrorIs(t, err, ErrOpenNetwork)
	require.ErrorContains(t, err, "unshare -rn")
}

// inOwnNetwork says to the test's second process that it is there.
const inOwnNetwork = "KVFENCE_TEST_OWN_NETWORK"

// The test starts itself again in a network of its own, where TLC's server and two workers run.
func TestDistributed_ServerAndWorkers_FindTheStates(t *testing.T) {
	slow(t)
	tools(t)
	if os.Getenv(inOwnNetwork) == "" {
		if err := exec.Command("unshare", "-rn", "ip", "link", "set", "lo", "up").Run(); err != nil {
			t.Skip("no network of its own for the server: ", err)
		}
		again := exec.Command("unshare", "-rn", "sh", "-c", `ip link set lo up && exec "$0" "$@"`, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		again.Env = append(os.Environ(), inOwnNetwork+"=1")
		said, err := again.CombinedOutput()
		require.NoError(t, err, string(said))
		require.Contains(t, string(said), "--- PASS: "+t.Name())
		return
	}
	s, err := Open(folder(t))
	require.NoError(t, err)
	var out bytes.Buffer
	o := Options{Tools: tools(t), Names: []string{"holds", "breaks-state"}, Limit: 5 * time.Minute}
	require.NoError(t, s.Distributed(context.Background(), o, 2, false, &out), out.String())
	require.Contains(t, out.String(), "ok   holds ")
	require.Contains(t, out.String(), "something broken after ")
	require.Contains(t, out.String(), "2 configurations, 2 as expected, 0 not")
	s.Configurations[0].Expect.Distinct++
	out.Reset()
	require.ErrorIs(t, s.Distributed(context.Background(), Options{Tools: tools(t), Names: []string{"holds"}, Limit: 5 * time.Minute}, 1, false, &out), ErrDiffers)
	require.Contains(t, out.String(), "expected 4 states, found 3")
}
