package gpucheck

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"kvfence/impl/device"
	"kvfence/kernels"
)

// runVerify times the check of a step's tags with as many entries as pages, launched plainly and as a graph, and sees that one void
// tag is found. Times are the stream's: from an event before the launch to one behind it.
func runVerify(ctx context.Context, b *bench, s Size, r *Result) {
	for _, n := range s.Entries {
		if ctx.Err() != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("ended by its limit before %d pages", n))
			return
		}
		if err := b.verifyLatency(n, s.Repeats, r); err != nil {
			r.fail(fmt.Errorf("%d pages: %w", n, err))
			return
		}
		if err := b.Free(); err != nil {
			r.fail(err)
			return
		}
	}
}

// step is the tables of a step in which every page's tag is as expected.
func (b *bench) step(n uint32, tags kernels.Addr, shape pageShape) (a kernels.VerifyArgs, err error) {
	a = kernels.VerifyArgs{Pages: n, TagSlots: 1, TableLen: n, Capacity: n}
	table := make([]uint32, n)
	wants := make([]byte, 80*int(n))
	held := make([]byte, kernels.TagBytes*int(n))
	for i := range n {
		// A block table does not name its pages in order: an odd factor permutes a power of two and mixes others by a walk of their own.
		table[i] = page(i, n)
		w := wants[80*int(i):]
		device.PutTag(w[:kernels.TagBytes], pageTag(shape, table[i]))
		binary.LittleEndian.PutUint32(w[64:], i)
		binary.LittleEndian.PutUint32(w[72:], 1)
		copy(held[int(table[i])*kernels.TagBytes:], w[:kernels.TagBytes])
	}
	a.Tags = tags
	tables := []struct {
		at *kernels.Addr
		v  any
	}{{&a.Table, table}, {&a.Wants, wants}, {&a.Count, n}, {&a.Blocks, make([]byte, 272*int(a.Grid()))}, {&a.State, kernels.VerifyState{}},
		{&a.Flag, uint32(0)}, {&a.Report, kernels.Report{}}}
	if tags == 0 {
		if a.Tags, err = b.table(held); err != nil {
			return a, err
		}
	}
	for _, t := range tables {
		if *t.at, err = b.table(t.v); err != nil {
			return a, err
		}
	}
	return a, nil
}

// page is a permutation of n pages: bits reversed within the power of two at or above n would leave holes, so pages are dealt in two hands.
func page(i, n uint32) uint32 {
	if half := (n + 1) / 2; i < half {
		return 2 * i
	} else {
		return 2*(i-half) + 1
	}
}

func (b *bench) verifyLatency(n uint32, repeats int, r *Result) error {
	a, err := b.step(n, 0, pageShape{run: 64, stride: 64, runs: 1})
	if err != nil {
		return err
	}
	plain := func() error { return b.queue(kernels.NameTagVerify, a.Grid(), &a) }
	if err := errors.Join(plain(), b.Sync()); err != nil { // the first launch loads
		return err
	}
	graph, err := b.Capture(plain)
	if err != nil {
		return err
	}
	for _, way := range []struct {
		name string
		work func() error
	}{{"plain", plain}, {"graph", func() error { return b.Replay(graph) }}} {
		ms, err := b.time(repeats*5, way.work)
		if err != nil {
			return err
		}
		us := 1000 * median(ms)
		name := fmt.Sprintf("tags of %d pages, %s, median", n, way.name)
		if n == 32<<10 {
			r.goal(name, us, "us", "<=", 20)
		} else {
			r.figure(name, us, "us")
		}
		r.figure(fmt.Sprintf("tags of %d pages, %s, slowest of %d", n, way.name, len(ms)), 1000*ms[len(ms)-1], "us")
	}
	steps := uint64(1 + 2*repeats*5)
	if err := b.verdict(a, r, steps, n, 0); err != nil {
		return err
	}
	// A void tag, where the last entry's page is.
	if err := b.Write(a.Tags+kernels.Addr(page(n-1, n)*kernels.TagBytes), make([]byte, kernels.TagBytes)); err != nil {
		return err
	}
	if err := errors.Join(b.Replay(graph), b.Sync()); err != nil {
		return err
	}
	return b.verdict(a, r, steps+1, n, 1)
}

// verdict compares flag and report.
func (b *bench) verdict(a kernels.VerifyArgs, r *Result, step uint64, n, bad uint32) error {
	flag, report := make([]byte, 4), make([]byte, binary.Size(kernels.Report{}))
	if err := errors.Join(b.Read(a.Flag, flag), b.Read(a.Report, report)); err != nil {
		return err
	}
	var got kernels.Report
	if err := binary.Read(bytes.NewReader(report), binary.LittleEndian, &got); err != nil {
		return err
	}
	want := kernels.FlagGood
	if bad > 0 {
		want = kernels.FlagBad
		r.check(got.Offenders[0].Entry == n-1 && got.Offenders[0].Page == page(n-1, n), "%d pages: the offender is %+v", n, got.Offenders[0])
	}
	r.check(binary.LittleEndian.Uint32(flag) == want, "%d pages: the flag is %d", n, binary.LittleEndian.Uint32(flag))
	r.check(got.Step == step && got.Checked == n && got.Bad == bad, "%d pages: step %d, %d checked, %d bad", n, got.Step, got.Checked, got.Bad)
	return nil
}
