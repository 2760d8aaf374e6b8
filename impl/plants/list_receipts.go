package plants

// receipts: answers that come, or are taken, too early.
func receipts() []Plant {
	return []Plant{
		{
			Name: "ack-undrained", What: "prefill answers an abort although writes of the lease are still under way",
			Guard: "Receipts only after drain", Cases: []string{"B01", "B08"}, Mix: "push", Want: []string{"I9", "I2"},
			Edits: []Edit{{"core.PrefillRank.drain", Never, "!r.drained(l)", ""}},
		},
		{
			Name: "taken-undrained", What: "decode takes a receipt before the notices that it lists are in",
			Guard: "Receipts taken only after decode's half", Cases: []string{"B15"}, Mix: "push", Want: []string{"I2", "I5"},
			Edits: []Edit{{"core.DecodeRank.tryTake", Never, "!h.drained(m)", ""}},
		},
	}
}
