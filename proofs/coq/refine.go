package coq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ErrRefine is what is said where a step of Transfer is no step of Heart.
var ErrRefine = errors.New("Transfer does not refine Heart")

// Refinement is a configuration of Transfer, as what differs from the manifest's constants, in which every step must be Heart's.
type Refinement struct {
	Name      string
	Constants map[string]string
}

// Refinements is checked always: both restarts of a prefill rank, a fence, a connect.
func Refinements() []Refinement {
	return []Refinement{{"prefill restarts", map[string]string{"NE": "1", "NI": "1"}}}
}

// LongRefinements are checked where there is time for minutes. Sharing, growth and plants stay off: Heart has not got them.
func LongRefinements() []Refinement {
	return []Refinement{
		{"decode restarts", map[string]string{"ND": "1", "PFencing": "TRUE"}},
		{"two channels, two pages", map[string]string{"Chan": "{c1, c2}", "Losing": "TRUE", "Page": "{p1, p2}"}},
		{"a page handed out twice", map[string]string{"Marking": "TRUE", "NL": "2"}},
		{"another prompt", map[string]string{"Breaking": "TRUE", "EmptyPlans": "TRUE", "OwnMarking": "TRUE", "Running": "TRUE", "Views": `{"same", "short", "other"}`}},
		{"a record, two ranks", map[string]string{"Aux": "{p1}", "Breaking": "TRUE", "Rank": "{k1, k2}"}},
		{"two ranks, a restart", map[string]string{"Aux": "{p1}", "NI": "1", "Rank": "{k1, k2}"}},
		{"fences of both ends", map[string]string{"Breaking": "TRUE", "Marking": "TRUE", "NE": "1", "PFencing": "TRUE"}},
		{"every feature", map[string]string{"Appending": "TRUE", "Asking": "TRUE", "Breaking": "TRUE", "EmptyPlans": "TRUE", "Losing": "TRUE",
			"Marking": "TRUE", "OwnMarking": "TRUE", "PFencing": "TRUE", "Running": "TRUE"}},
	}
}

// config is the manifest's Transfer with the constants of r.
func (r Refinement) config(specs string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(specs, "manifest.json"))
	if err != nil {
		return "", err
	}
	var m struct {
		Modules map[string]struct{ Replace, Constants map[string]string }
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return "", err
	}
	base := m.Modules["Transfer"]
	if len(base.Constants) == 0 || len(base.Replace) == 0 {
		return "", fmt.Errorf("%w: no constants of Transfer in the manifest", ErrRefine)
	}
	maps.Copy(base.Constants, r.Constants)
	text := "SPECIFICATION Spec\nCHECK_DEADLOCK FALSE\nPROPERTY HeartSpec\nCONSTANTS\n"
	for _, k := range slices.Sorted(maps.Keys(base.Replace)) {
		text += fmt.Sprintf("  %s <- %s\n", k, base.Replace[k])
	}
	for _, k := range slices.Sorted(maps.Keys(base.Constants)) {
		text += fmt.Sprintf("  %s = %s\n", k, base.Constants[k])
	}
	return text, nil
}

var distinct = regexp.MustCompile(`(\d+) distinct states found, 0 states left`)

// Check has TLC look at every step of Transfer in the configuration and returns the number of states.
func (r Refinement) Check(ctx context.Context, specs, jar string) (string, error) {
	text, err := r.config(specs)
	if err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp("", "refine")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if err := os.CopyFS(filepath.Join(tmp, "specs"), os.DirFS(specs)); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(tmp, "specs", "run.cfg"), []byte(text), 0o600); err != nil {
		return "", err
	}
	c := exec.CommandContext(ctx, "java", "-XX:+UseSerialGC", "-cp", jar, "tlc2.TLC", "-workers", "1", "-metadir", filepath.Join(tmp, "states"),
		"-config", "run.cfg", "TransferHeart.tla")
	c.Dir = filepath.Join(tmp, "specs")
	out, err := c.CombinedOutput()
	said := string(out)
	if strings.Contains(said, "is violated") {
		return "", fmt.Errorf("%w: %s\n%s", ErrRefine, r.Name, said[max(0, len(said)-4000):])
	}
	m := distinct.FindStringSubmatch(said)
	if err != nil || m == nil {
		return "", fmt.Errorf("TLC on %s: %w\n%s", r.Name, err, said[max(0, len(said)-2000):])
	}
	return m[1], nil
}
