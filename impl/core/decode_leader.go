package core

// DecodeLeader admits requests, mints transfers and holds the one verdict of each.
type DecodeLeader struct {
	cfg DecodeLeaderConfig
}

// NewDecodeLeader makes a leader with nothing admitted. cfg goes through WithDefaults and Validate.
func NewDecodeLeader(cfg DecodeLeaderConfig) (*DecodeLeader, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &DecodeLeader{cfg: cfg}, nil
}

// Step carries one event through the machine. An error means that the driver broke its contract.
func (l *DecodeLeader) Step(now Time, ev Event) ([]Action, error) { return nil, nil }

// Deadline is the time by which Step(Tick) must be called; 0: none.
func (l *DecodeLeader) Deadline() Time { return 0 }

// Status is a snapshot for people.
func (l *DecodeLeader) Status() DecodeLeaderStatus { return DecodeLeaderStatus{} }
