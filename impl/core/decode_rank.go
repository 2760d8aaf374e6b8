package core

// DecodeRank owns one rank's pools at decode.
type DecodeRank struct {
	cfg DecodeRankConfig
}

// NewDecodeRank makes a rank with all pages free and no link. cfg goes through WithDefaults and Validate.
func NewDecodeRank(cfg DecodeRankConfig) (*DecodeRank, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &DecodeRank{cfg: cfg}, nil
}

// Step carries one event through the machine. An error means that the driver broke its contract.
func (r *DecodeRank) Step(now Time, ev Event) ([]Action, error) { return nil, nil }

// Deadline is the time by which Step(Tick) must be called; 0: none.
func (r *DecodeRank) Deadline() Time { return 0 }

// Status is a snapshot for people.
func (r *DecodeRank) Status() DecodeRankStatus { return DecodeRankStatus{} }
