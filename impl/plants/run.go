package plants

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"syscall"

	"kvfence/impl/sim"
	"kvfence/impl/transport/mem"
	"kvfence/model/follow"
	"kvfence/spec"
)

// Job is seeds of one mix, to be run in a process in which some plants are on.
type Job struct {
	Mix     string
	From    uint64
	Count   int
	Seconds float64 // of processor time: no further seed is begun after that; 0: all are run
	Want    []string
	Follow  bool // every step is held to the specification (model/follow)
	Trace   bool // everything that happens goes to standard error
}

// Catch is the first run of a job that was refused. Seed 0: none was.
type Catch struct {
	Seed     uint64
	Steps    int     // of all runs up to and with it
	Seeds    int     // run
	Seconds  float64 // of processor time, in all
	Property string
	Text     string
}

// spent is the processor time of this process, in seconds: other work on the machine does not count.
func spent() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// Run runs the seeds of a job until one is refused for a property that is wanted, or, if none is wanted, for any. What is refused for
// another reason is returned only if nothing else is found.
func (j Job) Run() (Catch, error) {
	mix, err := FindMix(j.Mix)
	if err != nil {
		return Catch{}, err
	}
	var other Catch
	var c Catch
	began := spent()
	for seed := j.From; seed < j.From+uint64(j.Count); seed++ {
		if j.Seconds > 0 && spent()-began > j.Seconds {
			break
		}
		steps, err := one(seed, mix.Storm, j.change(mix.Change))
		c.Steps += steps
		c.Seeds++
		c.Seconds = spent() - began
		if err == nil {
			continue
		}
		c.Seed, c.Property, c.Text = seed, Property(err), firstLine(err)
		if len(j.Want) == 0 || matches(j.Want, c.Property) {
			return c, nil
		}
		if other.Seed == 0 {
			other = c
		}
		c.Seed = 0
	}
	if other.Seed != 0 {
		return other, nil
	}
	c.Property, c.Text = "", ""
	return c, nil
}

// ErrPanic is a run that ended in a panic of the engine.
var ErrPanic = errors.New("panic")

// ErrFidelity is a run in which a request was told what cannot have happened in it.
var ErrFidelity = errors.New("a request was told what did not happen")

// change is the change of a mix with what the job has beside it.
func (j Job) change(of func(*sim.Config)) func(*sim.Config) {
	return func(c *sim.Config) {
		c.Verbs = mem.Verbs{} // the recorded runs are on the fabric whose placers check
		if of != nil {
			of(c)
		}
		if j.Follow {
			f := follow.New(true)
			c.Line = func(l *spec.TraceLine) error { return f.Step(l) }
		}
		if j.Trace {
			c.Trace = func(line string) { fmt.Fprintln(os.Stderr, line) }
		}
	}
}

// one runs one seed.
func one(seed uint64, s *storm, change func(*sim.Config)) (steps int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v %s", ErrPanic, p, firstFrame(string(debug.Stack())))
		}
	}()
	if s != nil {
		return s.run(seed, change)
	}
	out, err := sim.Run(seed, change)
	return out.Steps, err
}

var (
	stops = regexp.MustCompile(`I\d+`)
	frame = regexp.MustCompile(`(impl/(core|pages|transport)|changed)/[^\s]*\.go:\d+`)
)

func firstFrame(stack string) string { return frame.FindString(stack) }

// InModel is the property of a step that is none of the specification's.
const InModel = "model"

// Property names what a run was refused for: an invariant by its number, whoever saw it; "answer" and "pages" for what must come in the
// end; "fidelity" for a request that was told what did not happen; else the name of the oracle.
func Property(err error) string {
	text := err.Error()
	oracle := sim.OracleOf(err)
	switch {
	case errors.Is(err, ErrPanic):
		return "panic"
	case errors.Is(err, ErrFidelity):
		return "fidelity"
	case oracle == sim.Liveness && strings.Contains(text, "has no answer"):
		return "answer"
	case oracle == sim.Liveness:
		return "pages"
	case oracle == sim.Followed:
		return InModel
	case oracle == sim.Stopped:
		return stops.FindString(text)
	}
	return string(oracle)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func matches(want []string, property string) bool {
	for _, w := range want {
		if w == property {
			return true
		}
	}
	return false
}
