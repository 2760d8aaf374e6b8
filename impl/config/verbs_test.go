package config_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
)

// validVerbs has a value of its own in every field.
func validVerbs() config.Verbs {
	return config.Verbs{
		Devices: []string{"mlx5_0", "mlx5_1:2"}, Near: "0000:3b:00.0", MaxRails: 3, GIDIndex: "3", MTU: "2048", Leases: "regions",
		RetryCount: 5, TimeoutExponent: 12, RNRRetry: 6, SendDepth: 64, NoticeDepth: 32, BusyPoll: config.On,
	}
}

func withVerbs(v config.Verbs) config.Config {
	return config.Config{Transport: config.Transport{Kind: "verbs", Verbs: v}}.WithDefaults()
}

func TestVerbs_ValidOrEmpty_IsTaken(t *testing.T) {
	require.NoError(t, withVerbs(validVerbs()).Validate())
	require.NoError(t, withVerbs(config.Verbs{}).Validate())
	for _, near := range []string{"numa:1", "00000001:0a:1f.7"} {
		v := validVerbs()
		v.Near = near
		require.NoError(t, withVerbs(v).Validate(), near)
	}
}

// Each field that is out of its bounds is named, with what it is and what it may be.
func TestVerbs_FieldOutOfBounds_IsRefusedByName(t *testing.T) {
	type c struct {
		change func(*config.Verbs)
		says   []string
	}
	number := func(field string, lo, hi int, set func(*config.Verbs, int)) (cs []c) {
		for _, n := range []int{lo - 1, hi + 1} {
			if n == 0 { // means the default
				n = -1
			}
			cs = append(cs, c{func(v *config.Verbs) { set(v, n) }, []string{"transport.verbs." + field, fmt.Sprint(n), fmt.Sprint(lo), fmt.Sprint(hi)}})
		}
		return cs
	}
	var cs []c
	cs = append(cs, number("max_rails", 1, 8, func(v *config.Verbs, n int) { v.MaxRails = n })...)
	cs = append(cs, number("retry_count", 1, 7, func(v *config.Verbs, n int) { v.RetryCount = n })...)
	cs = append(cs, number("timeout_exponent", 1, 31, func(v *config.Verbs, n int) { v.TimeoutExponent = n })...)
	cs = append(cs, number("rnr_retry", 1, 7, func(v *config.Verbs, n int) { v.RNRRetry = n })...)
	cs = append(cs, number("send_depth", 16, 16384, func(v *config.Verbs, n int) { v.SendDepth = n })...)
	cs = append(cs, number("notice_depth", 16, 16384, func(v *config.Verbs, n int) { v.NoticeDepth = n })...)
	for _, d := range []string{"", ":1", "mlx5_0:0", "mlx5_0:256", "mlx5_0:x", "mlx5_0:", "a b", "../x"} {
		cs = append(cs, c{func(v *config.Verbs) { v.Devices = []string{"ok", d} }, []string{"transport.verbs.devices[1]", fmt.Sprintf("%q", d), "NAME:PORT"}})
	}
	cs = append(cs,
		c{func(v *config.Verbs) { v.Devices = []string{"a", "b", "a"} }, []string{"transport.verbs.devices", "a stands there twice"}},
		c{func(v *config.Verbs) { v.Devices = []string{"a", "a:1"} }, []string{"transport.verbs.devices", "a stands there twice"}},
		c{func(v *config.Verbs) { v.Devices = []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} }, []string{"transport.verbs.devices", "9", "8"}},
		c{func(v *config.Verbs) { v.Near = "gpu0" }, []string{"transport.verbs.near", `"gpu0"`, "PCI address", "numa:N"}},
		c{func(v *config.Verbs) { v.Near = "numa:x" }, []string{"transport.verbs.near"}},
		c{func(v *config.Verbs) { v.GIDIndex = "256" }, []string{"transport.verbs.gid_index", `"256"`, "0 to 255"}},
		c{func(v *config.Verbs) { v.GIDIndex = "-1" }, []string{"transport.verbs.gid_index"}},
		c{func(v *config.Verbs) { v.MTU = "1500" }, []string{"transport.verbs.mtu", "1500", "4096"}},
		c{func(v *config.Verbs) { v.Leases = "off" }, []string{"transport.verbs.leases", "off", "windows"}},
		c{func(v *config.Verbs) { v.BusyPoll = "yes" }, []string{"transport.verbs.busy_poll", "yes"}},
	)
	for i, x := range cs {
		v := validVerbs()
		x.change(&v)
		err := withVerbs(v).Validate()
		require.ErrorIs(t, err, config.ErrConfig, "case %d: %+v", i, v)
		for _, s := range x.says {
			require.ErrorContains(t, err, s)
		}
	}
}
