package gpucheck

import (
	"context"
	"fmt"

	"kvfence/impl/device"
	"kvfence/kernels"
)

// shapes are a page in one piece, and one whose tokens lie in runs of 2 KiB (eight heads of 128 numbers of two bytes) with others between.
func shapes() []pageShape {
	return []pageShape{{"whole 64 KiB pages", 64 << 10, 64 << 10, 1}, {"runs of 2 KiB, 4 KiB apart", 2 << 10, 4 << 10, 32}}
}

// runBandwidth times a copy, then each kernel that moves pages. Bytes are what is read and written: twice the pages for a copy, once for
// a digest.
func runBandwidth(ctx context.Context, b *bench, s Size, r *Result) {
	a, errA := b.Alloc(s.Bytes, 0, true)
	c, errB := b.Alloc(s.Bytes, 0, true)
	if r.fail(errA); errA != nil || errB != nil {
		r.fail(errB)
		return
	}
	ms, err := b.time(s.Repeats, func() error { return b.Copy(c, a, s.Bytes) })
	if err != nil {
		r.fail(err)
		return
	}
	copied := gigabytes(2*s.Bytes, median(ms))
	r.figure("copy within the device", copied, "GB/s")
	for _, shape := range shapes() {
		for _, k := range []string{kernels.NameDigest, kernels.NameGather, kernels.NameScatter, kernels.NameConvert} {
			if ctx.Err() != nil {
				r.Notes = append(r.Notes, "ended by its limit before "+k)
				return
			}
			got, err := b.kernelBandwidth(k, shape, s, a, c, r)
			if err != nil {
				r.fail(fmt.Errorf("%s, %s: %w", k, shape.name, err))
				return
			}
			r.figure(k+", "+shape.name, got, "GB/s")
			share := 100 * got / copied
			if k == kernels.NameDigest || k == kernels.NameGather {
				r.goal(k+", "+shape.name+", of the copy", share, "%", ">=", 85)
			} else {
				r.figure(k+", "+shape.name+", of the copy", share, "%")
			}
		}
	}
}

func gigabytes(n uint64, ms float64) float64 { return float64(n) / 1e6 / max(ms, 1e-6) }

// kernelBandwidth times one kernel from a to c, and compares the first page's digest with the reference.
func (b *bench) kernelBandwidth(k string, shape pageShape, s Size, a, c kernels.Addr, r *Result) (float64, error) {
	n := uint32(s.Bytes / shape.bytes())
	first, err := b.fill(a, shape, n)
	if err != nil {
		return 0, err
	}
	src, dst := kernels.NewView(a, shape.bytes(), n), kernels.NewView(c, shape.bytes(), n)
	traffic := 2 * uint64(n) * uint64(shape.used())
	segs := shape.segs()
	switch k {
	case kernels.NameDigest:
		dst, traffic = kernels.View{}, traffic/2
	case kernels.NameGather:
		dst = kernels.NewStaging(c)
	case kernels.NameScatter:
		src, segs = kernels.NewStaging(a), pageShape{run: shape.used(), stride: shape.used(), runs: 1}.segs()
	}
	m, err := b.move(shape, n, src, dst, k == kernels.NameScatter || k == kernels.NameConvert)
	if err != nil {
		return 0, err
	}
	ms, err := b.time(s.Repeats, func() error { return b.queue(k, m.args.Grid(), &m.args) })
	if err != nil {
		return 0, err
	}
	digests, err := b.finished(m)
	if err != nil {
		return 0, err
	}
	want := device.DigestSegments(first, segs, shape.header())
	r.check(digests != nil && digests[0] == want, "%s, %s: the first page's digest is not %016x", k, shape.name, want)
	return gigabytes(traffic, median(ms)), nil
}
