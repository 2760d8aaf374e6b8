//go:build linux

package bench

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sourceArg makes this test binary the second process.
const sourceArg = "kvfence-bench-source"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == sourceArg {
		if err := Source(context.Background(), os.Stdin, os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func runHere(t *testing.T, ctx context.Context, o Options) (*Report, string, error) {
	t.Helper()
	exe, err := Executable()
	require.NoError(t, err)
	var text, log bytes.Buffer
	o.Progress = &text
	r, err := Run(ctx, o, &log, exe, sourceArg)
	t.Log(log.String())
	return r, text.String(), err
}

func TestRun_Quick_EveryMoverVerifies(t *testing.T) {
	o := Defaults()
	o.Quicken()
	r, text, err := runHere(t, t.Context(), o)
	require.NoError(t, err)
	require.Len(t, r.Results, len(o.Suites)*len(o.Shapes))
	for _, res := range r.Results {
		names := []string{}
		for _, m := range res.Movers {
			names = append(names, m.Name)
			require.Positive(t, m.Min, "%s %s %s", res.Suite, res.Shape, m.Name)
			require.GreaterOrEqual(t, m.Max, m.P50)
		}
		require.Subset(t, names, []string{ours, oursSums, bareName, bareSums})
		if r.Host.C != "" && res.Suite != "tls" {
			require.True(t, slices.Contains(names, cStream) || slices.Contains(names, cMemcpy), names)
		}
		require.Equal(t, o.Repeats, res.Rounds)
		require.Positive(t, res.Seal.P50)
		require.Contains(t, text, res.Suite+" "+res.Shape.String())
	}
}

func TestRun_Cancelled_EndsItsProcesses(t *testing.T) {
	o := Defaults()
	o.Quicken()
	o.Suites, o.MaxPairs, o.Repeats = []string{"shm"}, 1<<20, 1<<20
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, err := runHere(t, ctx, o)
		done <- err
	}()
	require.Eventually(t, func() bool { return len(children(t)) >= 1 }, 10*time.Second, 5*time.Millisecond)
	was := children(t)
	cancel()
	select {
	case err := <-done:
		require.Error(t, err)
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
	}
	for _, pid := range was {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d lives on", pid)
	}
}

// children are the processes that this one has started.
func children(t *testing.T) (pids []int) {
	files, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	for _, f := range files {
		for _, s := range strings.Fields(oneFile(f)) {
			var pid int
			if _, err := fmt.Sscan(s, &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func TestOptions_BadOnes_AreRefused(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"no rounds":       func(o *Options) { o.Repeats = 0 },
		"fewer at most":   func(o *Options) { o.MaxPairs = o.Repeats - 1 },
		"no width":        func(o *Options) { o.Width = 0 },
		"no number":       func(o *Options) { o.Width = math.NaN() },
		"all the width":   func(o *Options) { o.Width = 2 },
		"streams below 0": func(o *Options) { o.Streams = -1 },
		"many streams":    func(o *Options) { o.Streams = 17 },
		"no such control": func(o *Options) { o.Congestion = "nosuch" },
		"no bound":        func(o *Options) { o.Bound = 0 },
		"no shapes":       func(o *Options) { o.Shapes = nil },
		"small page":      func(o *Options) { o.Shapes = []Shape{{1024, 1}} },
		"odd page":        func(o *Options) { o.Shapes = []Shape{{5000, 1}} },
		"too many pages":  func(o *Options) { o.Shapes = []Shape{{4096, 257}} },
		"larger than all": func(o *Options) { o.PoolBytes, o.Shapes = 1<<20, []Shape{{1 << 20, 2}} },
	} {
		t.Run(name, func(t *testing.T) {
			o := Defaults()
			change(&o)
			_, err := Run(t.Context(), o, os.Stderr, "unused")
			require.ErrorIs(t, err, ErrOptions)
		})
	}
	_, err := ParseSuites("tcp,verbs")
	require.ErrorIs(t, err, ErrOptions)
	for _, bad := range []string{"", "256K", "256Kx", "Kx16", "256x16x1", "1Gx1"} {
		_, err := ParseShapes(bad)
		require.ErrorIs(t, err, ErrOptions, bad)
	}
	got, err := ParseShapes("256Kx16, 1mX256")
	require.NoError(t, err)
	require.Equal(t, []Shape{{256 << 10, 16}, {1 << 20, 256}}, got)
}

func TestRatio_Interval_HoldsTheMedianAsOftenAsItSays(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, n := range []int{6, 7, 21, 50, 200} {
		held := 0
		for range 4000 {
			v := make([]float64, n)
			for i := range v {
				v[i] = r.ExpFloat64() // skewed: its median is ln 2
			}
			x := ratioOf(v)
			require.LessOrEqual(t, x.Low, x.Median)
			require.LessOrEqual(t, x.Median, x.High)
			if x.Low <= 0.6931 && 0.6931 <= x.High {
				held++
			}
		}
		require.Greater(t, held, 4000*94/100, "of %d", n)
	}
	lo, hi := medianInterval(21) // binomial tables: 6th and 16th of 21
	require.Equal(t, []int{5, 15}, []int{lo, hi})
	require.Equal(t, Ratio{Median: 2, Low: 1, High: 3, Min: 1, Max: 3, Pairs: 3}, ratioOf([]float64{3, 1, 2}))
	require.Equal(t, Ratio{}, ratioOf(nil))
}

func TestTimes_Percentiles(t *testing.T) {
	var ns []int64
	for i := range int64(100) {
		ns = append(ns, (100-i)*1000)
	}
	x := timesOf(ns, 50500)
	require.Equal(t, Times{Requests: 100, Min: 1, P50: 50.5, P99: 100, Max: 100, GBps: 1}, x)
	require.Equal(t, Times{}, timesOf(nil, 1))
}

func TestWalk_UsesEveryPageOnceARound(t *testing.T) {
	w := newWalk(12, rand.New(rand.NewPCG(1, 1)))
	var all []uint32
	for range 3 {
		all = append(all, w.next(4)...)
	}
	slices.Sort(all)
	require.Equal(t, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, all)
	require.Len(t, w.next(5), 5)
	require.Len(t, w.next(5), 5)
	require.Len(t, w.next(5), 5, "begins again")
}

func TestStamp_ForeignPage_IsFound(t *testing.T) {
	pool := make([]byte, 4*4096)
	stamp(pool, 4096, rand.New(rand.NewPCG(1, 1)))
	require.True(t, stamped(pool[2*4096:3*4096], 2))
	require.False(t, stamped(pool[2*4096:3*4096], 1))
	pool[3*4096-1] ^= 1
	require.False(t, stamped(pool[2*4096:3*4096], 2))
}
