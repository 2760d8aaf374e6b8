package main

import (
	"fmt"
	"maps"

	"kvfence/impl/tlc"
	"kvfence/model"
	"kvfence/model/explore"
)

// twinModule is the specification that the model is the twin of.
const twinModule = "Transfer"

// setting is one configuration for both sides, and what is dropped from both.
type setting struct {
	name    string
	config  *tlc.Configuration
	twin    model.Settings
	states  int // as many as recorded, 0 if none are
	mutants []model.Mutant
	edit    func(files map[string]string) error // what is dropped from the TLA+ text; nil for nothing
}

// newSetting is the configuration as it stands in the manifest.
func newSetting(m *tlc.Manifest, c *tlc.Configuration) (setting, error) {
	if c.Module != twinModule {
		return setting{}, fmt.Errorf("%s is a configuration of %s: the model is the twin of %s only", c.Name, c.Module, twinModule)
	}
	constants := maps.Clone(m.Modules[c.Module].Constants)
	maps.Copy(constants, c.Constants)
	w, err := model.FromConstants(constants)
	if err != nil {
		return setting{}, fmt.Errorf("%s: %w", c.Name, err)
	}
	return setting{name: c.Name, config: c, twin: w}, nil
}

// walk explores the model's side.
func (s setting) walk(workers, limit int) (explore.Result[model.State], error) {
	return explore.Run(s.system, explore.Options[model.State]{Workers: workers, Limit: limit})
}

func (s setting) system() explore.System[model.State] { return model.New(s.twin, s.mutants...) }

// actionNames are the model's actions by number, and their numbers.
func actionNames() (names []string, numbers map[string]int) {
	numbers = map[string]int{}
	for i, a := range model.Actions() {
		names = append(names, a.Name)
		numbers[a.Name] = i
	}
	return names, numbers
}
