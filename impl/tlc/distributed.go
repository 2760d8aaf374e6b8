package tlc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// ErrOpenNetwork says that TLC's distributed mode would be open to other machines.
var ErrOpenNetwork = errors.New("TLC's server listens on all addresses of this machine and lets anybody in who reaches them")

// ErrNotDistributed says that TLC's distributed mode cannot check a configuration.
var ErrNotDistributed = errors.New("not checked by TLC's distributed mode")

// Distributed runs the chosen configurations one after another by TLC's own distributed mode: one server and so many workers, processes of
// this machine. What that mode tells is less than what TLC tells alone: the exit code is 0 whatever it finds, a property that breaks has no
// name and only the last two states, the depth may be off by one, CHECK_DEADLOCK is not read, and properties of behaviours are passed
// over in silence. So states are compared, and whether something broke; configurations with a formula of their own and simulations are
// refused. Without open the machine must have no network but loopback. Errors: ErrOpenNetwork, ErrNotDistributed, ErrDiffers.
func (s *Specs) Distributed(ctx context.Context, o Options, workers int, open bool, out io.Writer) error {
	chosen, skipped, err := s.choose(o.Names, o.Long)
	if err != nil {
		return err
	}
	if !open {
		if err := loopbackOnly(); err != nil {
			return err
		}
	}
	for _, c := range chosen {
		if c.Spec != "" || c.Simulation() {
			return fmt.Errorf("%w: %s; it passes over properties of behaviours and makes no random runs. Name configurations of states and steps", ErrNotDistributed, c.Name)
		}
	}
	began, bad, states := time.Now(), 0, 0
	for _, c := range chosen {
		got, err := s.distribute(ctx, o, c, workers)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		diff := got.compareDistributed(c)
		if strings.Contains(got.Output, brokenMark) {
			got.Violated, got.Trace = "something", got.Seen
		}
		if len(diff) > 0 {
			bad++
		}
		states += got.Seen
		fmt.Fprintln(out, line(c, got, diff))
		if o.Show || len(diff) > 0 {
			fmt.Fprint(out, tail(got.Output, o.Show))
		}
	}
	fmt.Fprintf(out, "%d configurations, %d as expected, %d not, %d long ones left out; %d distinct states, %.0f s, %d workers\n",
		len(chosen), len(chosen)-bad, bad, skipped, states, time.Since(began).Seconds(), workers)
	if bad > 0 {
		return ErrDiffers
	}
	return nil
}

// loopbackOnly refuses a machine with a network that others can reach.
func loopbackOnly() error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0 {
			return fmt.Errorf("%w (%s is up); run it in a network of its own: unshare -rn sh -c 'ip link set lo up && kvfence spec check --distributed 2 NAME'; "+
				"or say --open-network", ErrOpenNetwork, i.Name)
		}
	}
	return nil
}

// brokenMark is what the server prints when something broke, whatever it is; its exit code is 0 then, too.
const brokenMark = "Error: The behavior up to this point is:"

// compareDistributed lists how got differs from what c expects, as far as the distributed mode tells.
func (got Outcome) compareDistributed(c *Configuration) []string {
	broken := strings.Contains(got.Output, brokenMark)
	switch {
	case got.Exit != 0:
		return []string{fmt.Sprintf("exit %d of the server", got.Exit)}
	case broken != (c.Expect.Violated != ""):
		return []string{fmt.Sprintf("expected %+v, found something broken: %t", c.Expect, broken)}
	case !broken && got.Seen != c.Expect.Distinct:
		return []string{fmt.Sprintf("expected %d states, found %d", c.Expect.Distinct, got.Seen)}
	}
	return nil
}

// distribute runs one configuration by a server and workers.
func (s *Specs) distribute(ctx context.Context, o Options, c *Configuration, workers int) (Outcome, error) {
	tmp, _, err := s.place(c)
	if err != nil {
		return Outcome{}, err
	}
	defer os.RemoveAll(tmp)
	ctx, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	began := time.Now()
	server := distributedJava(ctx, o.Tools, tmp, "tlc2.tool.distributed.TLCServer",
		"-deadlock", "-metadir", filepath.Join(tmp, "states"), "-config", configName, s.Modules[c.Module].Model)
	var said bytes.Buffer
	pipe, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		return Outcome{}, err
	}
	var group sync.WaitGroup
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "is ready (") {
			for i := range workers {
				group.Go(func() { work(ctx, o.Tools, filepath.Join(tmp, fmt.Sprintf("worker%d", i))) })
			}
		}
	}
	err = errors.Join(lines.Err(), exitOnly(server.Wait()))
	timedOut := ctx.Err() != nil
	cancel() // a worker that the server did not let go ends now
	group.Wait()
	if err != nil {
		return Outcome{}, err
	}
	got := parse(said.String(), c)
	got.Exit, got.Took = server.ProcessState.ExitCode(), time.Since(began)
	if timedOut {
		got.Exit = -1
	}
	return got, nil
}

// exitOnly is err unless it only says that a command did not exit with 0.
func exitOnly(err error) error {
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return nil
	}
	return err
}

// distributedJava is a java process of the distributed mode, with one thread and a name by which the others reach it.
func distributedJava(ctx context.Context, tools Tools, dir, class string, args ...string) *exec.Cmd {
	flags := append(javaFlags(dir), "-Djava.rmi.server.hostname=127.0.0.1", "-Dtlc2.tool.distributed.TLCWorker.threadCount=1", "-Xmx1g", "-cp", tools.Jar, class)
	cmd := exec.CommandContext(ctx, tools.Java, append(flags, args...)...)
	cmd.Dir = dir
	return cmd
}

// work runs one worker until the server lets it go. What it prints and how it ends is the server's matter: without any worker the run
// ends by its time limit.
func work(ctx context.Context, tools Tools, dir string) {
	if os.Mkdir(dir, 0o755) == nil {
		_ = distributedJava(ctx, tools, dir, "tlc2.tool.distributed.TLCWorker", "127.0.0.1").Run()
	}
}
