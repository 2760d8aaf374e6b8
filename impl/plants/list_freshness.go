package plants

// freshness: messages, writes and pages of another time that are believed.
func freshness() []Plant {
	return []Plant{
		{
			Name: "tombstone-forgotten", What: "a late grant of a lease that is over starts its work again: marks are not looked at",
			Guard: "Marks", Cases: []string{"B33", "B02"}, Mix: "late", Want: []string{"I2"},
			Edits: []Edit{{"core.PrefillRank.gate", Never, "id < max(k.mark, k.ownMark)", ""}},
		},
		{
			Name: "mark-early", What: "decode's mark passes leases whose holds still stand: prefill forgets what it still has to answer",
			Guard: "Marks", Cases: []string{"B08"}, Mix: "calm", Want: []string{"fidelity"},
			Edits: []Edit{{"core.DecodeRank.mark", Skip, "m = min(m, k.owed[0].lease.id)", ""}},
		},
		{
			Name: "answer-forgotten", What: "prefill forgets an answer as soon as it has sent it, and a repeated grant starts the work again",
			Guard: "Marks", Cases: []string{"B08", "B33"}, Mix: "push", Want: []string{"I2", "I9"},
			Edits: []Edit{{"core.PrefillRank.answer", First, "r.boundAnswers(k)", "if l.offered == 0 { r.forget(l) }"}},
		},
		{
			Name: "grant-twice", What: "a repeated grant of a lease that is held starts its work again",
			Guard: "Marks", Cases: []string{"B33", "B02"}, Mix: "push", Want: []string{"I9", "I2", "I17", "answer", "fidelity"},
			Edits: []Edit{
				{"core.PrefillRank.recvGrant", Never, "l != nil", ""},
				{"core.PrefillRank.judgeGrant", Never, "o != l && o.link == k", ""},
			},
		},
		{
			Name: "generation-kept", What: "a page is handed out again in the generation that it had",
			Guard: "Epoch, incarnation, generation, nonce on everything", Cases: []string{"B02", "B36"}, Mix: "sharing", Want: []string{"model"}, Model: true,
			Why:   "the lease in a tag, and the lease of a grant, tell owners apart as well: the generation is the second guard",
			Edits: []Edit{{"pages.Ledger.give", Instead, "r.gen++", "r.gen = max(r.gen, 1)"}},
		},
		{
			Name: "nonce-unread", What: "an answer to an older connect configures a link",
			Guard: "Epoch, incarnation, generation, nonce on everything", Cases: []string{"B34", "B54"}, Tests: true,
			Why:   "each simulated connect has a connection of its own, so that no answer comes to another one",
			Edits: []Edit{{"core.DecodeRank.accept", Never, "m.Nonce != k.nonce", ""}},
		},
		{
			Name: "incarnation-unread", What: "a message that is addressed to, or sent by, another life is taken",
			Guard: "Epoch, incarnation, generation, nonce on everything", Cases: []string{"B34"}, Tests: true,
			Why: "the connections of a dead process die with it",
			Edits: []Edit{
				{"core.DecodeRank.recv", Never, "env.To != r.own", ""}, {"core.DecodeRank.onReceipt", Never, "env.From != h.inc", ""},
				{"core.PrefillRank.recv", Never, "h.To != r.cfg.Identity.Incarnation", ""}, {"core.PrefillRank.recv", Never, "h.From != k.identity.Incarnation", ""},
			},
		},
		{
			Name: "epoch-unread", What: "a receipt, and a notice, of another epoch's grant counts for this one",
			Guard: "Epoch, incarnation, generation, nonce on everything", Cases: []string{"B34"}, Tests: true,
			Why:   "lease numbers are never used twice by one incarnation: the epoch is the second guard",
			Edits: []Edit{{"core.DecodeRank.onReceipt", Never, "m.epoch != h.epoch", ""}, {"core.DecodeRank.noticeIn", Never, "h == nil || !h.standing || h.epoch != e.Epoch", ""}},
		},
		{
			Name: "layout-unread", What: "pools whose bytes mean something else are taken for equal",
			Guard: "Compatibility", Cases: []string{"B29", "B38"}, Tests: true, Why: "all simulated pools are alike",
			Edits: []Edit{{"core.DecodeRank.compareLayouts", First, "if err := own.Equal.Compare(l.Component, l.Equal); err != nil {", "continue"}},
		},
	}
}
