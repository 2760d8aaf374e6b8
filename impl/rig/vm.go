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
	"time"
)

// ErrRun says that the machine did not come to the end of its job: it did not boot, hung, or was stopped by its limit.
var ErrRun = errors.New("the rig did not finish its job")

// Run boots the machine with job as its folder, runs job/run.sh there, and returns its exit status. The console is kept in
// job/console.log. ctx is the limit of all of it; nothing of the machine is left when Run returns.
func (m Machine) Run(ctx context.Context, job string) (status int, err error) {
	job, err = filepath.Abs(job)
	if err != nil {
		return 0, err
	}
	if err := os.RemoveAll(filepath.Join(job, "rc")); err != nil {
		return 0, err
	}
	console, err := os.Create(filepath.Join(job, "console.log"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, console.Close()) }()
	// Software emulation on purpose: what virtualization a test machine has, if any, is of many kinds.
	c := exec.CommandContext(ctx, "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "2048",
		"-kernel", m.Kernel, "-initrd", m.Initrd, "-append", "console=ttyS0 panic=-1 quiet mitigations=off tsc=reliable",
		"-nodefaults", "-nographic", "-no-reboot", "-serial", "stdio", "-nic", "none",
		"-fsdev", "local,id=r,path=/,security_model=none,readonly=on,multidevs=remap", "-device", "virtio-9p-pci,fsdev=r,mount_tag=hostroot",
		"-fsdev", "local,id=j,path="+strings.ReplaceAll(job, ",", ",,")+",security_model=none", "-device", "virtio-9p-pci,fsdev=j,mount_tag=job")
	c.Stdout, c.Stderr = console, console
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 5 * time.Second
	run := c.Run()
	if ctx.Err() != nil {
		return 0, fmt.Errorf("%w: %w", ErrRun, context.Cause(ctx))
	}
	rc, err := os.ReadFile(filepath.Join(job, "rc"))
	if err != nil {
		return 0, fmt.Errorf("%w: no exit status was written (qemu: %w)", ErrRun, errors.Join(run, err))
	}
	if status, err = strconv.Atoi(strings.TrimSpace(string(rc))); err != nil {
		return 0, fmt.Errorf("%w: exit status %q", ErrRun, rc)
	}
	return status, nil
}
