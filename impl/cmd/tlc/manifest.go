package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
)

// manifest is TLA/manifest.json.
type manifest struct {
	Modules        map[string]module `json:"modules"`
	Configurations []configuration   `json:"configurations"`
}

// module is what the configurations of one specification have in common.
type module struct {
	Model      string              `json:"model"`      // the module with TLC's bounds
	Replace    map[string]string   `json:"replace"`    // definitions replaced: Lease <- MCLease
	Constants  map[string]string   `json:"constants"`  // value unless a configuration says otherwise
	Properties map[string][]string `json:"properties"` // named lists for "check"
}

// configuration is one run of TLC and what must come of it.
type configuration struct {
	Name      string            `json:"name"`
	About     string            `json:"about"`
	Module    string            `json:"module"`
	Constants map[string]string `json:"constants,omitempty"` // differences from the module's
	Check     []string          `json:"check"`               // invariants; "@name" takes a list of the module's
	Steps     []string          `json:"steps,omitempty"`     // properties of steps
	Symmetry  string            `json:"symmetry,omitempty"`
	Simulate  string            `json:"simulate,omitempty"` // "num=N": random runs, N a worker, in place of all states
	Depth     int               `json:"depth,omitempty"`    // length of a random run
	Long      bool              `json:"long,omitempty"`
	Expect    expectation       `json:"expect"`
}

// expectation is compared exactly. Distinct and Depth are 0 where something is violated (the search stops there) or simulated.
type expectation struct {
	Result   string `json:"result"` // "pass", "violated", "error"
	Exit     int    `json:"exit"`   // 0 pass, 12 invariant, 13 property of steps
	Violated string `json:"violated,omitempty"`
	Trace    int    `json:"trace,omitempty"` // states in the counterexample
	Distinct int    `json:"distinct,omitempty"`
	Depth    int    `json:"depth,omitempty"`
}

var errManifest = errors.New("bad manifest")

func loadManifest(path string) (*manifest, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var m manifest
	if err := dec.Decode(&m); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errManifest, path, err)
	}
	seen := map[string]bool{}
	for _, c := range m.Configurations {
		if _, ok := m.Modules[c.Module]; !ok {
			return nil, fmt.Errorf("%w: %s: no module %q", errManifest, c.Name, c.Module)
		}
		if c.Name == "" || seen[c.Name] || strings.ContainsAny(c.Name, "/\\ ") {
			return nil, fmt.Errorf("%w: name %q is empty, taken or unfit for a file", errManifest, c.Name)
		}
		seen[c.Name] = true
	}
	return &m, nil
}

// configText is the .cfg file of c.
func (m *manifest) configText(c *configuration) (string, error) {
	mod := m.Modules[c.Module]
	values := map[string]string{}
	for k, v := range mod.Constants {
		values[k] = v
	}
	for k, v := range c.Constants {
		if _, ok := values[k]; !ok {
			return "", fmt.Errorf("%w: %s: module %s has no constant %s", errManifest, c.Name, c.Module, k)
		}
		values[k] = v
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\\* %s. Written by impl/cmd/tlc -write from manifest.json.\n", c.About)
	b.WriteString("SPECIFICATION Spec\nCHECK_DEADLOCK FALSE\nCONSTANTS\n")
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
				return "", fmt.Errorf("%w: %s: no list %s", errManifest, c.Name, v)
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

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
