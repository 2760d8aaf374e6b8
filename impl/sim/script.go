package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrScript is wrapped by what makes a script unusable.
var ErrScript = errors.New("not a scenario")

// Script is a run without its seed: the cluster, what is done to it, and the choices of its scheduler. docs/simulation.md has the format.
type Script struct {
	Version int    `yaml:"kvfence-scenario"` // 1
	About   string `yaml:"about,omitempty"`
	Expect  string `yaml:"expect"` // Kept, or the oracle that must find something
	Config  Config `yaml:"config"`
	Acts    []Act  `yaml:"acts"`
	// Choices are, for each stream, index:value of each choice that is not 0, separated by spaces; the lines mean nothing.
	Choices map[string][]string `yaml:"choices,omitempty"`
}

// Kept is what a script expects that breaks nothing.
const Kept = "kept"

// scriptVersion changes when a script of before would mean another run.
const scriptVersion = 1

// Bounds of a script, so that no file takes the machine.
const (
	maxScriptBytes = 16 << 20
	maxChoices     = 20_000_000
	maxRanks       = 8
	maxPages       = 4_000_000
	maxTokens      = 100_000
)

// MarshalYAML puts an act on one line.
func (a Act) MarshalYAML() (any, error) {
	type plain Act
	var n yaml.Node
	err := n.Encode(plain(a))
	n.Style = yaml.FlowStyle
	return &n, err
}

// Text is the script as a file.
func (s *Script) Text() ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(s), e.Close()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrScript, err)
	}
	return b.Bytes(), nil
}

// ParseScript reads a script; unknown fields are refused.
func ParseScript(text []byte) (*Script, error) {
	if len(text) > maxScriptBytes {
		return nil, fmt.Errorf("%w: longer than %d bytes", ErrScript, maxScriptBytes)
	}
	var s Script
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrScript, err)
	}
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrScript, err)
	}
	return &s, nil
}

func (s *Script) validate() error {
	c := s.Config.withDefaults()
	for _, n := range append(append([]int(nil), c.Prefill...), c.Decode...) {
		if n < 1 || n > 2 { // heads and layers are two
			return fmt.Errorf("a side of %d ranks, 1 or 2 are possible", n)
		}
	}
	switch {
	case s.Version != scriptVersion:
		return fmt.Errorf("version %d, this program knows %d", s.Version, scriptVersion)
	case len(c.Prefill) > maxRanks || len(c.Decode) > maxRanks:
		return fmt.Errorf("more than %d sides", maxRanks)
	case max(c.PrefillPages, c.DecodePages, c.AuxPages) > maxPages:
		return fmt.Errorf("a pool of more than %d pages", maxPages)
	case c.Window > maxTokens || c.Chunk > maxTokens || c.Channels > 64:
		return fmt.Errorf("window %d, chunk %d, channels %d: too many", c.Window, c.Chunk, c.Channels)
	case c.Net.Drop < 0 || c.Net.Duplicate < 0 || c.Net.Reorder < 0 || c.Net.Drop+c.Net.Duplicate > 100 || c.Net.Reorder > 100:
		return fmt.Errorf("chances that are no percentages: %+v", c.Net)
	case min(c.Sharing, c.Sources, c.Mismatch, c.Answers, c.PostItems, c.Posts, c.SealItems) < 0:
		return errors.New("a bound below 0")
	}
	if o := Oracle(s.Expect); s.Expect != Kept && !o.known() {
		return fmt.Errorf("expect %q is neither %s nor an oracle", s.Expect, Kept)
	}
	for i, a := range s.Acts {
		switch {
		case !a.Do.known():
			return fmt.Errorf("act %d: no kind %q", i+1, a.Do)
		case a.Req != nil && (len(a.Req.Prompt) > maxTokens || a.Req.LeftMs < 0):
			return fmt.Errorf("act %d: %d tokens, %d ms", i+1, len(a.Req.Prompt), a.Req.LeftMs)
		case a.Do == Resize && a.N > maxPages:
			return fmt.Errorf("act %d: %d pages", i+1, a.N)
		}
	}
	_, err := s.choices()
	return err
}

func (o Oracle) known() bool {
	for _, x := range Oracles() {
		if x.Oracle == o {
			return true
		}
	}
	return false
}

func (k Kind) known() bool {
	for _, x := range Kinds() {
		if x.Kind == k {
			return true
		}
	}
	return false
}

// choices are the values by stream and index.
func (s *Script) choices() (out [streams][]uint32, err error) {
	known := 0
	for k, name := range streamNames() {
		lines, is := s.Choices[name]
		if is {
			known++
		}
		for _, line := range lines {
			for f := range strings.FieldsSeq(line) {
				at, value, ok := strings.Cut(f, ":")
				i, err1 := strconv.ParseUint(at, 10, 32)
				v, err2 := strconv.ParseUint(value, 10, 32)
				if !ok || err1 != nil || err2 != nil || i >= maxChoices {
					return out, fmt.Errorf("choice %q is not index:value", f)
				}
				if n := int(i) + 1 - len(out[k]); n > 0 {
					out[k] = append(out[k], make([]uint32, n)...)
				}
				out[k][i] = uint32(v)
			}
		}
	}
	if known != len(s.Choices) {
		return out, fmt.Errorf("choices of a stream that is none of %v", streamNames())
	}
	return out, nil
}

// setChoices keeps what is not 0.
func (s *Script) setChoices(values [streams][]uint32) {
	const perLine = 12
	s.Choices = map[string][]string{}
	for k, name := range streamNames() {
		var lines, line []string
		for i, v := range values[k] {
			if v != 0 {
				line = append(line, fmt.Sprintf("%d:%d", i, v))
			}
			if len(line) == perLine || i == len(values[k])-1 && len(line) > 0 {
				lines, line = append(lines, strings.Join(line, " ")), nil
			}
		}
		if len(lines) > 0 {
			s.Choices[name] = lines
		}
	}
}

// Decisions is how many acts and choices a script has.
func (s *Script) Decisions() (n int) {
	for _, lines := range s.Choices {
		for _, line := range lines {
			n += len(strings.Fields(line))
		}
	}
	return n + len(s.Acts)
}

// Play runs a script. change, if not nil, alters its cluster: a plant is switched off or on, a trace is wanted.
func (s *Script) Play(change func(*Config)) (Outcome, error) {
	given, err := s.choices()
	if err != nil {
		return Outcome{}, fmt.Errorf("%w: %w", ErrScript, err)
	}
	r := run{cfg: s.Config, chance: &chance{given: given}, d: &reader{acts: s.Acts}}
	if change != nil {
		change(&r.cfg)
	}
	return r.play()
}

// Judge compares what a script came to with what it expects; nil if they agree.
func (s *Script) Judge(err error) error {
	switch got := OracleOf(err); {
	case s.Expect == Kept:
		return err
	case err == nil:
		return fmt.Errorf("%w: %s was to find something, and nothing is broken", ErrScript, s.Expect)
	case string(got) != s.Expect:
		return fmt.Errorf("%w: %s was to find something: %w", ErrScript, s.Expect, err)
	}
	return nil
}

// Record is a seed as a script that gives the same run, with the same hash.
func Record(seed uint64, change func(*Config)) (*Script, Outcome, error) {
	cfg := Shape(seed)
	if change != nil {
		change(&cfg)
	}
	c := newChance(cfg.Seed)
	c.keep = true
	r := run{cfg: cfg, chance: c, d: newMayhem(&cfg)}
	out, err := r.play()
	return r.script(err), out, err
}

// script is what was played, with what came of it.
func (r *run) script(err error) *Script {
	s := &Script{Version: scriptVersion, Expect: Kept, Config: r.cfg.withDefaults(), Acts: slices.Clone(r.acts)}
	if r.w != nil && !r.w.healed { // it broke before: the script must not heal sooner
		s.Acts = append(s.Acts, Act{At: r.w.steps + 1, Do: Heal})
	}
	if n := len(s.Acts); n > 0 && s.Acts[n-1].Do == Heal && (n == 1 && s.Acts[0].At == 0 || n > 1 && s.Acts[n-1].At == s.Acts[n-2].At+1) {
		s.Acts = s.Acts[:n-1] // a script without it is healed at once
	}
	if o := OracleOf(err); o != "" {
		s.Expect, s.About = string(o), firstLine(err.Error())
	}
	s.setChoices(r.chance.log)
	return s
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
