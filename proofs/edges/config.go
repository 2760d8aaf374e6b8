package edges

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"kvfence/proofs/dump"
	"kvfence/proofs/tla2smt"
)

// Setting is one configuration of TLC, as a file of TLC's own.
type Setting struct {
	Folder string            // of the modules
	Root   string            // root module
	Config string            // path of the configuration
	Bounds map[string]string // number set -> "1..NL", "0..NL+1": first and last are sums of numbers and constants
}

var (
	equalLine = regexp.MustCompile(`^\s*(\w+) = (.+?)\s*$`)
	plainLine = regexp.MustCompile(`^\s*(\w+ (?:=|<-) .*|CONSTANTS|SPECIFICATION \w+|CHECK_DEADLOCK FALSE)\s*$`)
)

// Load reads the configuration: what to tell TLC (properties and symmetry left out), the constants, and the bounds.
func (s Setting) Load() (text string, f tla2smt.Finite, bounds map[string][2]int, err error) {
	raw, err := os.ReadFile(s.Config)
	if err != nil {
		return "", f, nil, err
	}
	f = tla2smt.Finite{Members: map[string][]string{}, Values: map[string]string{}}
	for line := range strings.Lines(string(raw)) {
		if plainLine.MatchString(line) {
			text += line
		}
		m := equalLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		v, err := dump.Parse(m[2])
		if err != nil {
			return "", f, nil, fmt.Errorf("%s: %w", m[1], err)
		}
		if v.Kind != dump.Set {
			f.Values[m[1]] = term(v)
			continue
		}
		f.Members[m[1]] = nil
		for _, i := range v.Items {
			f.Members[m[1]] = append(f.Members[m[1]], term(i))
		}
	}
	bounds = map[string][2]int{}
	for name, b := range s.Bounds {
		lo, hi, ok := strings.Cut(b, "..")
		first, err1 := sum(lo, f.Values)
		last, err2 := sum(hi, f.Values)
		if !ok || err1 != nil || err2 != nil {
			return "", f, nil, fmt.Errorf("%w: bounds %q of %s", ErrDump, b, name)
		}
		bounds[name] = [2]int{first, last}
	}
	return text, f, bounds, nil
}

func sum(text string, values map[string]string) (int, error) {
	total := 0
	for part := range strings.SplitSeq(text, "+") {
		part = strings.TrimSpace(part)
		if v, ok := values[part]; ok {
			part = v
		}
		n, err := strconv.Atoi(part)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// Dump has TLC explore the configuration and reads its graph.
func (s Setting) Dump(ctx context.Context, jar, text string) (Graph, error) {
	tmp, err := os.MkdirTemp("", "edges")
	if err != nil {
		return Graph{}, err
	}
	defer os.RemoveAll(tmp)
	modules, err := filepath.Glob(filepath.Join(s.Folder, "*.tla"))
	if err != nil {
		return Graph{}, err
	}
	for _, m := range modules {
		raw, err := os.ReadFile(m)
		if err != nil {
			return Graph{}, err
		}
		if err := os.WriteFile(filepath.Join(tmp, filepath.Base(m)), raw, 0o644); err != nil {
			return Graph{}, err
		}
	}
	if err := os.WriteFile(filepath.Join(tmp, "run.cfg"), []byte(text), 0o644); err != nil {
		return Graph{}, err
	}
	c := exec.CommandContext(ctx, "java", "-XX:+UseSerialGC", "-Djava.io.tmpdir="+tmp, "-cp", jar, "tlc2.TLC", "-workers", "1", "-metadir", filepath.Join(tmp, "states"),
		"-config", "run.cfg", "-dump", "dot,actionlabels", filepath.Join(tmp, "graph.dot"), s.Root+".tla")
	c.Dir = tmp
	if out, err := c.CombinedOutput(); err != nil {
		return Graph{}, fmt.Errorf("%w: TLC on %s: %w\n%s", ErrDump, s.Config, err, out)
	}
	file, err := os.Open(filepath.Join(tmp, "graph.dot"))
	if err != nil {
		return Graph{}, err
	}
	defer file.Close()
	return ReadDump(file)
}
