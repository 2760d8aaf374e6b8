package plants

// receipts: answers that come, or are taken, too early.
func receipts() []Plant {
	return []Plant{
		{
			Name: "ack-undrained", What: "prefill answers an abort although writes of the lease are still under way",
			Guard: "Receipts only after drain", Cases: []string{"B01", "B08"}, Mix: "aborts", Want: []string{"I9", "I2"},
			Edits: []Edit{{"core.PrefillRank.drain", Never, "!r.drained(l)", ""}},
		},
		{
			Name: "complete-undrained", What: "prefill says Complete when its last batch is queued: writes are under way and no notice stands behind them",
			Guard: "Receipts only after drain", Cases: []string{"B15"}, Mix: "aborts", Want: []string{"I9", "I2", "fidelity"},
			Edits: []Edit{{"core.PrefillRank.finish", Never, "l.link.state != linkOpen && l.link.pull || !r.drained(l)", ""}},
		},
		{
			Name: "complete-unwritten", What: "prefill says Complete although parts of the plan were never posted",
			Guard: "Receipts only after drain", Cases: []string{"B10", "B48"}, Mix: "aborts", Want: []string{"I9", "fidelity"},
			Edits: []Edit{{"core.PrefillRank.finish", Never, "l.link.pull && !p.offered || p.sealed < p.hi || !l.link.pull && p.posted < p.hi", ""}},
		},
		{
			Name: "taken-undrained", What: "decode takes a receipt before the notices that it lists are in",
			Guard: "Receipts taken only after decode's half", Cases: []string{"B15"}, Mix: "aborts", Want: []string{"I2", "I5"},
			Edits: []Edit{{"core.DecodeRank.tryTake", Never, "!h.drained(m)", ""}},
		},
		{
			Name: "one-channel", What: "the notice of one channel counts for all channels of a lease",
			Guard: "Completion after visibility, per channel", Cases: []string{"B15"}, Mix: "aborts", Want: []string{"I2", "fidelity"},
			Edits: []Edit{{"core.dhold.drained", Value, "!slices.ContainsFunc(h.notices, func(n spec.Channel) bool { return n.ID == c.ID && n.Notice >= c.Notice })", "len(h.notices) == 0"}},
		},
		{
			Name: "notice-overtakes", What: "the fabric shows a notice before the writes that stand before it on its channel",
			Guard: "Completion after visibility, per channel", Cases: []string{"B15"}, Mix: "aborts", Want: []string{"I2", "fidelity"},
			Edits: []Edit{{"mem.notice.can", Value, "n.f.faults.NoticesFirst || n.clear()", "n.State == Queued && n.clear() || n.State != Queued && n.l.dst != nil"}},
		},
		{
			Name: "gone-undrained", What: "prefill says Gone for a lease that was posted, answered and forgotten: no notice of it can be named",
			Guard: "Receipts only after drain", Cases: []string{"B08"}, Mix: "forgetful", Want: []string{"I2"},
			Edits: []Edit{{"core.PrefillRank.gate", Never, "id >= k.mark && id < k.blind", ""}},
		},
	}
}

// words: what is no receipt and is taken for one.
func words() []Plant {
	return []Plant{
		{
			Name: "report-is-receipt", What: "the word that prefill has given up ends the hold, before the drain",
			Guard: "Receipts only after drain", Cases: []string{"B08", "B46"}, Mix: "aborts", Want: []string{"I2"},
			Edits: []Edit{{"core.DecodeRank.onFailing", First, "h.since = r.now", `r.fail(l, sane(m.Cause), m.Detail, true); r.endHold(h, "a report"); return`}},
		},
		{
			Name: "refusal-is-receipt", What: "a peer that refuses to act upon a message counts as one that writes no more",
			Guard: "Receipts only after drain", Cases: []string{"B08", "B45"}, Mix: "aborts", Want: []string{"I2"},
			Edits: []Edit{{"core.DecodeRank.onRefused", First, "h.since = r.now", `r.fail(l, spec.CausePeerFailed, "refused", true); r.endHold(h, "a refusal"); return`}},
		},
		{
			Name: "new-life-is-receipt", What: "a peer that comes back as another incarnation proves that the old one's writes are over",
			Guard: "Only the granted incarnation answers", Cases: []string{"B34", "B36"}, Mix: "restarts", Want: []string{"I2", "fidelity"},
			Edits: []Edit{{"core.DecodeRank.accept", First, "k.accepted = &m", `for _, h := range slices.Clone(k.owed) {
						if h != nil && h.standing && h.inc != m.Identity.Incarnation {
							r.fail(h.lease, spec.CausePeerLost, "it was started anew", true)
							r.endHold(h, "another life")
						}
					}`}},
		},
		{
			Name: "close-is-quiet", What: "a lost data path ends the holds of its link: closed is taken for quiet",
			Guard: "Fence waits for placers in progress", Cases: []string{"B09", "B26"}, Mix: "fences", Want: []string{"I2"},
			Edits: []Edit{{"core.DecodeRank.dataLost", First, `r.fence(k, "data path lost")`, `for _, h := range slices.Clone(k.owed) {
						if h != nil && h.standing {
							r.fail(h.lease, spec.CauseTransport, "data path lost", true)
							r.endHold(h, "closed")
						}
					}`}},
		},
		{
			Name: "failure-is-over", What: "a batch that failed counts as over: its writes may still be queued",
			Guard: "Retry only after drain", Cases: []string{"B26", "B37"}, Mix: "fences", Want: []string{"I6", "I2"}, With: []string{"batches-fail"},
			Why: "few batches fail in a drawn run",
			Edits: []Edit{{"core.PrefillRank.posted", Instead, "if k.epoch == b.epoch && k.state <= linkOpen { r.failLease(l, spec.CauseTransport, e.Err) r.fenceLink(k, spec.CauseTransport) }",
				`r.batchOver(b); r.failLease(l, spec.CauseTransport, e.Err); r.drain(l); r.reap(k)`}},
		},
	}
}
