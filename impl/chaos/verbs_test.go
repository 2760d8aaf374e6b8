//go:build chaos && rig

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The main job over RDMA, cut to what soft RoCE in an emulated machine can do: 50 requests of 8 tenants at a time, two rails. A cut link is a rail's port set
// down, since no packet of these devices meets a wire.
const (
	verbsRequests = 50
	verbsTenants  = 8
	verbsClients  = 6
	// An emulated machine is ten times slower than its host, and the host is shared.
	verbsLiveness = 3 * time.Second
)

// Variables of the rig (impl/rig/devices.sh): devices and their interfaces, rails in order.
const (
	devicesVar = "KVFENCE_RDMA_DEVICES"
	netdevsVar = "KVFENCE_RDMA_NETDEVS"
)

// verbsRun is a cluster whose pages travel over all rails of the rig.
func verbsRun(t *testing.T) *run {
	devices := os.Getenv(devicesVar)
	if devices == "" {
		t.Skip(devicesVar + " is not set (make test-rdma sets it in its machine)")
	}
	s := shape{transport: "verbs", liveness: verbsLiveness, request: 60 * time.Second}
	for d := range strings.SplitSeq(devices, ",") {
		s.extra = append(s.extra, "--rdma-device", d)
	}
	c := newCluster(t, s)
	c.tenants = c.tenants[:verbsTenants]
	r := newRun(t, c)
	r.clients = verbsClients
	return r
}

// fifty sends the job's requests by a few clients; when a third has been answered, fault happens, and it is undone when it returns. Whoever gets an
// error tells of it and goes on with the next request.
func (r *run) fifty(fault func(ctx context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	work := make(chan request)
	third := make(chan struct{})
	var wg sync.WaitGroup
	for range r.clients {
		wg.Go(func() {
			for q := range work {
				if o := r.one(ctx, q); o.kind != "exact" { // what a client does after an error
					wait(ctx, 500*time.Millisecond)
				}
			}
		})
	}
	wg.Go(func() {
		<-third
		fault(ctx)
	})
	rng := r.rng(1)
	for i := range verbsRequests {
		if i == verbsRequests/3 {
			close(third)
		}
		work <- draw(rng, r.c)
	}
	close(work)
	wg.Wait()
	r.report()
	require.NoError(r.t, ctx.Err())
	require.Empty(r.t, r.errs)
	for _, p := range r.c.all {
		require.Empty(r.t, p.crashed(), "a process ended by itself")
	}
	fmt.Printf("figure: main_job_%s_exact %d answers\n", strings.TrimPrefix(r.t.Name(), "TestVerbs_"), r.counts["exact"])
	require.Positive(r.t, r.counts["exact"], "no request succeeded: the run says nothing")
}

// rest: everything comes to rest, all pages are free, requests are answered again.
func (r *run) rest() {
	r.c.waitReady(60 * time.Second)
	r.c.requireAllFree(60 * time.Second)
	r.clean(8)
	r.c.requireAllFree(30 * time.Second)
	r.c.requireNoAlarm()
}

func TestVerbs_MainJob_EveryAnswerIsExact(t *testing.T) {
	r := verbsRun(t)
	r.fifty(func(context.Context) {})
	require.Equal(t, verbsRequests, r.counts["exact"], "nothing went wrong, and yet")
	r.rest()
}

func TestVerbs_PrefillKilled_NoFalse200AndPagesComeBack(t *testing.T) {
	r := verbsRun(t)
	r.fifty(func(ctx context.Context) {
		p := r.c.prefills[0]
		p.kill()
		wait(ctx, time.Second)
		p.start()
	})
	r.rest()
}

func TestVerbs_DecodeKilled_NoFalse200AndPagesComeBack(t *testing.T) {
	r := verbsRun(t)
	r.fifty(func(ctx context.Context) { r.kill(ctx, rand.New(rand.NewPCG(r.seed, 9)), r.c.decode) })
	r.rest()
}

// A stopped prefill node is fenced by decode alone, whose pages come back while it is still stopped.
func TestVerbs_PrefillsStopped_DecodeGetsItsPagesBackAlone(t *testing.T) {
	r := verbsRun(t)
	r.fifty(func(context.Context) {
		for _, p := range r.c.prefills {
			p.signal(syscall.SIGSTOP)
		}
		r.c.requireAllFree(90*time.Second, r.c.decode)
		for _, p := range r.c.prefills {
			p.signal(syscall.SIGCONT)
		}
	})
	r.rest()
}

// With one rail down the requests go over the other; when it is up again it is used again, or at least nothing breaks.
func TestVerbs_RailLost_RequestsGoOverTheOther(t *testing.T) {
	r := verbsRun(t)
	names := strings.Split(os.Getenv(netdevsVar), ",")
	last := names[len(names)-1]
	set := func(state string) {
		out, err := exec.Command("ip", "link", "set", last, state).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	t.Cleanup(func() { set("up") })
	r.fifty(func(ctx context.Context) { set("down") })
	r.c.waitReady(60 * time.Second)
	r.c.requireAllFree(60 * time.Second)
	r.clean(8) // still down
	set("up")
	r.rest()
}
