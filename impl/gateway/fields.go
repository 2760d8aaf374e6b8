package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// fields is a JSON object whose fields are taken out one by one; what is left at
// the end was not understood. Names are exact, and each stands once. The first fault is
// kept; later reads give zero values.
type fields struct {
	raw   map[string]json.RawMessage
	fault *failure
}

// parseFields reads a body that must be exactly one JSON object in UTF-8.
func parseFields(body []byte) (*fields, *failure) {
	malformed := func(what string) (*fields, *failure) {
		return nil, badParam("", "the body is not a JSON object: %s", what)
	}
	if !utf8.Valid(body) {
		return malformed("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return malformed("it does not begin with {")
	}
	f := &fields{raw: map[string]json.RawMessage{}}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return malformed(err.Error())
		}
		name, ok := t.(string)
		if !ok {
			return malformed("a field without a name")
		}
		if _, twice := f.raw[name]; twice {
			return nil, badParam(clipName(name), "the field stands twice")
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return malformed(err.Error())
		}
		f.raw[name] = raw
	}
	if _, err := d.Token(); err != nil {
		return malformed(err.Error())
	}
	if _, err := d.Token(); err != io.EOF {
		return malformed("something follows it")
	}
	return f, nil
}

func clipName(s string) string {
	if len(s) > 64 {
		return s[:64]
	}
	return s
}

// take removes a field; absent and null are the same.
func (f *fields) take(name string) (json.RawMessage, bool) {
	raw, ok := f.raw[name]
	delete(f.raw, name)
	return raw, ok && !bytes.Equal(raw, []byte("null")) && f.fault == nil
}

func (f *fields) fail(param, format string, args ...any) {
	if f.fault == nil {
		f.fault = badParam(param, format, args...)
	}
}

func (f *fields) text(name string, maxBytes int) string {
	var s string
	if raw, ok := f.take(name); ok && (json.Unmarshal(raw, &s) != nil || len(s) > maxBytes) {
		f.fail(name, "%s must be a string of at most %d bytes", name, maxBytes)
	}
	return s
}

func (f *fields) boolean(name string) bool {
	var b bool
	if raw, ok := f.take(name); ok && json.Unmarshal(raw, &b) != nil {
		f.fail(name, "%s must be true or false", name)
	}
	return b
}

// integer returns the value and whether it was given.
func (f *fields) integer(name string, low, high int64) (int64, bool) {
	raw, ok := f.take(name)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || v < low || v > high {
		f.fail(name, "%s must be a whole number from %d to %d", name, low, high)
		return 0, false
	}
	return v, true
}

// number returns the value, or def where it is not given.
func (f *fields) number(name string, low, high, def float64) float64 {
	raw, ok := f.take(name)
	if !ok {
		return def
	}
	var v float64
	if json.Unmarshal(raw, &v) != nil || math.IsNaN(v) || v < low || v > high {
		f.fail(name, "%s must be a number from %v to %v", name, low, high)
		return def
	}
	return v
}

// neutral takes fields of the API that this gateway cannot honour: it accepts the
// values that ask for nothing and refuses the others.
func (f *fields) neutral(name string, harmless ...string) {
	raw, ok := f.take(name)
	if !ok {
		return
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) == nil {
		if slices.Contains(harmless, compact.String()) {
			return
		}
		if v, err := strconv.ParseFloat(compact.String(), 64); err == nil && v == 0 && slices.Contains(harmless, "0") {
			return
		}
	}
	f.fail(name, "%s is not supported here; leave it out", name)
}

// finish refuses what nobody took.
func (f *fields) finish() *failure {
	if f.fault != nil {
		return f.fault
	}
	names := make([]string, 0, len(f.raw))
	for name := range f.raw {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) > 0 {
		name := clipName(names[0])
		return badParam(name, "unrecognized request argument: %s", name)
	}
	return nil
}
