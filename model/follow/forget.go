package follow

// What is over is forgotten, so that memory is bounded by what is live.

func (f *Follower) decodeOver(r *decodeRank) {
	r.over = true
	f.hide(Act{Name: "DecodeCrash", Node: r.node})
}

func (f *Follower) prefillOver(p *prefillRank) {
	p.batches = map[uint64]*sourceBatch{}
}

func (f *Follower) leaderOver(r *decodeLeader) {
	r.over = true
	for _, t := range r.reqs {
		if x := f.s.transfer(t); x.lead >= leadSubmitted && x.lead <= leadRun {
			x.lead, x.cause = leadFailed, causeDerived
		}
	}
}
