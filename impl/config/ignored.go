package config

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A zero or empty value means "not given" in Config. Somebody who writes one down would silently get the default instead: the two
// functions here find what was written and is not in force.

// ignoredFlags lists the flags of f whose last value is not what c, with its defaults, has.
func (f *Flags) ignoredFlags(c Config) (list []error) {
	last := map[string]int{}
	for i, g := range f.given {
		last[g.opt.name] = i
	}
	for i, g := range f.given {
		if last[g.opt.name] != i || g.opt.kind == "peer" {
			continue
		}
		asked := c
		if err := g.opt.set(&asked, g.value); err == nil && !reflect.DeepEqual(asked, c) {
			list = append(list, fmt.Errorf("%w: --%s %q: that is no value; leave the flag out for the default", ErrConfig, g.opt.name, g.value))
		}
	}
	return list
}

// ignoredKeys lists the keys of a file whose values are not what its configuration has after defaults.
func ignoredKeys(file []byte) (list []error) {
	c, problems := parse(file)
	if len(problems) > 0 {
		return nil // reported already
	}
	c = c.WithDefaults()
	asked := c
	if yaml.Unmarshal(file, &asked) != nil {
		return nil
	}
	for _, key := range differences(reflect.ValueOf(asked), reflect.ValueOf(c), "") {
		list = append(list, fmt.Errorf("%w: %s: that is no value; leave the key out for the default", ErrConfig, key))
	}
	return list
}

// differences names the keys in which two configurations differ, with the value of the first, in the order of the fields.
func differences(a, b reflect.Value, at string) (list []string) {
	if a.Kind() != reflect.Struct {
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			list = append(list, fmt.Sprintf("%s %q", at, fmt.Sprint(a.Interface())))
		}
		return list
	}
	for i := range a.NumField() {
		name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("yaml"), ",")
		if at != "" {
			name = at + "." + name
		}
		list = append(list, differences(a.Field(i), b.Field(i), name)...)
	}
	return list
}
