// Package tlc runs the model checker TLC over the specifications in TLA/ and compares every outcome with TLA/manifest.json: exit
// code, property violated, length of the counterexample, and, where nothing is found, the exact number of states and the depth. It does
// not judge what a configuration means; that is told in TLA/README.md. It does not read the states of a counterexample; impl/tlc/explain
// does. kvfence spec calls it. Read next: specs.go, run.go, check.go.
package tlc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sort"
	"strings"
)

// Manifest is TLA/manifest.json.
type Manifest struct {
	Modules        map[string]Module `json:"modules"`
	Configurations []Configuration   `json:"configurations"`
}

// Module is what the configurations of one specification have in common.
type Module struct {
	Base       string              `json:"base,omitempty"`       // the module that this one extends: it has its replacements, constants and lists
	Model      string              `json:"model"`                // the module with TLC's bounds
	Spec       string              `json:"spec,omitempty"`       // the formula that is checked; Spec unless it says otherwise
	Replace    map[string]string   `json:"replace,omitempty"`    // definitions replaced: Lease <- MCLease
	Constants  map[string]string   `json:"constants,omitempty"`  // value unless a configuration says otherwise
	Properties map[string][]string `json:"properties,omitempty"` // named lists for "check"
}

// Kinds of configurations.
const (
	KindSimulation = "simulation" // random runs in place of all states
)

// Configuration is one run of TLC and what must come of it.
type Configuration struct {
	Name      string            `json:"name"`
	About     string            `json:"about"`
	Kind      string            `json:"kind,omitempty"` // "" (all states, unless Simulate is there) or KindSimulation
	Module    string            `json:"module"`
	Spec      string            `json:"spec,omitempty"`      // in place of the module's
	Constants map[string]string `json:"constants,omitempty"` // differences from the module's
	Check     []string          `json:"check"`               // invariants; "@name" takes a list of the module's
	Steps     []string          `json:"steps,omitempty"`     // properties of steps and of behaviours
	Symmetry  string            `json:"symmetry,omitempty"`
	Simulate  string            `json:"simulate,omitempty"` // "num=N": random runs, N a worker; simulationRuns where a simulation says none
	Depth     int               `json:"depth,omitempty"`    // length of a random run; simulationDepth where it says none
	Seed      int64             `json:"seed,omitempty"`     // of the random runs; 0 is 1
	Long      bool              `json:"long,omitempty"`
	Expect    Expectation       `json:"expect"`
}

// What a simulation does that does not say.
const (
	simulationRuns  = "num=1000"
	simulationDepth = 100
)

// Simulation says whether c is random runs.
func (c *Configuration) Simulation() bool { return c.Kind == KindSimulation || c.Simulate != "" }

// Guard says whether c drops a guard, so that a counterexample must come of it: its name begins with off-.
func (c *Configuration) Guard() bool { return strings.HasPrefix(c.Name, "off-") }

// Off lists the constants that c turns from TRUE to FALSE, which are guards, in order.
func (c *Configuration) Off(m *Manifest) (off []string) {
	constants := m.Resolve(c.Module).Constants
	for _, k := range sortedKeys(c.Constants) {
		if c.Constants[k] == "FALSE" && constants[k] == "TRUE" {
			off = append(off, k)
		}
	}
	return off
}

// Expectation is compared exactly. Distinct and Depth are 0 where something is violated (the search stops there) or simulated.
type Expectation struct {
	Result   string `json:"result"` // "pass", "violated", "error"
	Exit     int    `json:"exit"`   // 0 pass, 12 invariant, 13 property of steps or behaviours
	Violated string `json:"violated,omitempty"`
	Trace    int    `json:"trace,omitempty"` // states in the counterexample
	Distinct int    `json:"distinct,omitempty"`
	Depth    int    `json:"depth,omitempty"`
}

// ErrManifest is wrapped by what is wrong with manifest.json.
var ErrManifest = errors.New("bad manifest")

const manifestFile = "manifest.json"

// readManifest reads manifest.json in files. Unknown fields are refused.
func readManifest(files fs.FS) (*Manifest, error) {
	raw, err := fs.ReadFile(files, manifestFile)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var m Manifest
	if err := dec.Decode(&m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	for _, name := range sortedKeys(m.Modules) {
		if base, ok := m.Modules[m.Modules[name].Base]; m.Modules[name].Base != "" && (!ok || base.Base != "") {
			return nil, fmt.Errorf("%w: module %s: its base %q is no module without a base of its own", ErrManifest, name, m.Modules[name].Base)
		}
	}
	seen := map[string]bool{}
	for i := range m.Configurations {
		c := &m.Configurations[i]
		if _, ok := m.Modules[c.Module]; !ok {
			return nil, fmt.Errorf("%w: %s: no module %q", ErrManifest, c.Name, c.Module)
		}
		if c.Name == "" || seen[c.Name] || strings.ContainsAny(c.Name, "/\\ ") {
			return nil, fmt.Errorf("%w: name %q is empty, taken or unfit for a file", ErrManifest, c.Name)
		}
		if c.Kind != "" && c.Kind != KindSimulation {
			return nil, fmt.Errorf("%w: %s: kind %q is neither empty nor %q", ErrManifest, c.Name, c.Kind, KindSimulation)
		}
		seen[c.Name] = true
	}
	return &m, nil
}

// Resolve returns the module of that name with what it has of its base.
func (m *Manifest) Resolve(name string) Module {
	mod := m.Modules[name]
	base, ok := m.Modules[mod.Base]
	if mod.Base == "" || !ok {
		return mod
	}
	mod.Replace = overlay(base.Replace, mod.Replace)
	mod.Constants = overlay(base.Constants, mod.Constants)
	mod.Properties = overlay(base.Properties, mod.Properties)
	return mod
}

// overlay is base with the values of over in place of its own.
func overlay[V any](base, over map[string]V) map[string]V {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]V{}
	}
	maps.Copy(out, over)
	return out
}

// Find returns the configuration of that name.
func (m *Manifest) Find(name string) (*Configuration, error) {
	for i := range m.Configurations {
		if m.Configurations[i].Name == name {
			return &m.Configurations[i], nil
		}
	}
	return nil, fmt.Errorf("%w %q; kvfence spec list names them", ErrNoConfiguration, name)
}

// ErrNoConfiguration says that no configuration has the name that was asked for.
var ErrNoConfiguration = errors.New("no configuration is named")

// ConfigText is the .cfg file of c.
func (m *Manifest) ConfigText(c *Configuration) (string, error) {
	mod := m.Resolve(c.Module)
	values := map[string]string{}
	for k, v := range mod.Constants {
		values[k] = v
	}
	for k, v := range c.Constants {
		if _, ok := values[k]; !ok {
			return "", fmt.Errorf("%w: %s: module %s has no constant %s", ErrManifest, c.Name, c.Module, k)
		}
		values[k] = v
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\\* %s. Written by kvfence spec check --write from manifest.json.\n", c.About)
	fmt.Fprintf(&b, "SPECIFICATION %s\nCHECK_DEADLOCK FALSE\nCONSTANTS\n", first(c.Spec, mod.Spec, "Spec"))
	for _, k := range sortedKeys(mod.Replace) {
		fmt.Fprintf(&b, "  %s <- %s\n", k, mod.Replace[k])
	}
	for _, k := range sortedKeys(values) {
		fmt.Fprintf(&b, "  %s = %s\n", k, values[k])
	}
	for _, v := range c.Check {
		if name, isList := strings.CutPrefix(v, "@"); isList {
			list, ok := mod.Properties[name]
			if !ok {
				return "", fmt.Errorf("%w: %s: no list %s", ErrManifest, c.Name, v)
			}
			fmt.Fprintf(&b, "INVARIANTS %s\n", strings.Join(list, " "))
			continue
		}
		fmt.Fprintf(&b, "INVARIANT %s\n", v)
	}
	for _, v := range c.Steps {
		fmt.Fprintf(&b, "PROPERTY %s\n", v)
	}
	if c.Symmetry != "" {
		fmt.Fprintf(&b, "SYMMETRY %s\n", c.Symmetry)
	}
	return b.String(), nil
}

// first is the first that is not empty.
func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
