//go:build linux

package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// proc is a child process that is spoken to over its standard input and output. It ends with its input, with its context, and by
// the kernel's hand when this process dies (Pdeathsig, which holds for the thread that started it: that thread waits for it).
type proc struct {
	name string
	in   io.WriteCloser
	out  *bufio.Reader
	pid  int
	done chan error
}

// serial is a log that several processes write to.
type serial struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *serial) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}

// startProc runs a program.
func startProc(ctx context.Context, log io.Writer, name, path string, args ...string) (*proc, error) {
	c := exec.CommandContext(ctx, path, args...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true} // a Ctrl-C is ours to pass on
	c.Stderr = log
	c.WaitDelay = 5 * time.Second
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.Stdout = w
	p := &proc{name: name, in: in, out: bufio.NewReader(r), done: make(chan error, 1)}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			p.done <- c.Wait()
		}
		close(p.done)
	}()
	err = errors.Join(<-started, w.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s: %w", ErrBench, name, err), r.Close())
	}
	p.pid = c.Process.Pid
	return p, nil
}

// line sends s and reads one line of answer; with s == "" it only reads.
func (p *proc) line(s string) (string, error) {
	if s != "" {
		if _, err := io.WriteString(p.in, s+"\n"); err != nil {
			return "", p.failed(err)
		}
	}
	got, err := p.out.ReadString('\n')
	if err != nil {
		return "", p.failed(err)
	}
	return strings.TrimSpace(got), nil
}

// nanos sends a line and reads a number.
func (p *proc) nanos(s string) (int64, error) {
	got, err := p.line(s)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(got, 10, 64)
	if err != nil {
		return 0, p.failed(err)
	}
	return n, nil
}

// family is the process and its children.
func (p *proc) family() []int {
	pids := []int{p.pid}
	for _, f := range strings.Fields(oneFile(fmt.Sprintf("/proc/%d/task/%d/children", p.pid, p.pid))) {
		if n, err := strconv.Atoi(f); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

func (p *proc) failed(err error) error { return fmt.Errorf("%w: %s: %w", ErrBench, p.name, err) }

// tell sends one order to our own second process.
func (p *proc) tell(o order) error {
	b, err := json.Marshal(o)
	if err == nil {
		_, err = p.in.Write(append(b, '\n'))
	}
	if err != nil {
		return p.failed(err)
	}
	return nil
}

// hear reads one answer of it.
func (p *proc) hear() (a answer, err error) {
	b, err := p.out.ReadBytes('\n')
	if err != nil {
		return a, p.failed(err)
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, p.failed(err)
	}
	if a.Err != "" {
		return a, p.failed(errors.New(a.Err))
	}
	return a, nil
}

func (p *proc) ask(o order) (answer, error) {
	if err := p.tell(o); err != nil {
		return answer{}, err
	}
	return p.hear()
}

// close ends the process by its input and waits for it.
func (p *proc) close() error {
	err := p.in.Close()
	if errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE) {
		err = nil
	}
	if werr := <-p.done; werr != nil && !errors.Is(werr, context.Canceled) {
		err = errors.Join(err, p.failed(werr))
	}
	return err
}
