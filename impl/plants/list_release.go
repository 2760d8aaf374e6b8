package plants

// release: holds that end without proof.
func release() []Plant {
	return []Plant{
		{
			Name: "abort-frees", What: "an abort frees decode's pages at once: no link's hold keeps them",
			Guard: "Deferred release, decode side", Cases: []string{"B01", "B26"}, Mix: "aborts", Want: []string{"I13", "I2"},
			Edits: []Edit{
				{"core.DecodeRank.goOn", Always, "r.ledgerAdd(l, linkHold(k))", ""},
				{"core.DecodeRank.endHold", Skip, "r.ledgerEnd(h.lease, linkHold(h.link))", ""},
			},
		},
		{
			Name: "source-frees", What: "prefill's source pages go back while a posted batch still reads them",
			Guard: "Deferred release, prefill side", Cases: []string{"B25"}, Mix: "fences", Want: []string{"I6"},
			Edits: []Edit{
				{"core.PrefillRank.post", Skip, "r.hold(j, pages.Hold{Kind: pages.OperationKind, ID: b.id})", ""},
				{"core.PrefillRank.batchOver", Skip, "r.endHold(b.job, pages.Hold{Kind: pages.OperationKind, ID: b.id})", ""},
			},
		},
		{
			Name: "kernel-frees", What: "an abort at prefill gives pages back that a kernel still computes into",
			Guard: "Holds of local kernels", Cases: []string{"B13", "B25"}, Mix: "aborts", Want: []string{"I2"},
			Edits: []Edit{
				{"core.PrefillRank.takePages", Skip, "r.hold(j, kernelHold)", ""},
				{"core.PrefillRank.computeIsOver", Skip, "r.endHold(j, kernelHold)", ""},
				{"core.PrefillRank.untake", Skip, "r.endHold(j, kernelHold)", ""},
				{"core.PrefillRank.settle", Always, "j.computeOver || !j.assigned", ""},
			},
		},
		{
			Name: "seal-frees", What: "a page goes back while its seal still reads it, and writes its source tag",
			Guard: "Holds of local kernels", Cases: []string{"B25"}, Mix: "pull-aborts", Want: []string{"fidelity"}, With: []string{"slow-device"}, Why: "a seal is over sooner than its pages are computed anew",
			Edits: []Edit{
				{"core.PrefillRank.seal", Skip, "r.hold(l.job, sealHold(l.sealing))", ""},
				{"core.PrefillRank.sealed", Skip, "r.endHold(l.job, sealHold(e.Seal))", ""},
			},
		},
		{
			Name: "verify-frees", What: "an aborted lease's pages go back while they are still being verified",
			Guard: "Holds of local kernels", Cases: []string{"B31"}, Tests: true, Why: "it only reads, and nobody waits for what it finds in a lease that is over",
			Edits: []Edit{
				{"core.DecodeRank.partsIn", Always, "r.ledgerAdd(l, verifyHold())", ""},
				{"core.DecodeRank.verified", Skip, "r.ledgerEnd(l, verifyHold())", ""},
			},
		},
		{
			Name: "step-frees", What: "an aborted lease's pages go back while a step still reads and appends",
			Guard: "Holds of local kernels", Cases: []string{"B31", "B44"}, Mix: "aborts", Want: []string{"I2", "I3", "fidelity"}, With: []string{"slow-device"}, Why: "it is over sooner than its pages are filled anew",
			Edits: []Edit{
				{"core.DecodeRank.readBegin", Always, "r.ledgerAdd(l, readHold())", ""},
				{"core.DecodeRank.readEnd", Skip, "r.ledgerEnd(l, readHold())", ""},
			},
		},
	}
}

// timeouts: holds that end because time has passed.
func timeouts() []Plant {
	return []Plant{
		{
			Name: "unanswered-frees", What: "a grant or abort that stays unanswered for its bound frees its pages, without a fence",
			Guard: "Fence before release on silence", Cases: []string{"B08", "B42"}, Mix: "fences", Want: []string{"I2"},
			Edits: []Edit{
				{"core.DecodeRank.repeatTime", Instead, `r.fence(k, fmt.Sprintf("lease %d stayed unanswered", id))`, `r.fail(l, spec.CausePeerLost, "timeout", true); r.endHold(h, "timeout")`},
			},
		},
		{
			Name: "silence-frees", What: "a silent link ends the holds of its leases, without a fence",
			Guard: "Fence before release on silence", Cases: []string{"B42", "B26"}, Mix: "fences", Want: []string{"I2"},
			Edits: []Edit{
				{"core.DecodeRank.linkLife", Instead, `r.fence(k, "silence")`, `k.heard = r.now; r.wake(k, r.now+Time(r.cfg.Liveness))
					for _, h := range slices.Clone(k.owed) {
						if h != nil && h.standing {
							r.fail(h.lease, spec.CausePeerLost, "silence", true)
							r.endHold(h, "silence")
						}
					}`},
			},
		},
		{
			Name: "deadline-frees", What: "a deadline ends the holds of its request's leases",
			Guard: "Deferred release, decode side", Cases: []string{"B04", "B08", "B26"}, Mix: "aborts", Want: []string{"I2"},
			Edits: []Edit{
				{"core.DecodeRank.fail", First, "r.ledgerEnd(l, pages.RequestHold())", `if cause == spec.CauseDeadline {
						for _, h := range l.holds {
							r.endHold(h, "deadline")
						}
					}`},
			},
		},
	}
}

// others: holds that end by the proof of another one, or twice.
func others() []Plant {
	return []Plant{
		{
			Name: "one-link-for-all", What: "the receipt of one link ends the holds of every link of its lease",
			Guard: "Hold per lease and link: all receipts before release", Cases: []string{"B08", "B31"}, Mix: "aborts", Want: []string{"I2", "I4"},
			Edits: []Edit{
				{"core.DecodeRank.tryTake", First, "if m.complete == nil {", `for _, o := range l.holds {
						if o != h {
							r.endHold(o, "another's receipt")
						}
					}`},
			},
		},
		{
			Name: "fence-frees-others", What: "the fence of one link ends the holds of other links of its leases",
			Guard: "Hold per lease and link: all receipts before release", Cases: []string{"B08"}, Mix: "fences", Want: []string{"I2"},
			Edits: []Edit{
				{"core.DecodeRank.fenceDone", First, "r.settleFindings(k, e.Old)", `for _, o := range r.links {
						for _, h := range slices.Clone(o.owed) {
							if h != nil && h.standing && o != k && h.lease.state == dleaseRevoking && h.lease.hold(k) != nil {
								r.endHold(h, "another's fence")
							}
						}
					}`},
			},
		},
		{
			Name: "freed-twice", What: "a repeated receipt ends its hold a second time",
			Guard: "Hold per lease and link: all receipts before release", Cases: []string{"B31"}, Mix: "push", Want: []string{"I10"},
			Edits: []Edit{
				{"core.DecodeRank.onReceipt", Never, "!h.standing", ""},
				{"core.DecodeRank.endHold", Never, "!h.standing", ""},
			},
		},
	}
}

// leaks: holds that never end.
func leaks() []Plant {
	return []Plant{
		{
			Name: "hold-kept", What: "the hold of a link that has answered never ends",
			Guard: "No leak", Cases: []string{"B42", "B33"}, Mix: "aborts", Want: []string{"pages", "answer"},
			Edits: []Edit{{"core.DecodeRank.endHold", Skip, "r.ledgerEnd(h.lease, linkHold(h.link))", ""}},
		},
		{
			Name: "source-kept", What: "the pages of a job that ended badly never come back",
			Guard: "No leak", Cases: []string{"B41", "B46"}, Mix: "aborts", Want: []string{"pages", "answer"},
			Edits: []Edit{{"core.PrefillRank.settle", Never, "j.stopped || j.last && j.told && j.transfer != (spec.TransferID{})", ""}},
		},
		{
			Name: "ready-kept", What: "a request that ends between arrival and its first step leaves its leases behind",
			Guard: "No leak", Cases: []string{"B44"}, Mix: "aborts", Want: []string{"pages", "answer"},
			Edits: []Edit{{"core.DecodeLeader.endTransfer", Value, "!held", "!held || was == xFirst"}},
		},
		{
			Name: "room-untold", What: "nobody is told that pages came back",
			Guard: "No leak", Cases: []string{"B49"}, Mix: "aborts", Want: []string{"answer"},
			Edits: []Edit{{"core.DecodeRank.freed", Skip, "r.tell(PagesFreed{})", ""}, {"core.DecodeLeader.settle", Skip, "l.pagesFreed()", ""}},
		},
	}
}
