//go:build linux

package shm

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

func job(id uint64, c ...transport.Copy) transport.CopyJob {
	return transport.CopyJob{ID: id, Lease: 11, Digests: true, Copies: c}
}

// A copy paused half-way, fence, the pages handed to another request, the copy resumed: not one byte lands. (The page is handed
// on when Fenced was reported, and Fenced is not reported while the copy stands half-way.)
func TestFence_CopyPausedHalfWay_NotOneByteLands(t *testing.T) {
	for name, at := range map[string]point{"half-way": beforeStep, "before the source tag": afterBytes, "before the destination tag": beforeTag} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			c := newChild(t)
			c.dial(g)
			first := g.seal(spec.KV, 1, 11, 0, spec.GrantedPage{Page: 4, Gen: 3})
			second := g.seal(spec.KV, 2, 11, 1, spec.GrantedPage{Page: 5, Gen: 3})
			count := 1
			if at == beforeStep {
				count = 3
			}
			c.done(command{Do: "pause", Point: at, Count: count})
			c.done(command{Do: "copy", Job: job(1, first, second)})
			require.Equal(t, "paused", c.next().Is)
			c.done(command{Do: "copy", Job: job(2, second)})
			c.done(command{Do: "fence"})
			half := c.do(command{Do: "page", Page: 4})
			require.Equal(t, "page", half.Is)
			require.Zero(t, half.Seen, "fenced while a copy stands half-way")
			if at == beforeStep {
				require.True(t, string(half.Page[:pageSize/2]) == string(g.pools[spec.KV].Pool.Page(1)[:pageSize/2]))
				require.Equal(t, make([]byte, pageSize/2), half.Page[pageSize/2:])
			}

			c.done(command{Do: "resume"})
			for id := range uint64(2) {
				e := c.next()
				require.Equal(t, "copied", e.Is)
				require.Equal(t, id+1, e.Result.Job)
				require.True(t, e.Fenced, e.Err)
			}
			require.Equal(t, "fenced", c.next().Is)
			for _, page := range []spec.PageID{4, 5} {
				c.done(command{Do: "handover", Page: page})
			}
			c.done(command{Do: "copy", Job: job(3, first, second)})
			require.True(t, c.next().Fenced)
			for _, page := range []spec.PageID{4, 5} {
				e := c.do(command{Do: "page", Page: page})
				require.True(t, string(pattern(pageSize, 999)) == string(e.Page), "a byte landed")
				require.Equal(t, spec.TagGood, device.CheckTag(e.Slot, nextOwner))
				require.Equal(t, 1, e.Seen)
			}
		})
	}
}

// The test above can fail: without waiting for Fenced the paused copy does land in the next owner's page.
func TestFence_NotWaitedFor_TheCopyLandsInTheNextOwnersPage(t *testing.T) {
	g := newRig(t)
	c := newChild(t)
	c.dial(g)
	c.done(command{Do: "pause", Point: beforeTag, Count: 1})
	c.done(command{Do: "copy", Job: job(1, g.seal(spec.KV, 1, 11, 0, spec.GrantedPage{Page: 4, Gen: 3}))})
	require.Equal(t, "paused", c.next().Is)
	c.done(command{Do: "fence"})
	c.done(command{Do: "handover", Page: 4})
	c.done(command{Do: "resume"})
	require.Equal(t, "copied", c.next().Is)
	require.Equal(t, "fenced", c.next().Is)
	require.NotEqual(t, spec.TagGood, device.CheckTag(c.do(command{Do: "page", Page: 4}).Slot, nextOwner))
}

// A reader sleeps in the middle of a copy, longer than its source lives: the reuse is found by the source tag, and no
// destination tag is written.
func TestFence_ReaderStoppedHalfWay_SourceReusedIsFound(t *testing.T) {
	reuse := map[string]struct {
		do    func(p *device.Pool)
		state spec.TagState
	}{
		"handed out": {func(p *device.Pool) { p.VoidTags(1); copy(p.Page(1), pattern(pageSize, 77)) }, spec.TagVoid},
		"filled by another": {func(p *device.Pool) {
			p.VoidTags(1)
			copy(p.Page(1), pattern(pageSize, 77))
			device.PutTag(p.Slot(1, 0), spec.Tag{Lease: 12, Gen: 6, Used: pageSize})
		}, spec.TagForeign},
		"same lease, later generation": {func(p *device.Pool) { device.PutTag(p.Slot(1, 0), spec.Tag{Lease: 11, Gen: 6, Used: pageSize}) }, spec.TagForeign},
	}
	for name, k := range reuse {
		for _, at := range []point{beforeStep, afterBytes} {
			t.Run(name, func(t *testing.T) {
				g := newRig(t)
				c := newChild(t)
				c.dial(g)
				count := 1
				if at == beforeStep {
					count = 3
				}
				j := job(1, g.seal(spec.KV, 1, 11, 0, spec.GrantedPage{Page: 4, Gen: 3}))
				j.Digests = false // the tag alone finds it
				c.done(command{Do: "stopself", Point: at, Count: count})
				c.send(command{Do: "copy", Job: j})
				require.Equal(t, "paused", c.next().Is)
				c.stopped()
				none(t, g.sink.ended, "a stopped process has not ended")
				k.do(g.pools[spec.KV].Pool)
				c.signal(syscall.SIGCONT)
				require.Equal(t, "done", c.answer().Is)
				e := c.next()
				require.Equal(t, "copied", e.Is)
				require.Empty(t, e.Err)
				require.Equal(t, []transport.BadCopy{{Component: spec.KV, State: k.state}}, e.Result.Bad)
				require.Equal(t, make([]byte, spec.TagBytes), c.do(command{Do: "page", Page: 4}).Slot)
				none(t, g.sink.ended, "a stopped process has not ended")
				none(t, g.sink.lost, "nor is its link lost")
			})
		}
	}
}

func TestExporter_ReaderKilled_EndsOnce(t *testing.T) {
	g := newRig(t)
	c := newChild(t)
	c.dial(g)
	c.done(command{Do: "pause", Point: beforeStep, Count: 2})
	c.done(command{Do: "copy", Job: job(1, g.seal(spec.KV, 1, 11, 0, spec.GrantedPage{Page: 4, Gen: 3}))})
	require.Equal(t, "paused", c.next().Is)
	none(t, g.sink.ended, "it lives")
	c.signal(syscall.SIGKILL)
	<-g.sink.ended
	require.NoError(t, g.e.Close())
	none(t, g.sink.ended, "ended twice")
}

// A stopped process still maps the pool: nothing is reported until it has ended.
func TestExporter_ReaderStoppedThenKilled_EndsWhenKilled(t *testing.T) {
	g := newRig(t)
	c := newChild(t)
	c.dial(g)
	c.signal(syscall.SIGSTOP)
	c.stopped()
	g.x.Shut() // prefill's own end proves nothing
	none(t, g.sink.ended, "stopped is not ended")
	c.signal(syscall.SIGKILL)
	<-g.sink.ended
	none(t, g.sink.lost, "lost after its end, or though this end shut it")
}

func TestExporter_SocketLost_ProvesNothing(t *testing.T) {
	g := newRig(t)
	c := newChild(t)
	c.dial(g)
	c.done(command{Do: "pause", Point: beforeStep, Count: 3})
	c.done(command{Do: "copy", Job: job(1, g.seal(spec.KV, 1, 11, 0, spec.GrantedPage{Page: 4, Gen: 3}))})
	require.Equal(t, "paused", c.next().Is)
	c.done(command{Do: "drop"})
	require.ErrorIs(t, <-g.sink.lost, transport.ErrStream)
	none(t, g.sink.ended, "the copy still runs")
	c.done(command{Do: "resume"})
	e := c.next()
	require.Equal(t, "copied", e.Is)
	require.Empty(t, e.Err, "the copy went on without the socket")
	none(t, g.sink.ended, "the process still lives")
	c.signal(syscall.SIGKILL)
	<-g.sink.ended
}

// The exporter's process goes away: what the reader has mapped stays, the loss is reported, and the reader can be fenced alone.
func TestReader_ExporterGone_LostThenFencedAlone(t *testing.T) {
	g := newRig(t)
	c := newChild(t)
	c.dial(g)
	require.NoError(t, g.e.Close())
	require.Equal(t, "lost", c.next().Is)
	c.done(command{Do: "copy", Job: job(1, g.seal(spec.KV, 1, 11, 0, spec.GrantedPage{Page: 4, Gen: 3}))})
	require.NotEmpty(t, c.next().Err)
	c.done(command{Do: "fence"})
	require.Equal(t, "fenced", c.next().Is)
}

// A process of another user: first kept out by the socket's mode, then, with the mode opened, by its user id.
func TestExporter_ProcessOfAnotherUser_IsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to start a process of another user")
	}
	dir, err := os.MkdirTemp("", "kvshm")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o755))
	g := newRig(t, func(c *ExporterConfig) { c.Path = filepath.Join(dir, "s") })
	bin, err := os.Open(os.Args[0])
	require.NoError(t, err)
	defer bin.Close()
	c := newChild(t, func(cmd *exec.Cmd) {
		cmd.Path = "/proc/self/fd/3" // the directory of test binaries is closed to others
		cmd.ExtraFiles = []*os.File{bin}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		cmd.Dir = "/"
	})
	e := c.do(command{Do: "dial", Address: g.e.Address(), Epoch: 1})
	require.Contains(t, e.Err, "permission denied")
	require.NoError(t, os.Chmod(g.e.Address(), 0o666))
	e = c.do(command{Do: "dial", Address: g.e.Address(), Epoch: 1})
	require.NotEmpty(t, e.Err)
	require.ErrorIs(t, <-g.refused, ErrPeer)
	none(t, g.sink.opened, "opened")
}

// Killing the process closes its socket, too: whichever is seen first, no loss is reported once the end was.
func TestExport_EndReported_NoLossFollows(t *testing.T) {
	g := newRig(t)
	g.x.call(false, func(s transport.ExporterSink) { s.Lost(ErrSource) })
	require.ErrorIs(t, <-g.sink.lost, ErrSource)
	g.x.call(true, func(s transport.ExporterSink) { s.ReaderEnded() })
	g.x.call(false, func(s transport.ExporterSink) { s.Lost(ErrSource) })
	g.x.call(true, func(s transport.ExporterSink) { s.ReaderEnded() })
	<-g.sink.ended
	none(t, g.sink.lost, "lost after its end")
	none(t, g.sink.ended, "ended twice")
}
