package plants

// admission: requests that cannot fit, and placeholders for them.
func admission() []Plant {
	return []Plant{
		{
			Name: "placeholder", What: "prefill puts one token in the place of a prompt that is too long for it, and sends what it has of that",
			Guard: "Admission refuses what cannot fit", Cases: []string{"B06"}, Mix: "tight", Want: []string{"I3"}, With: []string{"complete-unread", "blind"},
			Why: "the incident needs all of it: decode's admission knows another limit, Complete names nothing, and nobody looks at tags",
			Edits: []Edit{
				{"core.DecodeLeader.measure", Never, "prefill != 0 && prompt > uint64(prefill)", ""},
				{"core.DecodeLeader.pick", Never, "uint64(p.capacity) < uint64(len(q.sub.Prompt))", ""},
				{"core.DecodeLeader.peerSaid", Never, "uint64(b.Tokens) != uint64(len(x.req.sub.Prompt))", ""},
				{"core.PrefillLeader.recvAsk", First, `if c, limit, detail := l.admit(a.Prompt, a.Adapter); c != "" {`, "if len(a.Prompt) > int(l.cfg.Capacity()) { a.Prompt = a.Prompt[:1] }"},
				{"core.PrefillRank.judgeGrant", Never, "j.assigned && g.Tokens != j.tokens", ""},
				{"core.PrefillRank.judgeGrant", First, "lo, hi := p.PageRange(*layoutOf(r.own, p.Component))", "if j.assigned { p.TokenHi = min(p.TokenHi, j.tokens) }"},
			},
		},
		{
			Name: "complete-unread", What: "decode does not compare what Complete says of tokens, tenant and parts with its own request",
			Guard: "Complete names its parts, tokens, tenant", Cases: []string{"B06", "B17"}, Tests: true, Why: "an honest prefill says nothing else",
			Edits: []Edit{
				{"core.DecodeRank.strike", Never, "c.Tokens != l.tokens", ""},
				{"core.DecodeRank.strike", Never, "c.Request != l.request", ""},
				{"core.DecodeRank.strike", Never, "len(c.Parts) != len(h.parts)", ""},
			},
		},
		{
			Name: "other-limit", What: "decode admits by its window alone: what its own pools can never hold is let in",
			Guard: "Admission refuses what cannot fit", Cases: []string{"B06", "B49"}, Mix: "small", Want: []string{"answer"},
			Edits: []Edit{{"core.DecodeLeader.measure", Never, "prompt+maxNew > uint64(l.capacity)", ""}},
		},
		{
			Name: "other-prompt", What: "two requests with one prompt are taken for one at prefill: its label decides, not the transfer",
			Guard: "Epoch, incarnation, generation, nonce on everything", Cases: []string{"B33", "B45"}, Mix: "calm", Want: []string{"fidelity"},
			Edits: []Edit{{"core.PrefillLeader.recvAsk", First, "if j := l.bound[a.Transfer]; j != nil {", `for _, o := range l.order {
						if o.bound && o.transfer != a.Transfer && o.request == spec.DigestRequest(a.Prompt, domain) {
							l.do(ReplyLeader{Peer: p, Body: spec.Asked{Transfer: a.Transfer, Tokens: uint32(len(a.Prompt))}})
							return
						}
					}`}},
		},
		{
			Name: "bound-twice", What: "a half that was started at prefill first is given to every Ask that quotes its name",
			Guard: "Epoch, incarnation, generation, nonce on everything", Cases: []string{"B33", "B02"}, Mix: "halves", Want: []string{"fidelity"},
			Edits: []Edit{{"core.PrefillLeader.bind", First, "switch {", "if j != nil { j.bound = false }"}},
		},
	}
}
