//go:build !verbs

package node

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/transport/verbs"
)

// A build without verbs says so, whether devices are named or to be found: the machine is not to blame.
func TestStart_BuildWithoutVerbs_SaysSo(t *testing.T) {
	for _, devices := range [][]string{nil, {"mlx5_0"}} {
		for _, role := range []config.Role{config.RolePrefill, config.RoleDecode} {
			_, err := Start(small(t, role, func(c *config.Config) {
				c.Transport.Kind, c.Transport.Verbs.Devices = "verbs", devices
				c.Decode.Peers = []config.Peer{{Name: "prefill", Addresses: []string{"127.0.0.1:1"}}}
			}), testLog(t))
			require.ErrorIs(t, err, verbs.ErrNotBuilt)
			require.NotErrorIs(t, err, verbs.ErrNoDevice)
			require.ErrorContains(t, err, "kvfence-native")
		}
	}
}
