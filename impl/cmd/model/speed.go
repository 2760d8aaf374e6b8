package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// speed times both sides on one setting, in turn, with as many workers each: the explorer as it is called, TLC from its line
// "Computing initial states" to its line "Model checking completed", as they come through the pipe. So neither the JVM's start nor the
// reading of the modules counts. Neither side checks a property; TLC writes no dump.
func (s *session) speed(ctx context.Context) error {
	set, err := s.pins.Speed.setting(s.c.specs.Manifest)
	if err != nil {
		return err
	}
	var ratios, mine, theirs []float64
	states := 0
	for range s.o.times {
		began := time.Now()
		r, err := set.walk(s.o.workers, s.o.limit)
		if err != nil {
			return err
		}
		took := time.Since(began)
		tlc, found, err := s.c.time(ctx, set, s.o.workers)
		if err != nil {
			return err
		}
		if found != r.States {
			s.fail("speed", fmt.Sprintf("TLC has %d states, the model %d", found, r.States))
			return nil
		}
		states = r.States
		ratios = append(ratios, tlc.Seconds()/took.Seconds())
		mine, theirs = append(mine, float64(states)/took.Seconds()), append(theirs, float64(states)/tlc.Seconds())
	}
	s.total.speed = median(ratios)
	fmt.Fprintf(s.out, "speed on %s: %d states, %d workers; explorer %s states/s, TLC %s states/s, ratio %s (min/median/max of %d)\n",
		s.pins.Speed.Name, states, s.o.workers, three(mine, "%.0f"), three(theirs, "%.0f"), three(ratios, "%.1f"), len(ratios))
	if s.total.speed < s.o.least {
		s.fail("speed", fmt.Sprintf("%.1f times TLC, %.1f at least", s.total.speed, s.o.least))
	}
	return nil
}

func median(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	return sorted[len(sorted)/2]
}

func three(x []float64, format string) string {
	return fmt.Sprintf(format+"/"+format+"/"+format, slices.Min(x), median(x), slices.Max(x))
}
