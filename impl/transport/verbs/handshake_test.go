package verbs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device"
	"kvfence/spec"
)

func TestAgree_EndsThatDiffer_FieldAndBothValuesAreNamed(t *testing.T) {
	ours := someOpening()
	rails, err := agree(ours, someOpening())
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, rails)
	for name, c := range map[string]struct {
		change func(*opening)
		says   []string
	}{
		"MTU":          {func(o *opening) { o.Rails[1].MTU = 1024 }, []string{"rail 1", "MTU", "4096", "1024"}},
		"kind of GID":  {func(o *opening) { o.Rails[0].GIDType = gidRoCE1 }, []string{"GID type", gidRoCE24, gidRoCE1}},
		"no rail":      {func(o *opening) { o.Rails = nil }, []string{"rails that are up", "0 (rxe), 1 (rxe)", "none"}},
		"a layout":     {func(o *opening) { o.Pools[0].Layout.Equal.HeadDim = 8 }, []string{"head_dim", "4", "8"}},
		"no such pool": {func(o *opening) { o.Pools[0].Layout.Component = spec.Aux }, []string{"pools"}},
		"more pools":   {func(o *opening) { o.Pools = append(o.Pools, o.Pools[0]); o.Pools[1].Layout.Component = spec.Aux }, []string{"number of pools", "1", "2"}},
	} {
		theirs := someOpening()
		c.change(&theirs)
		_, err := agree(ours, theirs)
		require.ErrorIs(t, err, ErrMismatch, name)
		for _, s := range c.says {
			require.ErrorContains(t, err, s, name)
		}
	}
	theirs := someOpening()
	theirs.Rails = theirs.Rails[1:]
	rails, err = agree(ours, theirs)
	require.NoError(t, err)
	require.Equal(t, []int{1}, rails, "what both have up")
}

func TestParseOpening_OutOfBounds_IsRefused(t *testing.T) {
	for name, change := range map[string]func(*opening){
		"version":            func(o *opening) { o.Version = 2 },
		"too many rails":     func(o *opening) { o.Rails = make([]railEnd, MaxRails+1) },
		"rail twice":         func(o *opening) { o.Rails[1].Index = 0 },
		"rail out of range":  func(o *opening) { o.Rails[1].Index = MaxRails },
		"no queue pair":      func(o *opening) { o.Rails[0].QueuePair = 0 },
		"queue pair too big": func(o *opening) { o.Rails[0].QueuePair = 1 << 24 },
		"GID":                func(o *opening) { o.Rails[0].GID = "abc" },
		"wrapping pool":      func(o *opening) { o.Pools[0].Pages = ^uint64(0) - 3 },
		"wrapping tags":      func(o *opening) { o.Pools[0].Tags = ^uint64(0) - 3 },
		"pool twice":         func(o *opening) { o.Pools = append(o.Pools, o.Pools[0]) },
		"bad layout":         func(o *opening) { o.Pools[0].Layout.Shape.PageBytes = 1 },
		"a refusal":          func(o *opening) { o.Refused = "bad\x00\n" + strings.Repeat("x", 1000) },
	} {
		o := someOpening()
		change(&o)
		b, err := json.Marshal(o)
		require.NoError(t, err)
		_, err = parseOpening(b)
		require.ErrorIs(t, err, ErrMismatch, name)
		require.Less(t, len(err.Error()), 600, name)
		require.NotContains(t, err.Error(), "\n", name)
	}
	for _, b := range []string{"", "{}", `{"version":1,"more":2}`, `{"version":1} {}`, "[1]"} {
		_, err := parseOpening([]byte(b))
		require.ErrorIs(t, err, ErrMismatch, b)
	}
}

func TestOptions_OutOfBounds_AreRefused(t *testing.T) {
	good := Options{Rails: []Rail{{"a", 1, GIDAuto}}}
	o, err := good.withDefaults()
	require.NoError(t, err)
	require.Equal(t, []int{6, 14, 7, 512, 128}, []int{o.RetryCount, o.Timeout, o.RNRRetry, o.SendDepth, o.NoticeDepth})
	for name, change := range map[string]func(*Options){
		"no rail":       func(o *Options) { o.Rails = nil },
		"rail twice":    func(o *Options) { o.Rails = []Rail{{"a", 1, 0}, {"a", 1, 3}} },
		"port 0":        func(o *Options) { o.Rails = []Rail{{"a", 0, 0}} },
		"MTU":           func(o *Options) { o.MTU = 1500 },
		"leases":        func(o *Options) { o.Leases = "perhaps" },
		"retry":         func(o *Options) { o.RetryCount = 8 },
		"timeout":       func(o *Options) { o.Timeout = 32 },
		"depth":         func(o *Options) { o.SendDepth = 1 },
		"notices":       func(o *Options) { o.NoticeDepth = 1 << 20 },
		"queued writes": func(o *Options) { o.MaxQueued = -1 },
	} {
		o := good
		change(&o)
		_, err := o.withDefaults()
		require.ErrorIs(t, err, ErrOptions, name)
	}
}

func TestCheckMemlock_TooSmall_BothNumbers(t *testing.T) {
	l := someOpening().Pools[0].Layout
	p, err := device.NewPool(l, nil, nil)
	require.NoError(t, err)
	need := PoolBytes(device.Memory{spec.KV: p})
	require.Equal(t, uint64(8192), need, "one memory page for bytes, one for tags")
	require.NoError(t, checkMemlock(need, 0, need, true))
	require.NoError(t, checkMemlock(need, 1, 0, false))
	err = checkMemlock(need, 4096, need, true)
	require.ErrorIs(t, err, ErrMemlock)
	require.ErrorContains(t, err, "8192 bytes beside 4096")
}
