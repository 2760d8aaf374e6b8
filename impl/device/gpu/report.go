package gpu

// Listing is what `kvfence devices` shows of GPUs.
type Listing struct {
	Library  string       `json:"libnvidia_ml"` // "can be used", or what is missing
	Versions *Versions    `json:"versions,omitempty"`
	Cards    []CardReport `json:"cards"`
}

// CardReport is one card's. A part that could not be asked is nil, and Why says so.
type CardReport struct {
	Info
	Place
	Memory *Memory  `json:"memory,omitempty"`
	Health *Health  `json:"health,omitempty"`
	Faults []Fault  `json:"faults,omitempty"` // that stand now; Xids of the past are not among them
	Why    []string `json:"why,omitempty"`    // what failed, and why the card cannot be used
}

// Describe asks all cards once. root is the kernel's sysfs.
func Describe(root string) Listing {
	cards, err := Open()
	if err != nil {
		return Listing{Library: err.Error(), Cards: []CardReport{}}
	}
	r := cards.report(root)
	if err := cards.Close(); err != nil {
		r.Library += "; " + err.Error()
	}
	return r
}

func (c *Cards) report(root string) Listing {
	v := c.Versions()
	r := Listing{Library: "can be used", Versions: &v, Cards: []CardReport{}}
	for _, card := range c.List() {
		out := CardReport{Info: card.Info(), Place: Place{NUMA: -1}}
		if err := card.Usable(); err != nil {
			out.Why = append(out.Why, err.Error())
		}
		if p, err := card.Place(root); err != nil {
			out.Why = append(out.Why, err.Error())
		} else {
			out.Place = p
		}
		if m, err := card.Memory(); err != nil {
			out.Why = append(out.Why, err.Error())
		} else {
			out.Memory = &m
		}
		if h, err := card.Health(); err != nil {
			out.Why = append(out.Why, err.Error())
		} else {
			out.Health, out.Faults = &h, standing(out.UUID, h)
		}
		r.Cards = append(r.Cards, out)
	}
	return r
}
