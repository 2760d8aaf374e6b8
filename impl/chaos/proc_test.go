//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proc is one process of the cluster, started again at the same address after it was killed.
type proc struct {
	t    *testing.T
	name string
	argv []string
	logs string

	mu      sync.Mutex
	cmd     *exec.Cmd
	exited  chan struct{}
	life    int
	wanted  bool     // the test ends the present life
	crashes []string // lives that ended although nobody here wanted it
}

func newProc(t *testing.T, dir, name string, argv ...string) *proc {
	return &proc{t: t, name: name, argv: argv, logs: filepath.Join(dir, name+".log")}
}

// replace changes an argument that is known; for processes that are not started yet.
func (p *proc) replace(old, new string) {
	at := slices.Index(p.argv, old)
	require.GreaterOrEqual(p.t, at, 0, "%s has no argument %s", p.name, old)
	p.argv[at] = new
}

// start begins a new life; its output goes to one log for all lives.
func (p *proc) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, err := os.OpenFile(p.logs, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(p.t, err)
	defer f.Close()
	p.life++
	fmt.Fprintf(f, "--- life %d\n", p.life)
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Stdout, cmd.Stderr = f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(p.t, cmd.Start(), p.name)
	done := make(chan struct{})
	p.cmd, p.exited, p.wanted = cmd, done, false
	life := p.life
	go func() {
		defer close(done)
		_ = cmd.Wait() // its state says the same
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.wanted {
			p.crashes = append(p.crashes, fmt.Sprintf("%s, life %d: %s", p.name, life, cmd.ProcessState))
		}
	}()
}

// signal sends a signal to the process of the present life.
func (p *proc) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s)
	}
}

// crashed lists the lives that ended although nobody here wanted it.
func (p *proc) crashed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.crashes)
}

// drain asks the process to drain and waits for its end.
func (p *proc) drain(t *testing.T, within time.Duration) {
	p.mu.Lock()
	done := p.exited
	p.wanted = true
	p.mu.Unlock()
	p.signal(syscall.SIGTERM)
	select {
	case <-done:
	case <-time.After(within):
		require.FailNow(t, p.name+" does not end")
	}
}

// lifeNumber counts the starts.
func (p *proc) lifeNumber() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}

// kill ends the present life and waits for its end.
func (p *proc) kill() {
	p.mu.Lock()
	cmd, done := p.cmd, p.exited
	p.wanted = true
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Kill()
	<-done
}

// pause stops the process for d and resumes it.
func (p *proc) pause(ctx context.Context, d time.Duration) {
	p.signal(syscall.SIGSTOP)
	defer p.signal(syscall.SIGCONT)
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// alive reports whether the present life still runs.
func (p *proc) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// tail is the end of the log, for failures.
func (p *proc) tail(n int) string {
	b, err := os.ReadFile(p.logs)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-n):])
}
