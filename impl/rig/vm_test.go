package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A kernel that is none is told apart from a job that failed.
func TestRun_MachineThatCannotBoot_IsRefused(t *testing.T) {
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("qemu-system-x86_64 is not installed")
	}
	dir := t.TempDir()
	bad := filepath.Join(dir, "vmlinuz")
	require.NoError(t, os.WriteFile(bad, []byte("no kernel"), 0o644))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := Machine{Kernel: bad, Initrd: bad}.Run(ctx, dir)
	require.ErrorIs(t, err, ErrRun)
}

// fakeMachine puts a shell script in QEMU's place; $JOB is the job's folder.
func fakeMachine(t *testing.T, script string) (job string) {
	bin, job := t.TempDir(), t.TempDir()
	text := fmt.Sprintf("#!/bin/sh\nJOB='%s'\n%s\n", job, script)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "qemu-system-x86_64"), []byte(text), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return job
}

func TestRun_StatusOfTheJob_IsReturned(t *testing.T) {
	job := fakeMachine(t, `echo booted; echo 3 > "$JOB/rc"`)
	status, err := Machine{}.Run(context.Background(), job)
	require.NoError(t, err)
	require.Equal(t, 3, status)
	console, err := os.ReadFile(filepath.Join(job, "console.log"))
	require.NoError(t, err)
	require.Equal(t, "booted\n", string(console))
}

func TestRun_NoStatus_IsRefused(t *testing.T) {
	for name, script := range map[string]string{"ended early": "exit 0", "no number": `echo yes > "$JOB/rc"`} {
		t.Run(name, func(t *testing.T) {
			_, err := Machine{}.Run(context.Background(), fakeMachine(t, script))
			require.ErrorIs(t, err, ErrRun)
		})
	}
}

func TestRun_StatusOfAnEarlierRun_DoesNotCount(t *testing.T) {
	job := fakeMachine(t, "exit 0")
	require.NoError(t, os.WriteFile(filepath.Join(job, "rc"), []byte("0\n"), 0o644))
	_, err := Machine{}.Run(context.Background(), job)
	require.ErrorIs(t, err, ErrRun)
}

// A machine past its limit is ended with all its processes.
func TestRun_Hang_IsEndedAndNothingIsLeft(t *testing.T) {
	job := fakeMachine(t, `sleep 300 & echo $! > "$JOB/child"; mv "$JOB/child" "$JOB/pid"; wait`)
	late := errors.New("late")
	ctx, cancel := context.WithCancelCause(context.Background())
	pid := make(chan int, 1)
	go func() {
		for {
			b, err := os.ReadFile(filepath.Join(job, "pid"))
			if err == nil {
				n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
				pid <- n
				cancel(late)
				return
			}
		}
	}()
	_, err := Machine{}.Run(ctx, job)
	require.ErrorIs(t, err, ErrRun)
	require.ErrorIs(t, err, late)
	child := <-pid
	require.Positive(t, child)
	require.Eventually(t, func() bool { return gone(child) }, 20*time.Second, time.Millisecond)
}

// gone is true for a process that is no more, or whose parent has not taken its status.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(b), ") ")
	return err != nil || strings.HasPrefix(state, "Z")
}

func TestWriteJob_Arguments_AreQuoted(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, WriteJob(dir, []Binary{{Name: "a.test", Args: []string{"-test.run", "A'B|$C"}, Env: []string{"X=1 2"}, Limit: time.Minute}}))
	b, err := os.ReadFile(filepath.Join(dir, "run.sh"))
	require.NoError(t, err)
	require.Contains(t, string(b), `env 'X=1 2' timeout -k 5 60 /tmp/a.test '-test.run' 'A'\''B|$C' > a.test.out`)
	require.NoError(t, exec.Command("sh", "-n", filepath.Join(dir, "run.sh")).Run())
}

// The statuses in a job: the first that failed counts, planted ones do not. The devices are left out here.
func TestWriteJob_Status_IsThatOfTheFirstThatFailed(t *testing.T) {
	dir := t.TempDir()
	bins := []Binary{{Name: "p", File: "sh.x", Args: []string{"-c", "exit 9"}, Planted: true}, {Name: "a", File: "sh.x", Args: []string{"-c", "exit 0"}},
		{Name: "b", File: "sh.x", Args: []string{"-c", "exit 4"}}, {Name: "c", File: "sh.x", Args: []string{"-c", "exit 5"}}}
	for i := range bins {
		bins[i].Limit = 10 * time.Second
	}
	require.NoError(t, WriteJob(dir, bins))
	b, err := os.ReadFile(filepath.Join(dir, "run.sh"))
	require.NoError(t, err)
	_, text, found := strings.Cut(string(b), script("devices.sh"))
	require.True(t, found)
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	text = strings.ReplaceAll(text, "/tmp/sh.x", sh)
	c := exec.Command("sh", "-c", text)
	c.Dir = dir
	err = c.Run()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 4, exit.ExitCode())
	for name, want := range map[string]string{"p": "9\n", "a": "0\n", "b": "4\n", "c": "5\n"} {
		rc, err := os.ReadFile(filepath.Join(dir, name+".rc"))
		require.NoError(t, err)
		require.Equal(t, want, string(rc), name)
	}
}
