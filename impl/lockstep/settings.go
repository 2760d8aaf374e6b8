package lockstep

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"kvfence/model"
)

// Setting is one small world that both sides can be: the constants of the specification, and how the engine is set up for them.
type Setting struct {
	Name, About string
	Constants   map[string]string // differences from base
	KV, Aux     uint32            // decode's pages: Page is KV pages first, then auxiliary ones
	Source      uint32            // KV source pages of each prefill rank; one auxiliary one more at the writer if Aux > 0
	Prompt      uint32            // tokens of every prompt; a page has tokensPerPage
	Answers     int               // answers that a prefill rank keeps; 0: its default
	Published   int               // pages that decode may publish
	Leaders     bool              // the two leaders are there; without them their words to the ranks are the surroundings'
	Hold        bool              // the first request comes before decode's leader knows its prefill side
	Unfilled    uint8             // bit t: transfer t is not begun at prefill: its lease ends unfilled
	OneRequest  bool              // only the first transfer comes from a client
	Twin        model.Settings

	lens      lens
	executors map[string]executor
}

const tokensPerPage = 2

// base is the constants of a setting that looks at nothing yet: one page, one rank, one lease; all guards and guarantees on, all
// features and plants off.
func base() map[string]string {
	c := map[string]string{"Page": "{k1}", "Rank": "{r1}", "Chan": "{c1}", "Tenant": "{t1}", "Adapter": "{a1}", "Prefix": "{f1}", "NoTenant": "t1", "NoAdapter": "a1", "NoPrefix": "f1",
		"Aux": "{}", "AuxWriter": "r1", "State": "{}", "StateRank": "{}", "Big": "{}", "Views": `{"same"}`, "Causes": `{"derived"}`,
		"NL": "1", "NE": "0", "NI": "0", "ND": "0", "NT": "1", "NQ": "1"}
	features := strings.Fields("Asking Running EmptyPlans Marking Publishing Appending Growing Retrying Losing Breaking OwnMarking PFencing PlantStray PlantTorn PlantFlip")
	t := reflect.TypeFor[model.Settings]()
	for i := range t.NumField() {
		if t.Field(i).Type.Kind() == reflect.Bool {
			c[t.Field(i).Name] = "TRUE"
		}
	}
	for _, f := range features {
		c[f] = "FALSE"
	}
	return c
}

// fill reads the constants of a setting.
func (s Setting) fill() (Setting, error) {
	c := base()
	var names []string
	for i := range s.KV {
		names = append(names, fmt.Sprint("k", i+1))
	}
	var aux []string
	for i := range s.Aux {
		aux = append(aux, fmt.Sprint("x", i+1)) // names are sorted: records come last
	}
	c["Page"], c["Aux"] = set(append(names, aux...)), set(aux)
	maps.Copy(c, s.Constants)
	w, err := model.FromConstants(c)
	if err != nil {
		return s, fmt.Errorf("setting %s: %w", s.Name, err)
	}
	s.Twin, s.lens, s.executors = w, newLens(), executors()
	return s, nil
}

func set(names []string) string { return "{" + strings.Join(names, ", ") + "}" }

// need is the KV pages of a lease: the prompt and the place of the first token.
func (s *Setting) need() uint32 { return (s.Prompt + tokensPerPage) / tokensPerPage }

// sources is the KV source pages of a prompt.
func (s *Setting) sources() uint32 { return (s.Prompt + tokensPerPage - 1) / tokensPerPage }
