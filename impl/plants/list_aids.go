package plants

// aids take away what would hide a bug: the machines' own assertions, so that the oracle outside of them has to see; and the detectors, since
// a prevention guard is dropped with detection off.
func aids() []Plant {
	return []Plant{
		{
			Name: "mute", What: "the machines assert nothing: none stops for a broken invariant, and what it would withhold goes out",
			Edits: []Edit{
				{"core.DecodeRank.broken", Skip, "r.stop(n, fmt.Sprintf(format, args...))", ""},
				{"core.PrefillRank.broken", Skip, "r.stop(invariant, fmt.Sprintf(format, args...))", ""},
				{"core.DecodeLeader.broken", First, "if l.stopped { return }", "return"},
				{"core.PrefillRank.answer", Never, "l.posts > 0 || l.posted && (!l.noticed || len(l.channels) == 0) || k.state > linkOpen || l.epoch != k.epoch", ""},
				{"core.PrefillRank.mayPost", First, "switch {", "return true"},
				{"core.DecodeRank.assertShared", First, "kv := r.pools[spec.KV]", "return true"},
				{"core.DecodeRank.assertOwn", First, "for _, p := range l.pages[c][lo:hi] {", "return true"},
				{"core.DecodeRank.assertWriters", First, "owed := make(map[partKey]PeerID, len(l.parts))", "return true"},
				{"core.DecodeRank.assertChecks", First, "want := len(l.pages[spec.KV]) - int(r.localFrom(l)) + len(l.old) + l.sharedTags", "return true"},
				{"core.DecodeRank.ledgerEnd", Never, "h.standing", ""},
				{"core.DecodeRank.fenceDone", Never, "h.lease.state != dleaseRevoking", ""},
				{"core.DecodeRank.publish", Never, "h.standing", ""},
				{"core.DecodeLeader.decide", Never, "x.verdict != verdictOpen", ""},
				{"core.DecodeLeader.succeed", Never, "x.state != xRunning || x.busy || !x.readyAll() || x.holds() != len(x.held) || x.req.x != x", ""},
				{"core.DecodeLeader.refuse", Never, "l.requests[s.Req] != nil", ""},
			},
		},
		{
			Name: "blind", What: "what Verify finds is not heeded",
			Edits: []Edit{{"core.DecodeRank.verified", Never, "len(e.Bad) > 0", ""}},
		},
		{
			Name: "slow-device", What: "seals, verifications and steps take fifty times as long",
			Edits: []Edit{{"sim.World.work", First, "w.works = append(w.works,", "most *= 50"}},
		},
		{
			Name: "batches-fail", What: "every fourth batch is said to have failed while its writes are still queued",
			Edits: []Edit{
				{"mem.batch.can", Value, "d == Advance && b.queue == 0 || d == Fail", "d == Advance && (b.queue == 0 || b.ID%4 == 0) || d == Fail"},
				{"mem.batch.step", First, "b.over = true", "if d == Advance && b.queue > 0 { b.err = ErrFailed }"},
			},
		},
	}
}
