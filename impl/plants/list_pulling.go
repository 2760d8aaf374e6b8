package plants

// pulling: pages that are read at their source by the other end.
func pulling() []Plant {
	return []Plant{
		{
			Name: "read-said-early", What: "decode says Read while a copy of the lease still runs",
			Guard: "Prefill's hold for a reader, decode's for its copies (pull)", Cases: []string{"B25", "B04"}, Mix: "pull-aborts", Want: []string{"I6"},
			Edits: []Edit{{"core.DecodeRank.pullOver", Value, "h.standing && h.pull.running == 0", "h.standing"}},
		},
		{
			Name: "reader-unheld", What: "prefill's hold ends with its Complete: the reader's copies hold nothing",
			Guard: "Prefill's hold for a reader, decode's for its copies (pull)", Cases: []string{"B25", "B41"}, Mix: "pull-aborts", Want: []string{"I6"},
			Edits: []Edit{{"core.PrefillRank.answer", Always, "l.offered == 0", ""}},
		},
		{
			Name: "reader-timeout", What: "a reader that does not say Read in time loses its pages, and nobody stops it",
			Guard: "Prefill's hold for a reader, decode's for its copies (pull)", Cases: []string{"B04", "B18"}, Mix: "pull-fences", Want: []string{"I6"},
			Edits: []Edit{{"core.PrefillRank.offerTimers", Instead, "r.send(k, l.answer)", "r.giveBack(l); return"}},
		},
		{
			Name: "reader-parted", What: "a link that is given up ends its reader's hold, although the reader lives",
			Guard: "Prefill's hold for a reader, decode's for its copies (pull)", Cases: []string{"B04", "B26"}, Mix: "pull-fences", Want: []string{"I6"},
			Edits: []Edit{{"core.PrefillRank.killLease", Always, "l.offered == 0", ""}},
		},
		{
			Name: "copy-unheld", What: "an abort frees pages that a copy still stores into",
			Guard: "Prefill's hold for a reader, decode's for its copies (pull)", Cases: []string{"B01", "B31"}, Mix: "pull-aborts", Want: []string{"I6", "I2", "I10"},
			Edits: []Edit{
				{"core.DecodeRank.copyPart", Always, "r.ledgerAdd(l, jobHold(r.lastJob))", ""},
				{"core.DecodeRank.pullDone", Skip, "r.ledgerEnd(l, jobHold(e.Job))", ""},
				{"core.DecodeRank.pullOver", Value, "h.standing && h.pull.running == 0", "h.standing"},
			},
		},
		{
			Name: "copy-after-abort", What: "an offer that comes after the abort starts a copy",
			Guard: "Prefill's hold for a reader, decode's for its copies (pull)", Cases: []string{"B01", "B26"}, Mix: "pull-aborts", Want: []string{"I6", "I2"},
			Edits: []Edit{{"core.DecodeRank.onOffer", Never, "l.state != dleaseFilling || !h.standing", ""}},
		},
		{
			Name: "half-page-offered", What: "a part is offered when the first of its pages is sealed",
			Guard: "Write only what is sealed", Cases: []string{"B13", "B16"}, Mix: "pull-calm", Want: []string{"fidelity", "I3"},
			Edits: []Edit{{"core.PrefillRank.offer", Value, "p.offered || p.sealed < p.hi", "p.offered || p.sealed == p.lo && p.lo < p.hi"}},
		},
		{
			Name: "trusted-source", What: "a reader compares neither the source's tag nor its digest nor the epoch after its copy", With: []string{"reader-unheld"},
			Guard: "Source tag and epoch checked after the copy (pull)", Cases: []string{"B02", "B04", "B18"}, Mix: "pull-aborts", Want: []string{"I6", "I3"},
			Why:   "a source that is held for its reader does not change",
			Edits: []Edit{{"mem.job.advance", Always, "j.r.f.faults.TrustSource", ""}},
		},
	}
}
