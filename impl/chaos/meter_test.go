//go:build chaos

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// figures are the metrics that must not grow, with what each may grow besides a tenth.
var figures = []struct {
	name  string
	slack float64
}{
	{"process_resident_memory_bytes", 24 << 20}, {"go_memstats_heap_inuse_bytes", 12 << 20}, {"go_goroutines", 100}, {"process_open_fds", 100},
}

// life is what was measured of one life of a process.
type life struct {
	number  int
	at      []time.Time
	samples [][]float64 // by figure, in order of at
}

// meter samples the operator listeners of all processes of a cluster on loopback.
type meter struct {
	c     *cluster
	stop  context.CancelFunc
	wg    sync.WaitGroup
	lives map[string][]*life // by process; read after end
}

func newMeter(c *cluster, every time.Duration) *meter {
	ctx, stop := context.WithCancel(context.Background())
	m := &meter{c: c, stop: stop, lives: map[string][]*life{}}
	m.wg.Go(func() {
		for ctx.Err() == nil {
			for _, p := range c.all {
				number := p.lifeNumber()
				if v, err := scrape(ctx, c.places[p.name].operator); err == nil && number == p.lifeNumber() { // else it is down or paused
					m.add(p.name, number, v)
				}
			}
			wait(ctx, every)
		}
	})
	c.t.Cleanup(m.end)
	return m
}

func (m *meter) end() {
	m.stop()
	m.wg.Wait()
}

func (m *meter) add(name string, number int, v []float64) {
	all := m.lives[name]
	if len(all) == 0 || all[len(all)-1].number != number {
		all = append(all, &life{number: number, samples: make([][]float64, len(figures))})
		m.lives[name] = all
	}
	l := all[len(all)-1]
	l.at = append(l.at, time.Now())
	for i, x := range v {
		l.samples[i] = append(l.samples[i], x)
	}
}

var errNoFigure = errors.New("a metric is missing")

// scrape reads the figures from /metrics.
func scrape(ctx context.Context, operator string) ([]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+operator+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return parseFigures(resp.Body)
}

func parseFigures(r io.Reader) ([]float64, error) {
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(r)
	if err != nil {
		return nil, err
	}
	var out []float64
	for _, f := range figures {
		m := families[f.name]
		if m == nil || len(m.GetMetric()) != 1 {
			return nil, fmt.Errorf("%w: %s", errNoFigure, f.name)
		}
		out = append(out, m.GetMetric()[0].GetGauge().GetValue())
	}
	return out, nil
}

// longest is the life of a process that was measured for the longest time.
func (m *meter) longest(name string) (best *life, span time.Duration) {
	for _, l := range m.lives[name] {
		if d := l.at[len(l.at)-1].Sub(l.at[0]); best == nil || d > span {
			best, span = l, d
		}
	}
	return best, span
}

// thirds are the medians of the first and the last third, after a tenth to warm up.
func thirds(samples []float64) (first, last float64) {
	s := samples[len(samples)/10:]
	n := (len(s) + 2) / 3
	return median(s[:n]), median(s[len(s)-n:])
}

func median(s []float64) float64 {
	s = slices.Clone(s)
	slices.Sort(s)
	return s[len(s)/2]
}

// grown reports whether the last third lies above the first by more than a tenth and slack.
func grown(samples []float64, slack float64) bool {
	first, last := thirds(samples)
	return last > first*1.1+slack
}

// report prints what was measured of the longest life of each process.
func (m *meter) report(t *testing.T) {
	for _, p := range m.c.all {
		l, span := m.longest(p.name)
		require.NotNil(t, l, "%s was never measured", p.name)
		for i, f := range figures {
			first, last := thirds(l.samples[i])
			t.Logf("%s, life %d of %d, %v, %d samples: %s median of the first third %.0f, of the last %.0f", p.name, l.number, p.lifeNumber(),
				span.Round(time.Second), len(l.at), f.name, first, last)
		}
	}
}

// judge demands that nothing grew in any life of at least span, and that all but p2, which is killed all the time, have one.
func (m *meter) judge(t *testing.T, span time.Duration) {
	for _, p := range m.c.all {
		l, d := m.longest(p.name)
		if p.name == "p2" && d < span {
			continue
		}
		require.GreaterOrEqual(t, d, span, "%s has no life that is long enough to judge", p.name)
		for i, f := range figures {
			first, last := thirds(l.samples[i])
			require.False(t, grown(l.samples[i], f.slack), "%s of %s grew from %.0f to %.0f", f.name, p.name, first, last)
		}
	}
}

// TestMeter_Growth: the judge of the soak is alive.
func TestMeter_Growth_IsFoundAndNoiseIsNot(t *testing.T) {
	series := func(f func(i int) float64) (s []float64) {
		for i := range 300 {
			s = append(s, f(i))
		}
		return s
	}
	saw := func(i int) float64 { return float64(i%20) * 0.5 }
	require.False(t, grown(series(func(i int) float64 { return 100 + saw(i) }), 5))
	require.True(t, grown(series(func(i int) float64 { return 100 + saw(i) + float64(i)/5 }), 5), "a leak")
	require.True(t, grown(series(func(i int) float64 { return 100 + saw(i) + float64(i/200)*40 }), 5), "a step")
	require.False(t, grown(series(func(i int) float64 { return 100 + saw(i) - 80*max(0, 1-float64(i)/20) }), 5), "warming up")
	_, err := scrape(context.Background(), "127.0.0.1:1")
	require.Error(t, err)
}
