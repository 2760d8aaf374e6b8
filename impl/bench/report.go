//go:build linux

package bench

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Report is what a run found. Ratios are what to compare; throughput and times are this machine's, at this hour, under this load.
type Report struct {
	Version   string    `json:"version"`
	Host      Host      `json:"host"`
	LoadAfter string    `json:"load_after"`
	Started   time.Time `json:"started"`
	Options   Options   `json:"options"`
	Notes     []string  `json:"notes,omitempty"`
	Results   []Result  `json:"results"`
}

// Result is one shape of one suite.
type Result struct {
	Suite   string        `json:"suite"`
	Shape   Shape         `json:"shape"`
	Rounds  int           `json:"rounds"`
	Ended   string        `json:"ended_by"` // "width": every interval is narrow enough; "pairs" or "bound": it is not
	Seconds float64       `json:"seconds"`
	Load    string        `json:"load"`
	Others  float64       `json:"others"` // share of all cores that other processes had meanwhile
	Movers  []MoverResult `json:"movers"`
	Ratios  []RatioResult `json:"ratios"`
	Seal    Times         `json:"seal"` // the source digests and tags, before what is timed
}

// MoverResult is one contestant's times, and the CPU time of all its processes in seconds for each GB: for the whole path all
// of a request, with what comes before it is timed; 0 where it was not taken.
type MoverResult struct {
	Name string  `json:"name"`
	CPU  float64 `json:"cpu_s_per_gb"`
	Times
}

func newMover(name string, ns []int64, cpu int64, s Shape) MoverResult {
	m := MoverResult{Name: name, Times: timesOf(ns, s.Bytes())}
	if n := float64(len(ns)) * float64(s.Bytes()); n > 0 {
		m.CPU = float64(cpu) / n
	}
	return m
}

// RatioResult is one comparison: speed of A as a share of B's, or what A's time exceeds B's by (Cost).
type RatioResult struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
	Cost bool   `json:"cost"`
	Goal string `json:"goal,omitempty"`
	Ratio
	// Fastest is the same of the fastest request of each: what is left when others had the machine for most of the time.
	Fastest float64 `json:"fastest"`
}

// Head says on what and how it was measured.
func (r *Report) Head(w io.Writer) {
	h, o := r.Host, r.Options
	c := h.C
	if c == "" {
		c = "no C compiler"
	}
	fmt.Fprintf(w, "kvfence %s, %s, %s\n", r.Version, h.Go, c)
	fmt.Fprintf(w, "machine: %s, %d cores, %s, %s, non-temporal copy %s\n", h.CPU, h.Cores, h.Memory, h.Kernel, h.Stream)
	fmt.Fprintf(w, "began %s at load %s; the system's congestion control is %s, sockets that carry pages have %s\n", r.Started.Format(time.RFC3339), h.Load, h.Congestion, o.Congestion)
	fmt.Fprintf(w, "pools of %d MiB, %d to %d rounds in shuffled order, until each 95 %% interval is within +-%.2g or %v a shape\n", o.PoolBytes>>20, o.Repeats, o.MaxPairs, o.Width, o.Bound)
	if o.Quick {
		fmt.Fprintln(w, "quick: this shows that everything runs; the figures mean nothing")
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, n)
	}
}

// text is the table of one shape.
func (r Result) text() string {
	var s strings.Builder
	fmt.Fprintf(&s, "\n%s %s: %d rounds in %.0f s, ended by %s, load %s, others had %.0f %% of the machine\n", r.Suite, r.Shape, r.Rounds, r.Seconds, r.Ended, r.Load, 100*r.Others)
	fmt.Fprintf(&s, "  %-32s %8s %10s %10s %10s %10s %8s %9s\n", "", "GB/s", "p50 us", "p99 us", "min us", "max us", "requests", "CPU s/GB")
	row := func(name string, t Times, cpu string) {
		fmt.Fprintf(&s, "  %-32s %8.2f %10.1f %10.1f %10.1f %10.1f %8d %9s\n", name, t.GBps, t.P50, t.P99, t.Min, t.Max, t.Requests, cpu)
	}
	for _, m := range r.Movers {
		cpu := ""
		if m.CPU > 0 {
			cpu = fmt.Sprintf("%.3f", m.CPU)
		}
		row(m.Name, m.Times, cpu)
	}
	row("(sealing with digests, apart)", r.Seal, "")
	for _, x := range r.Ratios {
		unit, k := "", 1.0
		if x.Cost {
			unit, k = " %", 100
		}
		goal := ""
		if x.Goal != "" {
			goal = "  goal " + x.Goal
		}
		fmt.Fprintf(&s, "  %-32s %8.3g%s  [%.3g, %.3g] +-%.2g, pairs %.3g to %.3g, fastest %.3g%s\n", x.Name, k*x.Median, unit, k*x.Low, k*x.High, k*x.Half(), k*x.Min, k*x.Max, k*x.Fastest, goal)
	}
	return s.String()
}
