//go:build linux

package bench

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvfence/impl/transport/tcp"
)

// ErrOptions is wrapped by what is wrong with the options.
var ErrOptions = errors.New("bench options")

// ErrBench is wrapped by what went wrong in a measurement: a process, a link, or bytes that are not those that were sent.
var ErrBench = errors.New("bench failed")

// Shape is one kind of request.
type Shape struct {
	Page  int `json:"page_bytes"`
	Pages int `json:"pages"`
}

// Bytes of one request.
func (s Shape) Bytes() int { return s.Page * s.Pages }

func (s Shape) String() string {
	if s.Page >= 1<<20 {
		return fmt.Sprintf("%dMx%d", s.Page>>20, s.Pages)
	}
	return fmt.Sprintf("%dKx%d", s.Page>>10, s.Pages)
}

// Options of a run. The zero value is not usable; see Defaults.
type Options struct {
	Suites     []string
	Shapes     []Shape
	Repeats    int           // rounds at least
	MaxPairs   int           // rounds at most
	Width      float64       // half-width of each ratio's interval at which rounds end
	Bound      time.Duration // for the rounds of one shape of one suite; Repeats are made all the same
	PoolBytes  int           // of each pool
	Congestion string        // of all sockets that carry pages, theirs and ours
	Streams    int           // of our links; 0: what a node does without configuration
	Seed       uint64        // of page lists and of the order within a round
	Quick      bool          // a check that everything runs; its figures mean nothing
	Progress   io.Writer     // nil: none
	Version    string
}

// Defaults are those of the command.
func Defaults() Options {
	o := Options{Suites: Suites(), Repeats: 21, MaxPairs: 200, Width: 0.005, Bound: time.Minute, PoolBytes: 256 << 20, Congestion: "reno", Seed: 1}
	for _, page := range []int{4 << 10, 64 << 10, 256 << 10, 1 << 20} {
		for _, pages := range []int{1, 16, 256} {
			o.Shapes = append(o.Shapes, Shape{page, pages})
		}
	}
	return o
}

// Quicken makes o a smoke test: small pools, two shapes, two rounds.
func (o *Options) Quicken() {
	o.Quick, o.Repeats, o.MaxPairs, o.PoolBytes = true, 2, 2, 16<<20
	o.Shapes = []Shape{{4 << 10, 16}, {256 << 10, 16}}
}

// Suites are the names of all suites.
func Suites() []string { return []string{"tcp", "tls", "shm"} }

// ParseSuites reads names with commas between; "all" is all.
func ParseSuites(s string) ([]string, error) {
	if s == "all" {
		return Suites(), nil
	}
	list := strings.Split(s, ",")
	for _, n := range list {
		if !slices.Contains(Suites(), n) {
			return nil, fmt.Errorf("%w: no suite %q; there are %s and all", ErrOptions, n, strings.Join(Suites(), ", "))
		}
	}
	return list, nil
}

// ParseShapes reads shapes like 256Kx16 with commas between.
func ParseShapes(s string) (out []Shape, err error) {
	for f := range strings.SplitSeq(s, ",") {
		size, count, ok := strings.Cut(strings.ToUpper(strings.TrimSpace(f)), "X")
		unit := 1 << 10
		digits, isM := strings.CutSuffix(size, "M")
		if isM {
			unit = 1 << 20
		} else {
			digits = strings.TrimSuffix(size, "K")
		}
		n, err1 := strconv.Atoi(digits)
		k, err2 := strconv.Atoi(count)
		if !ok || err1 != nil || err2 != nil {
			return nil, fmt.Errorf("%w: shape %q is not like 256Kx16", ErrOptions, f)
		}
		out = append(out, Shape{n * unit, k})
	}
	return out, nil
}

// validate checks o.
func (o Options) validate() error {
	switch {
	case o.Repeats < 1 || o.MaxPairs < o.Repeats:
		return fmt.Errorf("%w: %d rounds at least, %d at most", ErrOptions, o.Repeats, o.MaxPairs)
	case !(o.Width > 0 && o.Width < 1): // not a number is neither
		return fmt.Errorf("%w: width %v must lie between 0 and 1", ErrOptions, o.Width)
	case o.Bound <= 0:
		return fmt.Errorf("%w: bound %v must be positive", ErrOptions, o.Bound)
	case o.Streams < 0 || o.Streams > tcp.MaxStreams:
		return fmt.Errorf("%w: %d streams, at most %d", ErrOptions, o.Streams, tcp.MaxStreams)
	case len(o.Shapes) == 0 || len(o.Suites) == 0:
		return fmt.Errorf("%w: nothing to measure", ErrOptions)
	}
	if err := tcp.CheckCongestion(o.Congestion); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	for _, s := range o.Shapes {
		if s.Page < 4096 || s.Page > 1<<20 || s.Page%4096 != 0 || s.Pages < 1 || s.Pages > maxPages {
			return fmt.Errorf("%w: shape %s: pages of 4 KiB to 1 MiB in steps of 4 KiB, 1 to %d of them", ErrOptions, s, maxPages)
		}
		if s.Bytes() > o.PoolBytes {
			return fmt.Errorf("%w: shape %s does not fit a pool of %d MiB", ErrOptions, s, o.PoolBytes>>20)
		}
	}
	return nil
}

// maxPages is one seal of a prefill rank, so that one release begins a whole request.
const maxPages = 256
