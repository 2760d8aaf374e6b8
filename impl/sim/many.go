package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// Plan is which seeds are run. Seeds From, From+1, ... are dealt out to Of machines in turn; this is machine Shard.
type Plan struct {
	From  uint64
	Count uint64 // seeds of all machines; 0: as many as Steps needs
	Steps int64  // of this machine: it ends with the seed that reaches them; 0: Count alone ends it
	Shard int
	Of    int // 0 is 1

	Follow   uint64        // seeds that it divides are held to the specification, step by step; 0: none
	Workers  int           // 0: one for each processor
	Change   func(*Config) // of each cluster; nil: none
	MostBad  int           // violations that are kept, and after which no further seed is begun; 0 is 10
	Progress func(Result)  // called now and then, from one goroutine at a time; nil: never
}

// ErrPlan is wrapped by what makes a plan unusable.
var ErrPlan = errors.New("plan of seeds")

func (p *Plan) validate() error {
	if p.Of == 0 {
		p.Of = 1
	}
	if p.Workers <= 0 {
		p.Workers = runtime.GOMAXPROCS(0)
	}
	if p.MostBad == 0 {
		p.MostBad = 10
	}
	switch {
	case p.Shard < 0 || p.Shard >= p.Of:
		return fmt.Errorf("%w: shard %d of %d", ErrPlan, p.Shard, p.Of)
	case p.Count == 0 && p.Steps <= 0:
		return fmt.Errorf("%w: neither seeds nor steps", ErrPlan)
	case p.From > 1<<62 || p.Count > 1<<62:
		return fmt.Errorf("%w: seeds beyond 2^62", ErrPlan)
	}
	return nil
}

// seed is the i-th seed of this machine; false behind the last.
func (p *Plan) seed(i uint64) (uint64, bool) {
	at := i*uint64(p.Of) + uint64(p.Shard)
	return p.From + at, p.Count == 0 || at < p.Count
}

// Many runs the seeds of a plan. The result does not depend on the number of workers or on their speed: seeds that were run beyond the
// last of the plan do not count. It ends early, with what came so far and the context's error, when ctx ends.
func Many(ctx context.Context, p Plan) (Result, error) {
	if err := p.validate(); err != nil {
		return Result{}, err
	}
	type done struct {
		i   uint64
		out Outcome
		err error
	}
	var next atomic.Uint64
	var stop atomic.Bool
	results := make(chan done, p.Workers)
	var workers sync.WaitGroup
	for range p.Workers {
		workers.Go(func() {
			for !stop.Load() && ctx.Err() == nil {
				i := next.Add(1) - 1
				seed, is := p.seed(i)
				if !is {
					return
				}
				change := p.Change
				if p.Follow > 0 && seed%p.Follow == 0 {
					change = Following(p.Change)
				}
				out, err := Run(seed, change)
				out.Seed = seed
				results <- done{i, out, err}
			}
		})
	}
	go func() {
		workers.Wait()
		close(results)
	}()
	r := newResult(p)
	ahead, at := map[uint64]done{}, uint64(0)
	for d := range results {
		ahead[d.i] = d
		for !stop.Load() {
			x, is := ahead[at]
			if !is {
				break
			}
			delete(ahead, at)
			at++
			r.add(x.out, x.err)
			if p.Steps > 0 && r.Steps >= p.Steps || len(r.Violations) >= p.MostBad {
				stop.Store(true)
			}
		}
		if p.Progress != nil {
			p.Progress(r)
		}
	}
	r.Whole = ctx.Err() == nil && len(r.Violations) < p.MostBad
	return r, ctx.Err()
}
