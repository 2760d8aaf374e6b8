//go:build linux

package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/impl/node"
	"kvfence/spec"
)

// Source is the second process: it owns the source pools, plays prefill's leader and sends what it is told to, until in ends.
func Source(ctx context.Context, in io.Reader, out, log io.Writer) error {
	signal.Ignore(os.Interrupt) // the first process ends this one
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &source{ctx: ctx, log: log}
	r, enc := bufio.NewReader(in), json.NewEncoder(out)
	for {
		b, err := r.ReadBytes('\n')
		if err != nil {
			return s.close()
		}
		var o order
		if err := json.Unmarshal(b, &o); err != nil {
			return errors.Join(err, s.close())
		}
		a, err := s.do(o)
		if err != nil {
			a.Err = err.Error()
		}
		if err := enc.Encode(a); err != nil {
			return errors.Join(err, s.close())
		}
	}
}

// source is the state of the second process.
type source struct {
	ctx  context.Context
	log  io.Writer
	rigs []*sourceRig
	page int
	bare *bareSource
}

// sourceRig is one prefill rig with its leader's ear.
type sourceRig struct {
	rig    *node.PrefillRig
	heard  *ear
	sealed chan int64
	jobs   uint64
	now    spec.TransferID // the request that is begun
}

func (s *source) do(o order) (answer, error) {
	switch o.Op {
	case "open":
		return s.open(*o.Open)
	case "close":
		return answer{}, s.close()
	case "bare":
		return s.bare.pages(*o.Send)
	case "stream":
		return s.bare.stream(o.Send.Bytes)
	}
	if o.Rig < 0 || o.Rig >= len(s.rigs) {
		return answer{}, fmt.Errorf("%w: no rig %d", ErrBench, o.Rig)
	}
	r := s.rigs[o.Rig]
	switch o.Op {
	case "shuffle":
		return answer{}, r.shuffle(s.ctx, o.Seed)
	case "begin":
		return r.begin(s.ctx, *o.Begin)
	case "release":
		return r.release(s.ctx)
	}
	return answer{}, fmt.Errorf("%w: order %q", ErrBench, o.Op)
}

func (s *source) open(o openOrder) (a answer, err error) {
	if err := s.close(); err != nil {
		return a, err
	}
	s.page = o.Page
	shared := o.Config.Suite == "shm"
	for _, digests := range o.Digests {
		r := &sourceRig{heard: newEar(), sealed: make(chan int64, 16)}
		r.rig, err = node.NewPrefillRig(o.Config.rigConfig(o.Page, o.Pool, digests, shared, r.heard, s.log), func() {
			at, err := monotonic()
			if err != nil {
				r.heard.stop(err)
			}
			r.sealed <- at
		})
		if err != nil {
			return a, err
		}
		s.rigs = append(s.rigs, r)
		stamp(r.rig.Memory()[spec.KV].Bytes, o.Page, rand.New(rand.NewPCG(1, 2)))
		a.Control = append(a.Control, r.rig.Control())
	}
	if s.bare, err = newBareSource(o.Config, s.rigs[0].rig.Memory()[spec.KV], o.Pool); err != nil {
		return a, err
	}
	a.Bare = s.bare.address()
	if shared {
		a.Pool, err = poolFile(s.rigs[0].rig.Memory()[spec.KV])
	}
	return a, err
}

// poolFile is where another process of this user finds the memory of a shared pool.
func poolFile(p *device.Pool) (string, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		name := "/proc/self/fd/" + e.Name()
		var st unix.Stat_t
		if to, err := os.Readlink(name); err == nil && len(to) > 17 && to[:17] == "/memfd:kvfence-kv" && unix.Stat(name, &st) == nil && st.Size >= int64(len(p.Bytes)) {
			return fmt.Sprintf("/proc/%d/fd/%s", os.Getpid(), e.Name()), nil
		}
	}
	return "", fmt.Errorf("%w: the shared pool's file is not among this process's", ErrBench)
}

func (s *source) close() (err error) {
	if s.bare != nil {
		err = s.bare.close()
		s.bare = nil
	}
	for _, r := range s.rigs {
		err = errors.Join(err, r.rig.Close())
	}
	s.rigs = nil
	return err
}

// begin brings a request to the moment at which its pages are sealed, its grant is in hand and nothing has moved.
func (r *sourceRig) begin(ctx context.Context, b begin) (a answer, err error) {
	r.now = b.Transfer
	r.rig.Tell(core.Assign{Transfer: b.Transfer, Request: b.Request, Domain: b.Domain, Tokens: b.Tokens, Links: []spec.Incarnation{b.Decode}})
	if _, _, err = waitFor[core.Granted](ctx, r.heard); err != nil {
		return a, err
	}
	r.rig.Tell(core.TakeSource{Transfer: b.Transfer})
	taken, _, err := waitFor[core.SourceTaken](ctx, r.heard)
	if err != nil {
		return a, err
	}
	for _, p := range taken.Pages[spec.KV] {
		a.Pages = append(a.Pages, uint32(p.Page))
	}
	t, err := monotonic()
	if err != nil {
		return a, err
	}
	r.rig.Tell(core.ChunkDone{Transfer: b.Transfer, To: b.Tokens, Last: true})
	r.rig.Tell(core.ComputeOver{Transfer: b.Transfer})
	select {
	case at := <-r.sealed:
		a.SealNs = at - t
	case <-ctx.Done():
		err = ctx.Err()
	}
	return a, err
}

// release lets it move and waits until prefill has done with it.
func (r *sourceRig) release(ctx context.Context) (a answer, err error) {
	began := make(chan int64, 1)
	r.rig.Release(func() {
		at, err := monotonic()
		if err != nil {
			r.heard.stop(err)
		}
		began <- at
	})
	for {
		over, _, err := waitFor[core.JobOver](ctx, r.heard)
		if err != nil {
			return a, err
		}
		if over.Transfer == r.now {
			a.T0 = <-began
			return a, nil
		}
	}
}

// shuffle puts the free list into random order: jobs take all pages, a few each, and give them back in random order.
func (r *sourceRig) shuffle(ctx context.Context, seed uint64) error {
	free := r.rig.Status().Pools[spec.KV].Free
	each := (free + shuffleJobs - 1) / shuffleJobs
	var jobs []spec.TransferID
	for left := free; left > 0; left -= min(left, each) {
		r.jobs++
		t := spec.TransferID{Leader: spec.Incarnation{1}, Counter: r.jobs}
		r.rig.Tell(core.Assign{Transfer: t, Tokens: min(left, each) * pageTokens})
		r.rig.Tell(core.TakeSource{Transfer: t})
		if _, _, err := waitFor[core.SourceTaken](ctx, r.heard); err != nil {
			return err
		}
		jobs = append(jobs, t)
	}
	rand.New(rand.NewPCG(seed, 3)).Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	for _, t := range jobs {
		r.rig.Tell(core.UntakeSource{Transfer: t})
		r.rig.Tell(core.Break{Transfer: t, Cause: spec.CauseShutdown})
		r.rig.Tell(core.ComputeOver{Transfer: t})
		if _, _, err := waitFor[core.JobOver](ctx, r.heard); err != nil {
			return err
		}
	}
	if now := r.rig.Status().Pools[spec.KV].Free; now != free {
		return fmt.Errorf("%w: %d pages are free after shuffling, %d were", ErrBench, now, free)
	}
	return nil
}

// shuffleJobs is how many pieces the free list is shuffled in; larger pools have runs of several pages.
const shuffleJobs = 2048
