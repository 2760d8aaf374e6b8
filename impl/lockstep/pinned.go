package lockstep

// Pinned are the settings whose every step is replayed, by name.
func Pinned() []Setting {
	with := func(c ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i+1 < len(c); i += 2 {
			m[c[i]] = c[i+1]
		}
		return m
	}
	return []Setting{
		{Name: "push", About: "one lease, one write", KV: 1, Source: 1, Prompt: 1, Constants: with("Breaking", "TRUE", "Marking", "TRUE", "Views", `{"same", "other", "short"}`)},
		{Name: "fence", About: "fences of both ends, lost writes", KV: 1, Source: 1, Prompt: 1, Constants: with("NE", "1", "PFencing", "TRUE", "Losing", "TRUE")},
		{Name: "restart", About: "prefill restarts", KV: 1, Source: 1, Prompt: 1, Constants: with("NE", "1", "NI", "1", "PFencing", "TRUE")},
		{Name: "reborn", About: "decode restarts", KV: 1, Source: 1, Prompt: 1, Constants: with("ND", "1", "NL", "2", "NT", "2", "PFencing", "TRUE", "Marking", "FALSE")},
		{Name: "two", About: "two ranks, an auxiliary record, two channels", KV: 1, Aux: 1, Source: 1, Prompt: 1, Constants: with("Rank", "{r1, r2}", "NQ", "2")},
		{Name: "torn", About: "a tag without its bytes, and the fence that cures", KV: 1, Source: 1, Prompt: 1, Constants: with("NE", "1", "PFencing", "TRUE", "PlantTorn", "TRUE")},
		{Name: "bystander", About: "a finding on a link that owes another lease a part", KV: 2, Source: 1, Prompt: 1, Unfilled: 1 << 2,
			Constants: with("NL", "2", "NT", "2", "NE", "1", "PlantTorn", "TRUE")},
		{Name: "flip", About: "bytes that change under way", KV: 1, Source: 1, Prompt: 1, Constants: with("NE", "1", "PFencing", "TRUE", "PlantFlip", "TRUE")},
		{Name: "forget", About: "a prefill rank that keeps one answer", KV: 2, Source: 1, Prompt: 1, Answers: 1, Constants: with("NL", "2", "NT", "2", "OwnMarking", "TRUE")},
		{Name: "tail", About: "growth and appending", KV: 2, Source: 1, Prompt: 1, Constants: with("NL", "2", "Appending", "TRUE", "Growing", "TRUE")},
		{Name: "prefix", About: "published pages and shares of them", KV: 3, Source: 2, Prompt: 3, Published: 2, Constants: with("NL", "2", "NT", "2", "NQ", "2", "Publishing", "TRUE", "Prefix", "{f1, f2}")},
		{Name: "reuse", About: "two leases, one after the other", KV: 1, Source: 1, Prompt: 1, Constants: with("NL", "2", "NT", "2", "NE", "1", "PFencing", "TRUE")},
		{Name: "domains", About: "prefixes of other tenants and adapters", KV: 3, Source: 2, Prompt: 3, Published: 2, Constants: with("NL", "2", "NT", "2", "NQ", "2", "Publishing", "TRUE", "Tenant", "{t1, t2}")},
		{Name: "life", About: "a request from its arrival to its answer, with both leaders", KV: 1, Source: 1, Prompt: 1, Leaders: true, Hold: true,
			Constants: with("Asking", "TRUE", "Running", "TRUE", "Causes", `{"original"}`)},
		{Name: "big", About: "a request that can never fit, beside one that can", KV: 1, Source: 1, Prompt: 1, Leaders: true, Unfilled: 1 << 2,
			Constants: with("Asking", "TRUE", "Running", "TRUE", "Causes", `{"original"}`, "Big", "{1}", "NT", "2")},
		{Name: "again", About: "a request that is tried again after a fence", KV: 1, Source: 1, Prompt: 1, Leaders: true, Unfilled: 1<<1 | 1<<2, OneRequest: true,
			Constants: with("Asking", "TRUE", "Running", "TRUE", "Retrying", "TRUE", "Causes", `{"derived", "original"}`, "NT", "2", "NL", "2", "NE", "1", "PFencing", "TRUE")},
		{Name: "stray", About: "somebody else's write, found before, in and behind a step", KV: 1, Source: 1, Prompt: 1, Leaders: true,
			Constants: with("Running", "TRUE", "PlantStray", "TRUE", "Causes", `{"derived", "original"}`, "NE", "1", "PFencing", "TRUE")},
	}
}

// Find is the pinned setting of a name, ready to use.
func Find(name string) (Setting, bool) {
	for _, s := range Pinned() {
		if s.Name == name {
			full, err := s.fill()
			return full, err == nil
		}
	}
	return Setting{}, false
}
