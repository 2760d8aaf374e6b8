package gpucheck

import (
	"context"
	"errors"

	"kvfence/kernels"
)

// runGuards compares pages copied with all guards (digest fused, tag last, then every tag checked) with the same pages copied by the
// driver alone, in turns: what one side meets of the machine's moods the other meets too.
func runGuards(ctx context.Context, b *bench, s Size, r *Result) {
	shape := shapes()[0]
	a, errA := b.Alloc(uint64(s.Pages)*shape.bytes(), 0, true)
	c, errB := b.Alloc(uint64(s.Pages)*shape.bytes(), 0, true)
	if err := errors.Join(errA, errB); err != nil {
		r.fail(err)
		return
	}
	if _, err := b.fill(a, shape, s.Pages); err != nil {
		r.fail(err)
		return
	}
	m, err := b.move(shape, s.Pages, kernels.NewView(a, shape.bytes(), s.Pages), kernels.NewView(c, shape.bytes(), s.Pages), true)
	if err != nil {
		r.fail(err)
		return
	}
	v, err := b.step(s.Pages, m.tags, shape)
	if err != nil {
		r.fail(err)
		return
	}
	on := func() error {
		return errors.Join(b.queue(kernels.NameConvert, m.args.Grid(), &m.args), b.queue(kernels.NameTagVerify, v.Grid(), &v))
	}
	off := func() error { return b.Copy(c, a, uint64(s.Pages)*shape.bytes()) }
	if _, err := b.time(2, func() error { return errors.Join(on(), off()) }); err != nil {
		r.fail(err)
		return
	}
	var more []float64
	for i := range s.Rounds {
		if ctx.Err() != nil {
			r.Notes = append(r.Notes, "ended by its limit")
			break
		}
		first, second := on, off
		if i%2 == 1 {
			first, second = off, on
		}
		x, errX := b.time(1, first)
		y, errY := b.time(1, second)
		if err := errors.Join(errX, errY); err != nil {
			r.fail(err)
			return
		}
		if i%2 == 1 {
			x, y = y, x
		}
		more = append(more, 100*(x[0]/max(y[0], 1e-6)-1))
	}
	low, mid, high := medianInterval(more)
	r.figure("time of copying with guards over without, within the card", mid, "%")
	r.figure("the same, low end of the interval (95 %)", low, "%")
	r.figure("the same, high end of the interval (95 %)", high, "%")
	r.fail(b.verdict(v, r, uint64(2+len(more)), s.Pages, 0))
	r.Notes = append(r.Notes, "a copy within one card, where the guards have nothing slower to hide behind; the goal of 1 % is of a run that a transfer bounds, which needs nodes with pools on the card, and is not measured here")
}
