// Package gpucheck is what is done when a GPU is at hand for a few minutes: the kernels against the reference, their bandwidth, the latency
// of a step's tag check, memory shared between two processes, guards on against off, and a page with what came of it. It builds nothing and needs
// no network. Each section is a process of its own with a limit, killed when it is over it. It knows the kernels and a driver, not the engine: a
// node's pools and the protocol over them are not part of it. Called by impl/cmd/gpucheck. Read next: section.go, report.go.
package gpucheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrCheck is wrapped where the check cannot run.
var ErrCheck = errors.New("GPU check")

// roleVariable makes a start of the binary a section, or the importing process of one.
const roleVariable = "KVFENCE_GPUCHECK_ROLE"

// Variables of the processes.
const (
	driverVariable = "KVFENCE_GPUCHECK_DRIVER"
	dryVariable    = "KVFENCE_GPUCHECK_DRY"
)

// Options of a whole check.
type Options struct {
	Driver    string        // library; "": the machine's
	Dry       bool          // small sizes, and the report says that it is no measurement
	Limit     time.Duration // of all sections together
	Only      []string      // sections; nil: all
	Sanitizer string        // compute-sanitizer; "": the one in PATH
	Out       io.Writer
}

// Run runs the sections one after the other and returns what each found. A section that fails, hangs or is killed is a result like others.
func Run(ctx context.Context, o Options) []Result {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Limit, fmt.Errorf("%w: over its limit of %v", ErrCheck, o.Limit))
	defer cancel()
	var out []Result
	for _, s := range sections() {
		if len(o.Only) > 0 && !strings.Contains(" "+strings.Join(o.Only, " ")+" ", " "+s.name+" ") {
			continue
		}
		r := o.section(ctx, s)
		out = append(out, r)
		verdict := "ok"
		switch {
		case len(r.Failed) > 0:
			verdict = "FAILED: " + r.Failed[0]
		case r.Skipped != "":
			verdict = "skipped: " + r.Skipped
		}
		fmt.Fprintf(o.Out, "%-10s %5.1f s, %d checks, %s\n", s.name, r.Seconds, r.Checks, verdict)
	}
	return out
}

// section runs one in a process that ends with its limit, whatever it is doing then.
func (o Options) section(ctx context.Context, s section) (r Result) {
	began := time.Now()
	defer func() { r.Section, r.Seconds = s.name, time.Since(began).Seconds() }()
	if ctx.Err() != nil {
		return Result{Skipped: "the check's time was over: " + context.Cause(ctx).Error()}
	}
	self, err := os.Executable()
	if err != nil {
		return Result{Failed: []string{err.Error()}}
	}
	args, role := []string{self}, s.name
	if s.run == nil {
		role = "kernels"
		tool := o.Sanitizer
		if tool == "" {
			if tool, err = exec.LookPath("compute-sanitizer"); err != nil {
				tool, err = exec.LookPath("/usr/local/cuda/bin/compute-sanitizer")
			}
			if err != nil {
				return Result{Skipped: "compute-sanitizer is not on this machine"}
			}
		}
		args = append([]string{tool, "--tool", s.name, "--error-exitcode", "9"}, args...)
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.share, fmt.Errorf("%w: %s is over its share of %v", ErrCheck, s.name, s.share))
	defer cancel()
	c := exec.CommandContext(limited, args[0], args[1:]...)
	c.Env = append(os.Environ(), roleVariable+"="+role, driverVariable+"="+o.Driver, dryVariable+"="+strconv.FormatBool(o.Dry))
	if deadline, ok := limited.Deadline(); ok {
		c.Env = append(c.Env, "KVFENCE_GPUCHECK_SECONDS="+strconv.Itoa(max(1, int(0.8*time.Until(deadline).Seconds()))))
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 2 * time.Second
	var said, wrong bytes.Buffer
	c.Stdout, c.Stderr = &said, &wrong
	err = c.Run()
	if limited.Err() != nil {
		err = context.Cause(limited)
	}
	return outcome(said.String(), tail(wrong.String()), err)
}

// outcome reads a section's last line that is a result; a sanitizer speaks before and after it.
func outcome(said, wrong string, err error) (r Result) {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	found := false
	for _, l := range lines {
		if strings.HasPrefix(l, "{") && json.Unmarshal([]byte(l), &r) == nil {
			found = true
		}
	}
	if err != nil {
		r.Failed = append(r.Failed, strings.TrimSpace(err.Error()+" "+wrong))
	} else if !found {
		r.Failed = append(r.Failed, strings.TrimSpace("the section said nothing "+wrong))
	}
	return r
}

func tail(s string) string { return s[max(0, len(s)-2000):] }

// Role runs what a section's process is for and reports whether this is one. The main function calls it first.
func Role(out io.Writer) (is bool, err error) {
	role := os.Getenv(roleVariable)
	if role == "" {
		return false, nil
	}
	library := os.Getenv(driverVariable)
	if role == "importer" {
		size, errS := strconv.ParseUint(os.Getenv("KVFENCE_GPUCHECK_SIZE"), 10, 64)
		pages, errP := strconv.ParseUint(os.Getenv("KVFENCE_GPUCHECK_PAGES"), 10, 32)
		if err := errors.Join(errS, errP); err != nil {
			return true, err
		}
		return true, json.NewEncoder(out).Encode(runImporter(library, size, uint32(pages)))
	}
	s, err := find(role)
	if err != nil {
		return true, err
	}
	seconds, err := strconv.Atoi(os.Getenv("KVFENCE_GPUCHECK_SECONDS"))
	if err != nil {
		return true, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	defer cancel()
	size := Full()
	if os.Getenv(dryVariable) == "true" {
		size = Dry()
	}
	var r Result
	b, err := open(library)
	if r.fail(err); err == nil {
		i := b.Info()
		r.Card = fmt.Sprintf("%s, sm_%d%d, driver interface %d.%d, images %s", i.Name, i.Major, i.Minor, b.Version()/1000, b.Version()%1000/10, b.imageOf())
		s.run(ctx, b, size, &r)
	}
	return true, json.NewEncoder(out).Encode(r)
}
