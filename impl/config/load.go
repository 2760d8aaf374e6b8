package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Load reads the file that the flags name, lays the flags over it and returns the configuration with its defaults. role, if
// not empty, is what the command runs whatever file says. All problems are in the error, which wraps ErrConfig.
func (f *Flags) Load(role Role) (Config, error) {
	var c Config
	var problems []error
	if f.file != "" {
		parsed, err := readFile(f.file)
		if err != nil {
			problems = append(problems, err)
		}
		c = parsed
	}
	peers := false
	for _, g := range f.given {
		if g.opt.kind == "peer" && !peers {
			c.Decode.Peers, peers = nil, true // flags replace the file's list
		}
		if err := g.opt.set(&c, g.value); err != nil {
			problems = append(problems, fmt.Errorf("%w: --%s %q: %w", ErrConfig, g.opt.name, g.value, plain(err)))
		}
	}
	if role != "" {
		c.Role = role
	}
	c = c.WithDefaults()
	problems = append(problems, f.ignoredFlags(c)...)
	if f.scope == OperatorClient {
		return c, errors.Join(append(problems, c.validateClient())...)
	}
	return c, errors.Join(append(problems, c.Validate())...)
}

// plain takes the text "strconv.ParseUint: parsing ...:" off a number's error.
func plain(err error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		err = e
	}
	return err
}

func readFile(path string) (Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	c, list := parse(b)
	list = append(list, ignoredKeys(b)...)
	for i, err := range list {
		list[i] = fmt.Errorf("%s: %w", path, err)
	}
	return c, errors.Join(list...)
}

// Parse reads a configuration from YAML without defaults. A key that is not known is an error, and so is a second document.
func Parse(b []byte) (Config, error) {
	c, list := parse(b)
	return c, errors.Join(list...)
}

func parse(b []byte) (c Config, list []error) {
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return c, yamlProblems(err)
	}
	if err := d.Decode(new(Config)); !errors.Is(err, io.EOF) {
		return c, []error{fmt.Errorf("%w: more than one document in the file", ErrConfig)}
	}
	return c, nil
}

// yamlProblems gives each finding of the YAML reader an error of its own, in the words of the file.
func yamlProblems(err error) (list []error) {
	var t *yaml.TypeError
	if !errors.As(err, &t) {
		return []error{fmt.Errorf("%w: %w", ErrConfig, err)}
	}
	for _, text := range t.Errors {
		if m := unknownKey.FindStringSubmatch(text); m != nil {
			where := "in " + strings.ToLower(m[3])
			if m[3] == "Config" {
				where = "at the top"
			}
			text = fmt.Sprintf("%s: no key %q %s", m[1], m[2], where)
		}
		list = append(list, fmt.Errorf("%w: %s", ErrConfig, text))
	}
	return list
}

// unknownKey is how the YAML reader says it: line, key, type.
var unknownKey = regexp.MustCompile(`^(line \d+): field (\S+) not found in type config\.(\w+)$`)

// YAML is the configuration as a file that Parse reads back.
func (c Config) YAML() ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return b.Bytes(), e.Close()
}
