//go:build linux

package shm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// The reader in a process of its own: this test binary, started again. It obeys one JSON command a line and says one event a line.

const childEnv = "KVFENCE_TEST_SHM_READER"

type command struct {
	Do      string // dial, copy, pause, resume, fence, handover, page, drop, stopself
	Address string
	Epoch   spec.Epoch
	Job     transport.CopyJob
	Point   point
	Count   int // the how manieth pass of Point
	Page    spec.PageID
	Stream  uint64
}

type event struct {
	Is     string // dialed, copied, lost, fenced, paused, done, page
	Err    string
	Fenced bool // the error is ErrFenced
	Result transport.CopyResult
	Page   []byte
	Slot   []byte
	Seen   int // fenced events so far
}

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		childMain()
		return
	}
	os.Exit(m.Run())
}

// childState is the reader's process.
type childState struct {
	mu     sync.Mutex
	out    *json.Encoder
	mem    device.Memory
	r      *Reader
	point  point
	count  int // passes left until it pauses; 0: never
	self   bool
	resume chan struct{}
	fences int
}

func (c *childState) say(e event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.Seen = c.fences
	_ = c.out.Encode(e)
}

func (c *childState) Copied(r transport.CopyResult) {
	e := event{Is: "copied", Result: r, Fenced: errors.Is(r.Err, transport.ErrFenced)}
	if r.Err != nil {
		e.Err, e.Result.Err = r.Err.Error(), nil
	}
	c.say(e)
}
func (c *childState) Lost(err error) { c.say(event{Is: "lost", Err: err.Error()}) }
func (c *childState) Fenced() {
	c.mu.Lock()
	c.fences++
	c.mu.Unlock()
	c.say(event{Is: "fenced"})
}

func (c *childState) hook(p point) {
	c.mu.Lock()
	hit := p == c.point && c.count == 1
	if p == c.point && c.count > 0 {
		c.count--
	}
	self := c.self
	c.mu.Unlock()
	if !hit {
		return
	}
	c.say(event{Is: "paused"})
	if self {
		// To this thread, so that it cannot run on; it takes the whole process with it, in the middle of a copy.
		runtime.LockOSThread()
		_ = unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP)
		runtime.UnlockOSThread()
		return
	}
	<-c.resume
}

func childMain() {
	c := &childState{out: json.NewEncoder(os.Stdout), mem: destination(), resume: make(chan struct{})}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var k command
		if err := json.Unmarshal(in.Bytes(), &k); err != nil {
			os.Exit(2)
		}
		c.obey(k)
	}
}

func (c *childState) obey(k command) {
	switch k.Do {
	case "dial":
		r, err := Dial(context.Background(), ReaderConfig{Address: k.Address, Link: testLink(k.Epoch), Source: layouts(), Memory: c.mem, Sink: c, StreamBytes: k.Stream, hook: c.hook})
		e := event{Is: "dialed"}
		if err != nil {
			e.Err = err.Error()
		}
		c.r = r
		c.say(e)
		return
	case "copy":
		c.r.Copy(k.Job)
	case "pause":
		c.mu.Lock()
		c.point, c.count = k.Point, k.Count
		c.mu.Unlock()
	case "stopself":
		c.mu.Lock()
		c.point, c.count, c.self = k.Point, k.Count, true
		c.mu.Unlock()
	case "resume":
		c.resume <- struct{}{}
	case "fence":
		c.r.Fence()
	case "handover": // the page goes to another request, which fills it
		p := c.mem[spec.KV]
		p.VoidTags(k.Page)
		copy(p.Page(k.Page), pattern(pageSize, 999))
		device.PutTag(p.Slot(k.Page, 0), nextOwner)
	case "page":
		p := c.mem[spec.KV]
		c.say(event{Is: "page", Page: append([]byte(nil), p.Page(k.Page)...), Slot: append([]byte(nil), p.Slot(k.Page, 0)...)})
		return
	case "drop":
		_ = c.r.conn.Close()
	}
	c.say(event{Is: "done"})
}

// nextOwner is the tag of the request that gets a page after its fence.
var nextOwner = spec.Tag{Lease: 500, Gen: 50, Used: pageSize}

// child is the parent's view of it.
type child struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      *json.Encoder
	answers chan event // to commands
	events  chan event // of the reader
}

func newChild(t *testing.T, change ...func(*exec.Cmd)) *child {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Stderr = os.Stderr
	for _, f := range change {
		f(cmd)
	}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c := &child{t, cmd, json.NewEncoder(in), make(chan event, 64), make(chan event, 64)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(c.events)
		defer close(c.answers)
		for d := json.NewDecoder(out); ; {
			var e event
			if d.Decode(&e) != nil {
				return
			}
			switch e.Is {
			case "done", "page", "dialed":
				c.answers <- e
			default:
				c.events <- e
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL) // may have ended
		<-read
		_ = cmd.Wait() // says how it was killed
		_ = in.Close()
	})
	return c
}

// do sends a command and waits for its answer.
func (c *child) do(k command) event {
	c.t.Helper()
	c.send(k)
	return c.answer()
}

// send only sends: the process may be stopped before it can answer.
func (c *child) send(k command) {
	c.t.Helper()
	require.NoError(c.t, c.in.Encode(k))
}

func (c *child) answer() event {
	c.t.Helper()
	e, open := <-c.answers
	require.True(c.t, open, "reader's process has ended")
	return e
}

// next waits for the reader's next event.
func (c *child) next() event {
	c.t.Helper()
	e, open := <-c.events
	require.True(c.t, open, "reader's process has ended")
	return e
}

func (c *child) done(k command) {
	c.t.Helper()
	require.Equal(c.t, "done", c.do(k).Is, k.Do)
}

func (c *child) dial(g *rig) {
	c.t.Helper()
	e := c.do(command{Do: "dial", Address: g.e.Address(), Epoch: 1})
	require.Equal(c.t, "dialed", e.Is)
	require.Empty(c.t, e.Err)
	<-g.sink.opened
}

// stopped waits until the process is stopped by a signal.
func (c *child) stopped() {
	c.t.Helper()
	var info unix.Siginfo
	require.NoError(c.t, unix.Waitid(unix.P_PID, c.cmd.Process.Pid, &info, unix.WSTOPPED, nil))
}

func (c *child) signal(s syscall.Signal) { require.NoError(c.t, c.cmd.Process.Signal(s)) }
