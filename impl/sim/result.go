package sim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kvfence/spec"
)

// Result is what many seeds came to, as it stands in a file.
type Result struct {
	Format     int                `json:"format"`  // 1
	Version    string             `json:"version"` // of the program
	From       uint64             `json:"from"`
	Count      uint64             `json:"count,omitempty"`  // seeds of all machines, if they were counted
	Target     int64              `json:"target,omitempty"` // steps that were asked for, if they were, of each machine
	Shard      int                `json:"shard"`
	Of         int                `json:"of"`
	Whole      bool               `json:"whole"` // the plan was run to its end
	Seeds      uint64             `json:"seeds"`
	Steps      int64              `json:"steps"`
	Hash       string             `json:"hash"` // of all seeds and their hashes, in whatever order they were run
	OK         int                `json:"ok"`
	Failed     int                `json:"failed"`
	Lost       int                `json:"lost"`
	Alarms     int                `json:"alarms"`
	Shares     int                `json:"shares"`
	Forked     int                `json:"forked"`
	Kinds      map[Kind]int       `json:"kinds"`
	Causes     map[spec.Cause]int `json:"causes"`
	Violations []Found            `json:"violations"`
	Seconds    float64            `json:"seconds"` // of all machines together

	hash uint64
}

// Found is one violation.
type Found struct {
	Seed   uint64 `json:"seed"`
	Oracle Oracle `json:"oracle"`
	Text   string `json:"text"`
}

const resultFormat = 1

func newResult(p Plan) Result {
	return Result{Format: resultFormat, From: p.From, Count: p.Count, Target: p.Steps, Shard: p.Shard, Of: p.Of, Kinds: map[Kind]int{}, Causes: map[spec.Cause]int{}, Violations: []Found{}, Hash: hashText(0)}
}

func hashText(h uint64) string { return fmt.Sprintf("%016x", h) }

// add takes one seed in.
func (r *Result) add(o Outcome, err error) {
	r.Seeds++
	r.Steps += int64(o.Steps)
	r.hash += mix(mix(o.Seed) + o.Hash) // a sum: results of several machines add up
	r.Hash = hashText(r.hash)
	r.OK, r.Failed, r.Lost, r.Alarms = r.OK+o.OK, r.Failed+o.Failed, r.Lost+o.Lost, r.Alarms+o.Alarms
	r.Shares, r.Forked = r.Shares+o.Hits+o.Sources, r.Forked+o.Forked
	for k, n := range o.Kinds {
		r.Kinds[k] += n
	}
	for c, n := range o.Causes {
		r.Causes[c] += n
	}
	if err != nil {
		r.Violations = append(r.Violations, Found{o.Seed, OracleOf(err), err.Error()})
	}
}

// Text is the result as a file.
func (r *Result) Text() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", " ")
	return append(b, '\n'), err
}

// Line is the closing line for people.
func (r *Result) Line() string {
	rate := ""
	if r.Seconds > 0 {
		rate = fmt.Sprintf(" in %.1f s (%.0f a second)", r.Seconds, float64(r.Steps)/r.Seconds)
	}
	return fmt.Sprintf("%d steps, %d seeds from %d%s: %d answered, %d failed, %d lost with their node, %d alarms; %d violations; hash %s",
		r.Steps, r.Seeds, r.From, rate, r.OK, r.Failed, r.Lost, r.Alarms, len(r.Violations), r.Hash)
}

// Table is how often each kind happened, for people.
func (r *Result) Table() string {
	var b strings.Builder
	for _, k := range Kinds() {
		fmt.Fprintf(&b, "%-20s %-9s %12d\n", k.Kind, k.Class, r.Kinds[k.Kind])
	}
	for _, c := range slices.Sorted(maps.Keys(r.Causes)) {
		fmt.Fprintf(&b, "%-20s %-9s %12d\n", c, "cause", r.Causes[c])
	}
	return b.String()
}

// ErrResult is wrapped by files that are no results, and by results that do not go together.
var ErrResult = errors.New("result")

// ParseResult reads one file.
func ParseResult(text []byte) (r Result, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrResult, err)
	}
	if r.Format != resultFormat {
		return r, fmt.Errorf("%w: format %d, this program knows %d", ErrResult, r.Format, resultFormat)
	}
	if n, err := fmt.Sscanf(r.Hash, "%016x", &r.hash); n != 1 || err != nil || hashText(r.hash) != r.Hash {
		return r, fmt.Errorf("%w: hash %q", ErrResult, r.Hash)
	}
	if r.Of < 1 || r.Shard < 0 || r.Shard >= r.Of {
		return r, fmt.Errorf("%w: shard %d of %d", ErrResult, r.Shard, r.Of)
	}
	return r, nil
}

// Merge adds up the results of all machines of one plan, or of plans whose seeds follow each other. It refuses other versions, seeds
// that stand twice, and seeds or machines that are missing.
func Merge(rs []Result) (Result, error) {
	if len(rs) == 0 {
		return Result{}, fmt.Errorf("%w: none given", ErrResult)
	}
	rs = slices.Clone(rs)
	slices.SortStableFunc(rs, func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Shard, b.Shard))
	})
	for _, r := range rs {
		if err := rs[0].goesWith(&r); err != nil {
			return Result{}, err
		}
	}
	check := followEachOther
	if rs[0].Of > 1 {
		check = allShards
	}
	if err := check(rs); err != nil {
		return Result{}, err
	}
	out := rs[0]
	out.Kinds, out.Causes, out.Violations = maps.Clone(out.Kinds), maps.Clone(out.Causes), slices.Clone(out.Violations)
	for _, r := range rs[1:] {
		out.plus(&r)
	}
	if out.Of == 1 && out.Count != 0 {
		out.Count = out.Seeds
	}
	out.Shard, out.Of = 0, 1
	slices.SortFunc(out.Violations, func(a, b Found) int { return cmp.Compare(a.Seed, b.Seed) })
	return out, nil
}

func (r *Result) plus(o *Result) {
	r.Seeds, r.Steps, r.Seconds, r.hash = r.Seeds+o.Seeds, r.Steps+o.Steps, r.Seconds+o.Seconds, r.hash+o.hash
	r.Hash = hashText(r.hash)
	r.OK, r.Failed, r.Lost, r.Alarms, r.Shares, r.Forked = r.OK+o.OK, r.Failed+o.Failed, r.Lost+o.Lost, r.Alarms+o.Alarms, r.Shares+o.Shares, r.Forked+o.Forked
	for k, n := range o.Kinds {
		r.Kinds[k] += n
	}
	for c, n := range o.Causes {
		r.Causes[c] += n
	}
	r.Violations = append(r.Violations, o.Violations...)
}

func (r *Result) goesWith(o *Result) error {
	switch {
	case r.Version != o.Version:
		return fmt.Errorf("%w: versions %s and %s", ErrResult, r.Version, o.Version)
	case !o.Whole && len(o.Violations) == 0:
		return fmt.Errorf("%w: seeds from %d, shard %d: it was not run to its end", ErrResult, o.From, o.Shard)
	case r.Of != o.Of:
		return fmt.Errorf("%w: %d and %d shards", ErrResult, r.Of, o.Of)
	}
	return nil
}

// allShards wants each machine of one plan once.
func allShards(rs []Result) error {
	for i, r := range rs {
		a := rs[0]
		switch {
		case a.From != r.From || a.Count != r.Count || a.Target != r.Target:
			return fmt.Errorf("%w: shards of different plans: seeds from %d and %d", ErrResult, a.From, r.From)
		case i > 0 && rs[i-1].Shard == r.Shard:
			return fmt.Errorf("%w: shard %d stands twice", ErrResult, r.Shard)
		case r.Shard != i:
			return fmt.Errorf("%w: shard %d is missing", ErrResult, i)
		}
	}
	if len(rs) != rs[0].Of {
		return fmt.Errorf("%w: shard %d is missing", ErrResult, len(rs))
	}
	return nil
}

// followEachOther wants the seeds of one result to begin where those of the last one ended.
func followEachOther(rs []Result) error {
	for i, r := range rs[1:] {
		switch end := rs[i].From + rs[i].Seeds; {
		case r.From < end:
			return fmt.Errorf("%w: seed %d stands twice", ErrResult, r.From)
		case r.From > end:
			return fmt.Errorf("%w: seeds %d to %d are missing", ErrResult, end, r.From-1)
		}
	}
	return nil
}
