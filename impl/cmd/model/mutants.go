package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"kvfence/model"
)

// mutants compares the graphs of settings with a guard off or a conjunct dropped, and wants each to differ from the whole one's.
func (s *session) mutants(ctx context.Context) error {
	return s.each(s.pins.Mutants, func(p *pin) (got outcome) {
		set, err := p.setting(s.c.specs.Manifest)
		if err != nil {
			return outcome{err: err}
		}
		whole, err := p.unmutated(s.c.specs.Manifest)
		if err != nil {
			return outcome{err: err}
		}
		if got.same, got.err = s.alike(set, whole); got.same || got.err != nil {
			return got
		}
		got.found, got.err = compare(ctx, s.c, set, s.o.workers, s.o.limit)
		return got
	}, func(got outcome) {
		if got.same {
			s.fail(got.p.Name, "the graph is that without the mutation: the setting does not show it")
		} else if s.judge(got) {
			s.total.mutants++
		}
	})
}

// alike says whether the model's graphs of two settings are the same.
func (s *session) alike(a, b setting) (bool, error) {
	v := newValues()
	x, err := s.sum(a, v)
	if err != nil {
		return false, err
	}
	y, err := s.sum(b, v)
	return x == y, err
}

// graphSum is what a graph adds up to, in whatever order: the sum of the hashes of its steps, and of its states as steps to themselves.
type graphSum struct{ states, edges, a, b uint64 }

func (s *session) sum(set setting, v *values) (sum graphSum, err error) {
	r, err := set.walk(s.o.workers, s.o.limit)
	if err != nil {
		return sum, fmt.Errorf("%s: %w", set.name, err)
	}
	w, read := r.Graph.Walker(), newReader(v, model.New(set.twin))
	digests := make([]digest, r.Graph.Len())
	for i := range digests {
		digests[i] = read.digest(w.State(i))
	}
	add := func(from digest, action uint32, to digest) {
		h := sha256.Sum256(append(binary.LittleEndian.AppendUint32(from[:], action), to[:]...))
		sum.a += binary.LittleEndian.Uint64(h[:8])
		sum.b += binary.LittleEndian.Uint64(h[8:16])
	}
	for i, d := range digests {
		add(d, 1<<31, d)
		w.Steps(i, func(action, to int) { add(d, uint32(action), digests[to]) })
	}
	sum.states, sum.edges = uint64(r.States), uint64(r.Edges)
	return sum, nil
}
