//go:build linux

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kvfence/spec"
)

// contestant is one way to move a request of the present shape; run returns its nanoseconds.
type contestant struct {
	name string
	run  func(context.Context) (int64, error)
	pids []int // of the processes whose CPU time it costs
}

// comparison is a ratio of two contestants' times in each round. Speed: how fast a is, as a share of b. Cost: how much more time a takes.
type comparison struct {
	name string
	a, b string
	cost bool
	goal string
}

// bench is one run.
type bench struct {
	o     Options
	dir   string
	cc    string
	child *proc
	log   io.Writer
	out   *Report
}

// Run measures everything that o asks for. exe is this program, and args make it call Source.
func Run(ctx context.Context, o Options, log io.Writer, exe string, args ...string) (_ *Report, err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kvfence-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bench{o: o, dir: dir, cc: compiler(), log: &serial{w: log}, out: &Report{Version: o.Version, Host: hostNow(), Started: time.Now().UTC(), Options: o}}
	b.out.Host.C = compilerVersion(ctx, b.cc)
	if b.cc == "" {
		b.out.Notes = append(b.out.Notes, "no C compiler: there are no C references in this run")
	}
	if err := makeCertificates(dir); err != nil {
		return nil, err
	}
	if b.child, err = startProc(ctx, log, "second process", exe, args...); err != nil {
		return nil, err
	}
	defer func() {
		cerr := b.child.close()
		if err == nil {
			err = cerr
		}
	}()
	for _, s := range o.Suites {
		if err := b.suite(ctx, s); err != nil {
			return b.out, fmt.Errorf("%s: %w", s, err)
		}
	}
	b.out.LoadAfter = load()
	return b.out, nil
}

// suite runs all shapes of one suite, by page size.
func (b *bench) suite(ctx context.Context, name string) error {
	var pages []int
	for _, s := range b.o.Shapes {
		if !slices.Contains(pages, s.Page) {
			pages = append(pages, s.Page)
		}
	}
	for _, page := range pages {
		if err := b.pages(ctx, name, page); err != nil {
			return fmt.Errorf("pages of %d KiB: %w", page>>10, err)
		}
	}
	return nil
}

// ends are everything that is open for one suite and page size.
type ends struct {
	plain, sums *guarded
	bare        *bareTarget
	c           *proc
	nt          bool // the C reference has non-temporal stores
}

func (b *bench) pages(ctx context.Context, suite string, page int) (err error) {
	r := rand.New(rand.NewPCG(b.o.Seed, uint64(page)))
	e := &ends{}
	defer func() {
		if cerr := e.close(b.child); err == nil {
			err = cerr
		}
	}()
	if err := b.open(ctx, e, suite, page, r); err != nil {
		return err
	}
	movers, ratios := b.field(suite, e)
	for _, s := range b.o.Shapes {
		if s.Page != page {
			continue
		}
		e.plain.shape, e.sums.shape = s, s
		e.plain.seals, e.sums.seals = nil, nil
		e.bare.begin(s, r)
		res, err := b.rounds(ctx, s, movers, ratios, r)
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		res.Suite, res.Seal = suite, timesOf(e.sums.seals, s.Bytes())
		b.out.Results = append(b.out.Results, res)
		b.say("%s", res.text())
	}
	return nil
}

func (b *bench) open(ctx context.Context, e *ends, suite string, page int, r *rand.Rand) (err error) {
	b.say("%s, pages of %d KiB: opening\n", suite, page>>10)
	c := config0{Suite: suite, Congestion: b.o.Congestion, Streams: b.o.Streams, Dir: b.dir}
	a, err := b.child.ask(order{Op: "open", Open: &openOrder{Config: c, Page: page, Pool: b.o.PoolBytes, Digests: []bool{false, true}}})
	if err != nil {
		return err
	}
	if e.plain, err = openGuarded(ctx, b.child, 0, a.Control[0], c, page, b.o.PoolBytes, false, b.log); err != nil {
		return err
	}
	if e.sums, err = openGuarded(ctx, b.child, 1, a.Control[1], c, page, b.o.PoolBytes, true, b.log); err != nil {
		return err
	}
	if e.bare, err = dialBare(ctx, b.child, c, a.Bare, a.Pool, e.plain.rig.Memory()[spec.KV], b.o.PoolBytes); err != nil {
		return err
	}
	if err = errors.Join(e.plain.shuffle(ctx, r), e.sums.shuffle(ctx, r)); err != nil || b.cc == "" {
		return err
	}
	ready := ""
	switch suite {
	case "tcp":
		e.c, _, err = reference(ctx, b.cc, b.dir, "stream", b.log, b.o.Congestion, fmt.Sprint(b.o.PoolBytes))
	case "shm":
		e.c, ready, err = reference(ctx, b.cc, b.dir, "copy", b.log, a.Pool, fmt.Sprint(b.o.PoolBytes), fmt.Sprint(b.o.Seed))
		e.nt = err == nil && ready != "ready none"
	}
	return err
}

func (e *ends) close(child *proc) (err error) {
	if e.c != nil {
		err = e.c.close()
	}
	if e.bare != nil {
		err = errors.Join(err, e.bare.close())
	}
	for _, g := range []*guarded{e.plain, e.sums} {
		if g != nil {
			err = errors.Join(err, g.close())
		}
	}
	_, cerr := child.ask(order{Op: "close"})
	return errors.Join(err, cerr)
}

// Names of contestants.
const (
	ours      = "kvfence"
	oursSums  = "kvfence, digests"
	bareName  = "bare mover"
	bareSums  = "bare mover, digests"
	goStream  = "Go stream"
	cStream   = "C stream"
	cEndless  = "C stream, endless"
	cNT       = "C non-temporal"
	cMemcpy   = "C memcpy"
	goCopy    = "Go copy"
	endlessBy = 256 << 20 // bytes of one endless stretch
)

// field is who takes part in a suite, and what is compared.
func (b *bench) field(suite string, e *ends) (m []contestant, c []comparison) {
	both := []int{os.Getpid(), b.child.pid}
	m = []contestant{
		{ours, e.plain.request, both}, {oursSums, e.sums.request, both},
		{bareName, func(ctx context.Context) (int64, error) { return e.bare.request(ctx, false) }, both},
		{bareSums, func(ctx context.Context) (int64, error) { return e.bare.request(ctx, true) }, both},
	}
	guards := []comparison{{"guards cost", ours, bareName, true, "<= 1 %"}, {"guards cost, both with digests", oursSums, bareSums, true, ""}}
	bytes := func() int { return e.bare.shape.Bytes() }
	switch suite {
	case "shm":
		m = append(m, contestant{goCopy, func(context.Context) (int64, error) { return e.bare.copyOnly() }, both[:1]})
		if e.c != nil {
			kinds := []contestant{{cMemcpy, cCopy(e, "memcpy"), e.c.family()}}
			if e.nt {
				kinds = append(kinds, contestant{cNT, cCopy(e, "nt"), e.c.family()})
			}
			m = append(m, kinds...)
			last := kinds[len(kinds)-1].name
			c = append(c, comparison{"of " + last, ours, last, false, ">= 1.0"}, comparison{"with digests, of " + last, oursSums, last, false, ">= 0.85"})
		}
		c = append(c, comparison{"digests cost", oursSums, ours, true, ""})
	default:
		m = append(m, contestant{goStream, func(context.Context) (int64, error) { return e.bare.stream(bytes()) }, both})
		goal := ""
		if suite == "tls" {
			goal = ">= 0.9"
		}
		c = append(c, comparison{"of " + goStream, ours, goStream, false, goal})
		if e.c != nil {
			m = append(m, contestant{cStream, func(context.Context) (int64, error) { return e.c.nanos(fmt.Sprint(bytes())) }, e.c.family()},
				contestant{cEndless, func(context.Context) (int64, error) { return endless(e.c, b.o, bytes()) }, nil})
			c = append(c, comparison{"of " + cStream, ours, cStream, false, ">= 0.8"}, comparison{"of " + cEndless, ours, cEndless, false, ""})
		}
		c = append(c, comparison{"digests cost", oursSums, ours, true, "<= 25 %"})
	}
	return m, append(c, guards...)
}

func cCopy(e *ends, kind string) func(context.Context) (int64, error) {
	return func(context.Context) (int64, error) {
		s := e.bare.shape
		return e.c.nanos(fmt.Sprintf("%s %d %d", kind, s.Page, s.Pages))
	}
}

// endless is the time that bytes take in the midst of a long stream.
func endless(c *proc, o Options, bytes int) (int64, error) {
	whole := max(bytes, min(endlessBy, o.PoolBytes))
	n, err := c.nanos(fmt.Sprint(whole))
	return int64(float64(n) * float64(bytes) / float64(whole)), err
}

// sampleBytes is what a contestant moves in one round at least, unless that are too many requests.
const (
	sampleBytes    = 2 << 20
	sampleRequests = 8
)

// rounds runs every contestant once a round, in shuffled order, until the interval of each ratio is narrow enough.
func (b *bench) rounds(ctx context.Context, s Shape, movers []contestant, ratios []comparison, r *rand.Rand) (res Result, err error) {
	each := max(1, min(sampleRequests, sampleBytes/s.Bytes()))
	times, cpu, pairs := map[string][]int64{}, map[string]int64{}, make([][]float64, len(ratios))
	begin := time.Now()
	res = Result{Shape: s, Load: load(), Ended: "pairs"}
	var all []int
	for _, m := range movers {
		all = append(all, m.pids...)
	}
	slices.Sort(all)
	others, err := newMeter(slices.Compact(all))
	if err != nil {
		return res, err
	}
	for round := -1; round < b.o.MaxPairs; round++ { // the one before the first warms up
		mean := map[string]float64{}
		for _, i := range r.Perm(len(movers)) {
			m, sum := movers[i], int64(0)
			before, err := cpuOf(m.pids)
			if err != nil {
				return res, err
			}
			for range each {
				ns, err := m.run(ctx)
				if err != nil {
					return res, fmt.Errorf("%s: %w", m.name, err)
				}
				sum += ns
				if round >= 0 {
					times[m.name] = append(times[m.name], ns)
				}
			}
			mean[m.name] = float64(sum)
			after, err := cpuOf(m.pids)
			if err != nil {
				return res, err
			}
			if round >= 0 {
				cpu[m.name] += after - before
			}
		}
		if round < 0 {
			continue
		}
		for i, c := range ratios {
			pairs[i] = append(pairs[i], c.of(mean))
		}
		res.Rounds = round + 1
		if res.Rounds < b.o.Repeats {
			continue
		}
		if narrow(pairs, b.o.Width) {
			res.Ended = "width"
			break
		}
		if time.Since(begin) > b.o.Bound {
			res.Ended = "bound"
			break
		}
	}
	for _, m := range movers {
		res.Movers = append(res.Movers, newMover(m.name, times[m.name], cpu[m.name], s))
	}
	for i, c := range ratios {
		res.Ratios = append(res.Ratios, RatioResult{c.name, c.a, c.b, c.cost, c.goal, ratioOf(pairs[i]), c.fastest(times)})
	}
	res.Seconds = time.Since(begin).Seconds()
	res.Others, err = others.others()
	return res, err
}

// of is the ratio in one round.
func (c comparison) of(ns map[string]float64) float64 {
	if c.cost {
		return ns[c.a]/ns[c.b] - 1
	}
	return ns[c.b] / ns[c.a]
}

// fastest is the ratio of the fastest requests of all rounds.
func (c comparison) fastest(times map[string][]int64) float64 {
	best := map[string]float64{}
	for _, n := range []string{c.a, c.b} {
		if len(times[n]) > 0 {
			best[n] = float64(slices.Min(times[n]))
		}
	}
	return c.of(best)
}

func narrow(pairs [][]float64, width float64) bool {
	for _, p := range pairs {
		if ratioOf(p).Half() > width {
			return false
		}
	}
	return true
}

func (b *bench) say(format string, args ...any) {
	if b.o.Progress != nil {
		fmt.Fprintf(b.o.Progress, format, args...)
	}
}

// Executable is the path of this program.
func Executable() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrBench, err)
	}
	return filepath.EvalSymlinks(exe)
}
