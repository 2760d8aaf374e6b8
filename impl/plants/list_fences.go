package plants

// fences: those that are missing, or do not fence.
func fences() []Plant {
	return []Plant{
		{
			Name: "fence-missing", What: "a link that is given up releases its holds, and fences nothing",
			Guard: "Fence before release on silence", Cases: []string{"B42", "B09"}, Mix: "fences", Want: []string{"I2"},
			Edits: []Edit{{"core.DecodeRank.fence", Instead, "r.do(Fence{Peer: k.cfg.ID, Old: old, New: k.epoch})", `k.fencing, k.fenced = k.fencing[:len(k.fencing)-1], old
					for _, h := range slices.Clone(k.owed) {
						if h != nil && h.standing {
							r.fail(h.lease, spec.CauseFenced, why, true)
							r.endHold(h, "given up")
						}
					}`}},
		},
		{
			Name: "epoch-kept", What: "a fence does not raise the epoch, but for the first",
			Guard: "Fence raises the epoch", Cases: []string{"B34"}, Mix: "fences", Want: []string{"I16"},
			Edits: []Edit{{"core.DecodeRank.fence", Instead, "k.epoch++", "k.epoch = max(k.epoch, 1)"}},
		},
		{
			Name: "fence-unraised", What: "a write that comes to its check after the fence is placed all the same",
			Guard: "Fence raises the epoch", Cases: []string{"B09"}, Mix: "bare-fences", Want: []string{"I16"},
			Edits: []Edit{{"mem.write.check", Value, "w.l.dead || t.gone || t.fencing", "w.l.dead"}},
		},
		{
			Name: "fence-unwaited", What: "decode's fence is back before the placers that had passed its check have stopped",
			Guard: "Fence waits for placers in progress", Cases: []string{"B09", "B26"}, Mix: "fences", Want: []string{"I16", "I2"},
			Edits: []Edit{{"mem.Target.Fence", Always, "t.f.faults.FenceAtOnce || !t.placing()", ""}},
		},
		{
			Name: "reader-unwaited", What: "a reader's fence is back before its copies have stopped",
			Guard: "Fence waits for placers in progress", Cases: []string{"B26"}, Mix: "pull-fences", Want: []string{"I16"},
			Edits: []Edit{{"mem.Reader.Fence", Always, "r.f.faults.FenceAtOnce || r.first() == nil", ""}},
		},
		{
			Name: "open-unfenced", What: "a new epoch opens while the fence of the older one is not back, and that counts as its end",
			Guard: "Fence waits for placers in progress", Cases: []string{"B34"}, Mix: "fences", Want: []string{"I2", "I16"},
			Edits: []Edit{
				{"core.DecodeRank.openData", Never, "k.state != dlinkConnecting || k.accepted == nil || len(k.fencing) > 0", ""},
				{"core.DecodeRank.openData", First, "k.state = dlinkOpening", `if k.state != dlinkConnecting || k.accepted == nil {
						return
					}
					for _, h := range slices.Clone(k.owed) {
						if h != nil && h.standing {
							r.endHold(h, "a new epoch")
						}
					}`},
			},
		},
	}
}

// epochs: what an epoch that is over goes on doing.
func epochs() []Plant {
	return []Plant{
		{
			Name: "source-unfenced", What: "prefill gives source pages back when it gives a link up, without the fence of its own end",
			Guard: "Deferred release, prefill side", Cases: []string{"B25", "B26"}, Mix: "fences", Want: []string{"I6"},
			Edits: []Edit{{"core.PrefillRank.closeEpoch", First, "k.sendq, k.posts, k.dead = nil, 0, max(k.dead, k.blind)", `for _, id := range append([]uint64(nil), r.batchq...) {
						if b := r.batches[id]; b != nil && b.link == k {
							r.batchOver(b)
						}
					}`}},
		},
		{
			Name: "fence-keeps-filling", What: "a fence lets the leases of its link go on filling",
			Guard: "Epoch, incarnation, generation, nonce on everything", Cases: []string{"B34"}, Mix: "fences", Want: []string{"I7", "I10"},
			Edits: []Edit{{"core.DecodeRank.fence", Never, "h != nil && h.standing && h.lease.state == dleaseFilling", ""}},
		},
		{
			Name: "old-epoch-posted", What: "prefill goes on with the leases of an epoch that is over",
			Guard: "Epoch, incarnation, generation, nonce on everything", Cases: []string{"B34", "B36"}, Mix: "fences", Want: []string{"I14", "I9"},
			Edits: []Edit{{"core.PrefillRank.closeEpoch", Skip, "r.killLease(l, why)", ""}},
		},
		{
			Name: "quarantine-unfenced", What: "bad pages come back although no link that was granted them has been fenced",
			Guard: "Quarantine ends by proof", Cases: []string{"B08"}, Mix: "sharing", Want: []string{"model"}, Model: true, Why: "nothing in a simulated run writes where it has no grant and tries again: what the fence would stop does not come",
			Edits: []Edit{{"core.DecodeRank.settleFindings", Skip, "open = open || !w.done", ""}},
		},
		{
			Name: "table-unwaited", What: "the grant table of the real transports does not wait for the placers of an older epoch",
			Guard: "Fence waits for placers in progress", Cases: []string{"B09"}, Tests: true, Why: "the simulation's fabric has no goroutines to wait for",
			Edits: []Edit{{"transport.Grants.Wait", Never, "g.placersBelow(e) > 0", ""}},
		},
		{
			Name: "peer-given-up", What: "a link that is silent, or does not answer, is never fenced",
			Guard: "No leak", Cases: []string{"B42"}, Tests: true, Why: "every simulated fault is healed in the end, and then the link answers",
			Edits: []Edit{{"core.DecodeRank.linkLife", Skip, `r.fence(k, "silence")`, ""}, {"core.DecodeRank.repeatTime", Skip, `r.fence(k, fmt.Sprintf("lease %d stayed unanswered", id))`, ""}},
		},
	}
}
