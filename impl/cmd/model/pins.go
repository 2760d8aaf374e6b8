package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"kvfence/impl/tlc"
	"kvfence/model"
)

// errPins is what is said of a list of settings that cannot be used.
var errPins = errors.New("bad list of settings")

// pins is TLA/equality.json: what is compared, and what came of it.
type pins struct {
	Speed    pin   `json:"speed"`    // the setting on which both sides are timed
	Settings []pin `json:"settings"` // graphs that must be equal
	Mutants  []pin `json:"mutants"`  // the same with a guard off or a conjunct dropped on both sides
}

// pin is one setting. A mutant is a configuration with the constant Guard off, or one from whose Action a Guard or an Update is dropped.
type pin struct {
	Name      string            `json:"name"`
	Config    string            `json:"config,omitempty"`    // of the manifest; Name if it says none
	Constants map[string]string `json:"constants,omitempty"` // differences from the configuration's
	Action    string            `json:"action,omitempty"`
	Guard     string            `json:"guard,omitempty"`  // the constant, or the conjunct as the TLA+ text has it, blanks squeezed
	Update    string            `json:"update,omitempty"` // or the conjunct whose variables stay as they are
	Long      bool              `json:"long,omitempty"`
	States    int               `json:"states,omitempty"`
	Edges     int               `json:"edges,omitempty"`
}

// readPins reads the list. Unknown fields are refused.
func readPins(path string) (*pins, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var p pins
	if err := dec.Decode(&p); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errPins, path, err)
	}
	seen := map[string]bool{}
	for _, x := range slices.Concat(p.Settings, p.Mutants) {
		if x.Name == "" || seen[x.Name] {
			return nil, fmt.Errorf("%w: name %q is empty or taken", errPins, x.Name)
		}
		seen[x.Name] = true
	}
	return &p, nil
}

func (p *pins) write(path string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(p); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// setting is what the pin says, for both sides.
func (p pin) setting(m *tlc.Manifest) (setting, error) {
	name := p.Config
	if name == "" {
		name = p.Name
	}
	found, err := m.Find(name)
	if err != nil {
		return setting{}, err
	}
	c := *found
	c.Constants = maps.Clone(found.Constants)
	if c.Constants == nil {
		c.Constants = map[string]string{}
	}
	maps.Copy(c.Constants, p.Constants)
	s, err := newSetting(m, &c)
	if err != nil {
		return setting{}, err
	}
	s.name, s.states = p.Name, p.States
	if p.Action == "" {
		return s, nil
	}
	drop, err := p.mutant()
	if err != nil {
		return setting{}, err
	}
	s.mutants = []model.Mutant{drop}
	s.edit = func(files map[string]string) error { return dropConjunct(files, m.Modules[twinModule].Model, p) }
	return s, nil
}

// unmutated is the setting with nothing dropped and all guards on.
func (p pin) unmutated(m *tlc.Manifest) (setting, error) {
	whole := p
	whole.Action, whole.Guard, whole.Update = "", "", ""
	s, err := whole.setting(m)
	if err != nil || p.Action != "" {
		return s, err
	}
	if s.config.Constants[p.Guard] != "FALSE" {
		return setting{}, fmt.Errorf("%w: %s drops nothing: its configuration does not have %s off", errPins, p.Name, p.Guard)
	}
	whole.Constants = maps.Clone(p.Constants)
	if whole.Constants == nil {
		whole.Constants = map[string]string{}
	}
	whole.Constants[p.Guard] = "TRUE"
	return whole.setting(m)
}

// mutant finds the conjunct in the model's table.
func (p pin) mutant() (model.Mutant, error) {
	for _, a := range model.Actions() {
		if a.Name != p.Action {
			continue
		}
		for i, g := range a.Guards {
			if g.Text == p.Guard {
				return model.Mutant{Action: a.Name, Guard: i, Update: -1}, nil
			}
		}
		for i, u := range a.Updates {
			if u.Text == p.Update {
				return model.Mutant{Action: a.Name, Guard: -1, Update: i}, nil
			}
		}
	}
	return model.Mutant{}, fmt.Errorf("%w: %s: the model's action %q has no such conjunct", errPins, p.Name, p.Action)
}

// update is the conjunct's variables.
func (p pin) variables() []string {
	for _, a := range model.Actions() {
		for _, u := range a.Updates {
			if a.Name == p.Action && u.Text == p.Update {
				return u.Vars()
			}
		}
	}
	return nil
}
