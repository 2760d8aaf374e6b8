package plants

// filling: what is written, and by whom.
func filling() []Plant {
	return []Plant{
		{
			Name: "half-page-sealed", What: "a page is sealed when its first token is computed",
			Guard: "Write only what is sealed", Cases: []string{"B13"}, Mix: "push", Want: []string{"I3"},
			Edits: []Edit{{"core.PrefillRank.final", Value, "j.computed/t", "(j.computed+t-1)/t"}},
		},
		{
			Name: "chunk-said-early", What: "a chunk counts as computed when its computation begins",
			Guard: "Write only what is sealed", Cases: []string{"B13"}, Mix: "push", Want: []string{"I3", "fidelity"},
			Edits: []Edit{{"core.PrefillLeader.kick", First, "l.do(Compute{Transfer: j.key, Tokens: j.prompt, From: j.done, To: l.chunkTo, Last: l.chunkTo == uint32(len(j.prompt)), Sampling: j.sampling, Adapter: j.adapter, Pages: j.pages})",
				"l.toRanks(ChunkDone{Transfer: j.key, From: j.done, To: l.chunkTo, Last: l.chunkTo == uint32(len(j.prompt))})"}},
		},
		{
			Name: "two-writers", What: "every prefill rank writes the auxiliary record, and only one of them has it",
			Guard: "One writer for each part and record", Cases: []string{"B12"}, Mix: "calm", Want: []string{"I13", "I3"},
			Edits: []Edit{
				{"core.DecodeRank.plan", First, "for i := range ps {", `if c == spec.Aux {
						for k := range srcs {
							if srcs[k] != nil && spec.Rank(k) != writer {
								x := ps[0]
								x.Rank, x.Index = spec.Rank(k), spec.PartIndex(len(ps))
								ps = append(ps, x)
							}
						}
					}`},
				{"core.PrefillRank.judgePart", Never, "p.Component == spec.Aux && (!ok || writer != r.cfg.Identity.Rank)", ""},
				{"core.PrefillRank.takePages", Never, "l.Component == spec.Aux && (!ok || writer != r.cfg.Identity.Rank)", ""},
				{"sim.prefillSide.compute", First, "x.toy.eachRecord(r.mem, &pages, x.prompt, func(got, want []byte) { put(got, want, noise) })", "if k > 0 { pages[spec.Aux] = nil }"},
			},
		},
		{
			Name: "prefix-misaligned", What: "behind a shared prefix prefill sends its first pages in place of those that are owed",
			Guard: "Mapping", Cases: []string{"B19"}, Mix: "sharing", Want: []string{"I3"},
			Edits: []Edit{
				{"core.PrefillRank.post", Value, "spec.SourcePage(j.pages[p.part.Component][p.posted])", "spec.SourcePage(j.pages[p.part.Component][p.posted-p.lo])"},
				{"core.PrefillRank.sealItem", Value, "spec.SourcePage(l.job.pages[p.part.Component][i])", "spec.SourcePage(l.job.pages[p.part.Component][i-p.lo])"},
			},
		},
	}
}
