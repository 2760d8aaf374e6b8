//go:build verbs && rig

package verbs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/transport"
	"kvfence/impl/transport/tcp"
	"kvfence/spec"
)

// childVar makes this binary a prefill process in place of tests. Its standard input and output are lines of JSON.
const childVar = "KVFENCE_VERBS_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVar) {
	case "prefill":
		childPrefill(os.Stdin, os.Stdout)
		return
	case "memlock":
		childMemlock(os.Stdout)
		return
	}
	os.Exit(m.Run())
}

// order is what the child is told: post this batch. Epoch and address are told once.
type order struct {
	Batch transport.Batch
	Fence bool
}

// childPrefill serves one link in epoch 1 and posts what it is told until its input ends.
func childPrefill(in io.Reader, out io.Writer) {
	l := kvLayout(64, 4, 0, 1, 1, fencePages)
	mem := memoryOf(childTB{}, l)
	set(mem[spec.KV].Bytes, storedAtSource)
	a, err := Open(Options{Rails: rails(childTB{}, 1)}, mem)
	must(err)
	ln, err := a.Listen("127.0.0.1:0")
	must(err)
	sink := newSourceSink()
	src, err := ln.Expect(linkInfo(1), sink)
	must(err)
	fmt.Fprintln(out, ln.Addr())
	lines := json.NewDecoder(in)
	for {
		var o order
		if err := lines.Decode(&o); err != nil {
			os.Exit(0)
		}
		if o.Fence {
			src.Fence()
			must(<-sink.done)
			fmt.Fprintln(out, "fenced")
			continue
		}
		for _, w := range o.Batch.Writes {
			src.Post(transport.Batch{ID: uint64(w.Index), Lease: o.Batch.Lease, Writes: []transport.Write{w}})
		}
		fmt.Fprintln(out, "posted")
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// childTB lets the child use the tests' helpers: whatever fails ends it.
type childTB struct{ testing.TB }

func (childTB) Errorf(f string, a ...any) { must(fmt.Errorf(f, a...)) }
func (childTB) FailNow()                  { os.Exit(3) }
func (childTB) Helper()                   {}
func (childTB) Skip(a ...any)             { must(fmt.Errorf("%v", a)) }
func (childTB) Skipf(f string, a ...any)  { must(fmt.Errorf(f, a...)) }

// child is a prefill process.
type child struct {
	cmd *exec.Cmd
	in  *json.Encoder
	out *bufio.Scanner
}

func startChild(t *testing.T) (c *child, addr string) {
	self, err := os.Executable()
	require.NoError(t, err)
	c = &child{cmd: exec.Command(self)}
	c.cmd.Env = append(os.Environ(), childVar+"=prefill")
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() {
		_ = c.cmd.Process.Signal(syscall.SIGCONT)
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	})
	c.in, c.out = json.NewEncoder(in), bufio.NewScanner(out)
	return c, c.line(t)
}

func (c *child) line(t *testing.T) string {
	require.True(t, c.out.Scan(), "the child ended: %v", c.out.Err())
	return c.out.Text()
}

// decodeEnd is decode's end of a link to a child.
type decodeEnd struct {
	*ends
	sink   *targetSink
	target transport.Target
}

func newDecodeEnd(t *testing.T, addr string, by Leases) *decodeEnd {
	l := kvLayout(64, 4, 0, 1, 1, fencePages)
	mem := memoryOf(t, l)
	d := &decodeEnd{ends: &ends{t: t, src: mem, dst: mem, grants: transport.NewGrants(mem), epoch: 1}, sink: newTargetSink()}
	var err error
	d.da, err = Open(Options{Rails: rails(t, 1), Target: true, Leases: by}, mem)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.da.Close()) })
	d.grants.Raise(1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	d.target, err = d.da.Dial(ctx, addr, linkInfo(1), d.grants, d.sink, tcp.Options{})
	require.NoError(t, err)
	return d
}

// order grants all pages and lets the child post them.
func (d *decodeEnd) order(c *child) {
	set(d.dst[spec.KV].Bytes, before)
	x := d.transferOf(1, whole(d.dst[spec.KV].Layout, 64*fencePages), ids(0, fencePages), ids(0, fencePages))
	require.True(d.t, d.grants.Allow(x.grant))
	require.NoError(d.t, c.in.Encode(order{Batch: x.batch}))
	c.line(d.t.(*testing.T))
}

func (d *decodeEnd) fence() time.Duration {
	begin := time.Now()
	d.grants.Raise(2)
	d.target.Fence()
	require.NoError(d.t, await(d.t, d.sink.done, "decode's fence"))
	require.NoError(d.t, d.grants.Wait(2))
	return time.Since(begin)
}

// A killed prefill is seen within a second, and fenced without it.
func TestPeer_Killed_IsSeenWithinASecond(t *testing.T) {
	var seen []time.Duration
	for i := range 8 {
		c, addr := startChild(t)
		d := newDecodeEnd(t, addr, []Leases{LeasesAuto, LeasesOff}[i%2])
		d.order(c)
		begin := time.Now()
		require.NoError(t, c.cmd.Process.Kill())
		await(t, d.sink.lost, "the loss")
		seen = append(seen, time.Since(begin))
		d.fence()
		set(d.dst[spec.KV].Bytes, reused)
		_ = c.cmd.Wait()
		require.True(t, all(d.dst[spec.KV].Bytes, reused))
	}
	slices.Sort(seen)
	figure("killed_peer_seen_min", fmt.Sprintf("%.1f", seen[0].Seconds()*1e3), "ms")
	figure("killed_peer_seen_median", fmt.Sprintf("%.1f", seen[len(seen)/2].Seconds()*1e3), "ms")
	figure("killed_peer_seen_max", fmt.Sprintf("%.1f", seen[len(seen)-1].Seconds()*1e3), "ms")
	require.Less(t, seen[len(seen)-1], time.Second)
}

// A stopped prefill says nothing, and its adapter goes on for it: decode fences alone, hands the pages out, and when prefill
// goes on nothing of it lands. (That it is stopped is the control link's to see: impl/node.)
func TestPeer_Stopped_IsFencedAlone_AndLandsNothingLater(t *testing.T) {
	for _, by := range []Leases{LeasesAuto, LeasesOff} {
		c, addr := startChild(t)
		d := newDecodeEnd(t, addr, by)
		d.order(c)
		require.NoError(t, c.cmd.Process.Signal(syscall.SIGSTOP))
		figure("fence_beside_a_stopped_peer_"+string(by), fmt.Sprintf("%.1f", d.fence().Seconds()*1e3), "ms")
		set(d.dst[spec.KV].Bytes, reused)
		set(d.dst[spec.KV].Tags, reused)
		require.NoError(t, c.cmd.Process.Signal(syscall.SIGCONT))
		require.NoError(t, c.in.Encode(order{Fence: true}))
		require.Equal(t, "fenced", c.line(t))
		require.True(t, all(d.dst[spec.KV].Bytes, reused))
		require.True(t, all(d.dst[spec.KV].Tags, reused))
		require.Eventually(t, func() bool { return d.da.Stats().Kept == 0 }, patience, time.Millisecond, "it has said that its end is shut")
	}
}

// Assumption A5: what the adapter had placed before the fence is in memory when the flush read is back: read then, a page never changes again.
func TestAssumption_A5_FlushRead_IsBehindPlacements(t *testing.T) {
	e := fenceRig(t, 2, LeasesOff)
	for lease := spec.LeaseID(1); lease <= 8; lease++ {
		k := e.link()
		set(e.dst[spec.KV].Bytes, before)
		x := e.transferOf(lease, whole(e.dst[spec.KV].Layout, 64*fencePages), ids(0, fencePages), ids(0, fencePages))
		require.True(t, k.grants.Allow(x.grant))
		k.source.Post(x.batch)
		for until := time.Now().Add(time.Duration(lease) * time.Millisecond); time.Now().Before(until); {
		}
		k.fence()
		then := slices.Clone(e.dst[spec.KV].Bytes)
		_ = await(t, k.ssink.posted, "the end of the batch")
		k.fenceSource()
		require.Equal(t, then, e.dst[spec.KV].Bytes)
	}
}

// Assumption A8: once the peer has said that its end is shut nothing of it is under way, also for a queue pair that gets the old number.
func TestAssumption_A8_PeerShut_NothingIsUnderWay(t *testing.T) {
	e := fenceRig(t, 1, LeasesOff)
	again := 0
	for lease := spec.LeaseID(1); lease <= 3; lease++ {
		k := e.link()
		k.begun() // a source that has not begun says nothing at its end
		number := qpn(k.target.(*target).queues[0])
		x := e.transferOf(lease, whole(e.dst[spec.KV].Layout, 64*fencePages), ids(0, fencePages), ids(0, fencePages))
		require.True(t, k.grants.Allow(x.grant))
		k.source.Post(x.batch)
		k.fence()
		k.fenceSource()
		require.Eventually(t, func() bool { return e.da.Stats().Kept == 0 }, patience, time.Millisecond)
		set(e.dst[spec.KV].Bytes, reused)
		for range 8 { // others take numbers; some may take the old one
			n := e.link()
			if qpn(n.target.(*target).queues[0]) == number {
				again++
			}
			n.end()
		}
		require.True(t, all(e.dst[spec.KV].Bytes, reused))
	}
	figure("queue_pair_numbers_given_again", again, "times")
}

// Assumption A9: on a port that is down, what had been placed when the fence saw its completions is in memory: read then, a page never changes again.
func TestAssumption_A9_PortDown_CompletionsAreBehindPlacements(t *testing.T) {
	netdev := strings.Split(os.Getenv("KVFENCE_RDMA_NETDEVS"), ",")
	ip := func(state string) {
		out, err := exec.Command("ip", "link", "set", netdev[0], state).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	t.Cleanup(func() { ip("up") })
	for _, by := range []Leases{LeasesAuto, LeasesOff} {
		e := fenceRig(t, 1, by)
		landed := 0
		for lease := spec.LeaseID(1); lease <= 6; lease++ {
			require.Eventually(t, func() bool { _, err := e.da.rails[0].up(); return err == nil }, patience, 5*time.Millisecond)
			k := e.link()
			set(e.dst[spec.KV].Bytes, before)
			x := e.transferOf(lease, whole(e.dst[spec.KV].Layout, 64*fencePages), ids(0, fencePages), ids(0, fencePages))
			require.True(t, k.grants.Allow(x.grant))
			k.source.Post(x.batch)
			for until := time.Now().Add(time.Duration(lease) * 3 * time.Millisecond); time.Now().Before(until); {
			}
			ip("down")
			k.fence()
			then := slices.Clone(e.dst[spec.KV].Bytes)
			landed += len(then) - bytes.Count(then, []byte{before})
			_ = await(t, k.ssink.posted, "the end of the batch")
			k.fenceSource()
			require.Equal(t, then, e.dst[spec.KV].Bytes)
			ip("up")
		}
		require.Positive(t, landed, "no byte had come when the port went down")
	}
}

// A port that goes down and comes up again while decode fences costs time, and no node: the flush read is tried again.
func TestRail_Flaps_FenceIsDone(t *testing.T) {
	netdev := strings.Split(os.Getenv("KVFENCE_RDMA_NETDEVS"), ",")
	ip := func(state string) {
		out, err := exec.Command("ip", "link", "set", netdev[0], state).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	t.Cleanup(func() { ip("up") })
	e := fenceRig(t, 1, LeasesRegions)
	for lease := spec.LeaseID(1); lease <= 6; lease++ {
		require.Eventually(t, func() bool { _, err := e.da.rails[0].up(); return err == nil }, patience, 5*time.Millisecond)
		k := e.link()
		x := e.transferOf(lease, whole(e.dst[spec.KV].Layout, 64*fencePages), ids(0, fencePages), ids(0, fencePages))
		require.True(t, k.grants.Allow(x.grant))
		k.source.Post(x.batch)
		flapped := make(chan struct{})
		go func() {
			defer close(flapped)
			ip("down")
			time.Sleep(time.Duration(lease) * time.Millisecond)
			ip("up")
		}()
		k.fence()
		set(e.dst[spec.KV].Bytes, reused)
		k.fenceSource()
		<-flapped
		require.True(t, all(e.dst[spec.KV].Bytes, reused))
	}
}

// One rail of two goes down in the middle: both ends lose the link and can be fenced; the next epoch uses what is left, and both again when it is back.
func TestRail_Down_LinkIsFencedAndGoesOnOverTheOther(t *testing.T) {
	netdev := strings.Split(os.Getenv("KVFENCE_RDMA_NETDEVS"), ",")
	require.Len(t, netdev, 2)
	ip := func(state string) {
		out, err := exec.Command("ip", "link", "set", netdev[1], state).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	t.Cleanup(func() { ip("up") })
	for _, by := range []Leases{LeasesAuto, LeasesOff} {
		e := fenceRig(t, 2, by)
		k := e.link()
		require.Len(t, k.target.(*target).rails, 2)
		x := e.transferOf(1, whole(e.dst[spec.KV].Layout, 64*fencePages), ids(0, fencePages), ids(0, fencePages))
		require.True(t, k.grants.Allow(x.grant))
		k.source.Post(x.batch)
		begin := time.Now()
		ip("down")
		await(t, k.tsink.lost, "decode's loss")
		figure("lost_rail_seen_"+string(by), fmt.Sprintf("%.1f", time.Since(begin).Seconds()*1e3), "ms")
		await(t, k.ssink.lost, "prefill's loss")
		k.fence()
		set(e.dst[spec.KV].Bytes, reused)
		k.fenceSource()
		require.True(t, all(e.dst[spec.KV].Bytes, reused))

		k = e.link()
		require.Equal(t, []int{0}, k.target.(*target).rails)
		x = e.transferOf(2, whole(e.dst[spec.KV].Layout, 64*fencePages), ids(0, fencePages), ids(0, fencePages))
		k.run(x)
		e.check(x)
		k.end()
		ip("up")
		require.Eventually(t, func() bool { _, err := e.da.rails[1].up(); return err == nil }, patience, 5*time.Millisecond)
		k = e.link()
		require.Len(t, k.target.(*target).rails, 2)
		k.end()
	}
}
