package plants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"kvfence/impl/overlay"
)

// Lab is one build of the runner with all plants in it. Safe for concurrent use.
type Lab struct {
	All  []Plant
	root string
	dir  string
	path string // of the overlay
	sum  string // over the changed files
	bin  string
}

// Limit is the processor time within which a plant is to be caught, in seconds, on one core.
const Limit = 60

// runner is the command that runs a job when it is given one; the same as the one that builds it.
const runner = "./impl/cmd/plants"

// Open checks the plants and builds the runner with all of them, in the folder build. What was built of the same sources before is used again.
func Open(ctx context.Context, root, build string, all []Plant) (*Lab, error) {
	if err := Check(all); err != nil {
		return nil, err
	}
	l := &Lab{All: all, root: root, dir: build}
	var err error
	if l.path, l.sum, err = WriteOverlay(root, filepath.Join(l.dir, "changed"), all); err != nil {
		return nil, err
	}
	l.bin = filepath.Join(l.dir, "plants")
	return l, l.build(ctx, l.bin, "build", runner)
}

// build lets the go command make a binary of the changed sources; its own cache knows whether there is anything to do.
func (l *Lab) build(ctx context.Context, bin string, what ...string) error {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return err
	}
	n := len(what) - 1
	args := append(slices.Clone(what[:n]), "-tags", Tag, "-overlay", l.path, "-o", bin, what[n])
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir, c.Env = l.root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: build of %s: %w\n%s", ErrPlant, what[n], err, out)
	}
	return nil
}

// environment turns plants on.
func environment(on []int) []string {
	text := make([]string, len(on))
	for i, n := range on {
		text[i] = strconv.Itoa(n)
	}
	return append(os.Environ(), Environment+"="+strings.Join(text, " "), "GOMAXPROCS=1", "GOTRACEBACK=none")
}

// Do runs jobs in a process of its own with some plants on. A job that a process could not end (an endless loop, no memory left) is
// refused with the property "answer": nothing comes of it.
func (l *Lab) Do(ctx context.Context, on []int, jobs []Job) ([]Catch, error) {
	b, err := json.Marshal(jobs)
	if err != nil {
		return nil, err
	}
	seconds := 0.0
	for _, j := range jobs {
		seconds += j.Seconds
	}
	c := overlay.Limited(ctx, int(seconds)+30, l.bin, "-jobs")
	c.Env, c.Stdin = environment(on), bytes.NewReader(b)
	var out, bad bytes.Buffer
	c.Stdout, c.Stderr = &out, &bad
	err = c.Run()
	var catches []Catch
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &catches)
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &exit) && len(jobs) == 1:
		return []Catch{{Seed: jobs[0].From, Seeds: 1, Seconds: seconds, Property: "answer", Text: "its process ended: " + firstOf(bad.String())}}, nil
	case err == nil && len(catches) != len(jobs):
		return nil, fmt.Errorf("%w: %d jobs, %d came back", ErrPlant, len(jobs), len(catches))
	}
	return catches, err
}

func firstOf(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// Search looks for the first seed of a plant's mix that is refused with it, for a property that it names, and passes without. more is on
// besides. followed: the specification is the judge, and it is to be the one that refuses. Seed 0: none within the limit.
func (l *Lab) Search(ctx context.Context, n int, seconds float64, followed bool, more ...string) (Catch, error) {
	p := l.All[n]
	if followed {
		p.Want = []string{InModel}
	}
	followed = followed || p.Model
	on, err := Numbers(l.All, append([]string{p.Name}, more...)...)
	if err != nil {
		return Catch{}, err
	}
	aids, err := Numbers(l.All, l.aidsOf(on)...)
	if err != nil {
		return Catch{}, err
	}
	total := Catch{}
	for from := uint64(1); total.Seconds < seconds; {
		got, err := l.Do(ctx, on, []Job{{Mix: p.Mix, From: from, Count: mostSeeds, Seconds: seconds - total.Seconds, Want: p.Want, Follow: followed}})
		if err != nil {
			return Catch{}, err
		}
		total.Seeds, total.Steps, total.Seconds = total.Seeds+got[0].Seeds, total.Steps+got[0].Steps, total.Seconds+got[0].Seconds
		if got[0].Seed == 0 || !matches(p.Want, got[0].Property) {
			total.Seed, total.Property, total.Text = got[0].Seed, got[0].Property, got[0].Text
			return total, nil
		}
		off, err := l.Do(ctx, aids, []Job{{Mix: p.Mix, From: got[0].Seed, Count: 1, Follow: followed}})
		if err != nil {
			return Catch{}, err
		}
		if off[0].Seed == 0 {
			total.Seed, total.Property, total.Text = got[0].Seed, got[0].Property, got[0].Text
			return total, nil
		}
		from = got[0].Seed + 1 // refused without it, too: that is no plant's doing
	}
	return total, nil
}

// mostSeeds bounds a job whose time does not.
const mostSeeds = 1_000_000

// aidsOf are the names of the aids among plants.
func (l *Lab) aidsOf(on []int) (names []string) {
	for _, n := range on {
		if l.All[n].Aid() {
			names = append(names, l.All[n].Name)
		}
	}
	return names
}

// each calls f for every number, several at a time, and joins what goes wrong.
func each(ctx context.Context, numbers []int, jobs int, f func(n int) error) error {
	var wait sync.WaitGroup
	var mu sync.Mutex
	var bad []error
	next := make(chan int)
	for range max(jobs, 1) {
		wait.Go(func() {
			for n := range next {
				if err := f(n); err != nil {
					mu.Lock()
					bad = append(bad, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, n := range numbers {
		if ctx.Err() != nil {
			break
		}
		next <- n
	}
	close(next)
	wait.Wait()
	return errors.Join(append(bad, ctx.Err())...)
}
