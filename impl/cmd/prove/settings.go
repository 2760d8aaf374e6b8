package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"kvfence/proofs/sany"
	"kvfence/proofs/tla2smt"
)

// settings is a file beside the proofs: which specification, and what of it.
type settings struct {
	Spec       string            `json:"spec"` // path of the root module, from this file
	Types      string            `json:"types"`
	Init       string            `json:"init"`
	Next       string            `json:"next"`
	Invariant  string            `json:"invariant"`
	Steps      []string          `json:"steps"`
	Starts     []string          `json:"starts"`     // what else is true at the start
	Free       []string          `json:"free"`       // switches that may be either
	Off        []string          `json:"off"`        // switches that are FALSE
	Properties []string          `json:"properties"` // what the specification promises of states and steps
	Open       map[string]string `json:"open"`       // those of them that are not proved, and why
	Witnesses  [][]string        `json:"witnesses"`  // lists of operators that narrow the states where z3 looks for one, tried in order; the last try is without
	Never      []string          `json:"never"`      // actions that cannot happen: those of the switches that are off
	Guards     map[string]string `json:"guards"`     // switch -> an obligation, Action.Conjunct, that is false without it
	Edges      comparison        `json:"edges"`

	dir string
}

var errSettings = errors.New("bad settings")

func loadSettings(path string) (*settings, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	s := &settings{Types: "TypeOK", Init: "Init", Next: "Next", Invariant: "IndInv", dir: filepath.Dir(path)}
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errSettings, path, err)
	}
	return s, nil
}

func (s *settings) options() tla2smt.Options {
	return tla2smt.Options{Types: s.Types, Init: s.Init, Next: s.Next, Invariant: s.Invariant, Steps: s.Steps, Starts: s.Starts, Off: s.Off, Free: s.Free}
}

// read exports the specification with SANY.
func (s *settings) read(ctx context.Context, jar string) (*tla2smt.Spec, error) {
	return sany.Read(ctx, jar, filepath.Join(s.dir, s.Spec))
}
