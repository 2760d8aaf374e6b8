package sim

import "kvfence/impl/core"

// clock is a process's own: off ahead of the world's, and rate 1024ths too fast. It never stands still or goes back.
type clock struct {
	off  core.Time
	rate core.Time
}

// newClock is what a process has at its start: the world's clock, or, where they drift, one that is up to a fifth too fast or slow and up
// to three hours ahead.
func (w *World) newClock() clock {
	if !w.cfg.Drift {
		return clock{}
	}
	w.count(ClockDrift)
	return clock{off: core.Time(w.noise.Int64N(10_000e9)), rate: core.Time(w.noise.Int64N(401)) - 200}
}

// local is the clock's reading at a time of the world.
func (c clock) local(t core.Time) core.Time { return c.off + t + t/1024*c.rate + t%1024*c.rate/1024 }

// global is the first time of the world at which the clock shows d or more; 0 for no time.
func (c clock) global(d core.Time) core.Time {
	if d == 0 || c == (clock{}) {
		return d
	}
	x := d - c.off
	if x <= 0 {
		return 1
	}
	t := x/(1024+c.rate)*1024 + x%(1024+c.rate)*1024/(1024+c.rate)
	for c.local(t) < d {
		t++
	}
	for t > 1 && c.local(t-1) >= d {
		t--
	}
	return max(t, 1)
}
