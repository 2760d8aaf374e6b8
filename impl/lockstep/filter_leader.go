package lockstep

import "kvfence/model"

// leaderCuts are the kinds of steps that the leaders never take.
func leaderCuts() []Cut {
	return []Cut{
		{Kind: "gateway-answers", Why: "For a decode process that is over the gateway answers, not the engine.", is: func(g *Graph, c *choice) bool {
			return c.name == "Answer" && !g.set.Leaders
		}},
		{Kind: "not-here", Why: "Bounds of one setting: a lease that nothing is begun for, one request that is tried again.", is: func(g *Graph, c *choice) bool {
			return c.name == "Start" && g.set.Unfilled>>c.a.T&1 != 0 || g.set.OneRequest && c.name == "Submit" && c.a.T > 1
		}},
		{Kind: "ask-needs-side", Why: "Prefill is asked when the link is there, and what was asked in an epoch that is over is asked again.", is: func(g *Graph, c *choice) bool {
			return c.one("Ask", "RecvAsk", "RecvAsked") && (!c.s.Up[0] || c.name != "Ask" && (c.h.Asked[c.a.T] != c.s.Ep[0]+1 || g.set.lens.in(c.s, "pfenced", 0, c.s.Dinc, c.s.Ep[0])))
		}},
		{Kind: "asked-at-once", Why: "A request does not wait while its side is there, and fails for its own causes only.", is: func(g *Graph, c *choice) bool {
			return c.name == "Failure" && c.s.Lead[c.a.T] == model.LeadSubmitted && (c.a.C == model.CauseDerived || !g.waits(c))
		}},
		{Kind: "no-report", Why: "A failure that follows from another is reported by the rank that saw it.", is: func(g *Graph, c *choice) bool {
			return g.set.Leaders && c.name == "Failure" && c.a.C == model.CauseDerived && c.h.Report[c.a.T] != model.CauseDerived
		}},
		{Kind: "run-when-ready", Why: "A transfer runs when its lease was ready.", is: func(g *Graph, c *choice) bool {
			return g.set.Leaders && c.name == "Run" && !c.h.Ready[c.a.T]
		}},
		{Kind: "by-its-leader", Why: "A lease ends by its transfer's verdict.", is: func(g *Graph, c *choice) bool {
			lead := c.s.Lead[c.s.Tof[c.a.L]]
			over := lead == model.LeadFailed || lead == model.LeadOk
			return g.set.Leaders && !over && (c.name == "Abort" || c.name == "Release" && c.s.Dst[c.a.L] == model.DstReady)
		}},
		{Kind: "token-first", Why: "A transfer succeeds with a token that was read.", is: func(g *Graph, c *choice) bool {
			return c.name == "Success" && !g.tokenOf(c.s, c.a.T)
		}},
		{Kind: "one-step", Why: "A lease is read by one step at a time, which checks every page of its block table.", is: func(g *Graph, c *choice) bool {
			return c.one("Read", "BadRead") && g.set.lens.kernel(g.w, c.s, c.a.L)
		}},
		{Kind: "tries-again", Why: "A request whose first transfer failed for no fault of its own is tried again, once, and is not answered before.", is: func(g *Graph, c *choice) bool {
			return c.name == "Answer" && g.triesAgain(c.s, c.a.T) || c.name == "Retry" && !g.triesAgain(c.s, c.a.T)
		}},
		{Kind: "last-is-recaused", Why: "An original cause that comes later is its last transfer's, and with that the request's.", is: func(g *Graph, c *choice) bool {
			return c.name == "Recause" && c.s.Succ[c.a.T] != 0
		}},
	}
}

// waits says that a request waits at the leader: it came before its side was there, or is to be tried again.
func (g *Graph) waits(c *choice) bool {
	if g.w.Big>>c.a.T&1 != 0 {
		return false
	}
	return g.set.Hold && !c.h.Whole || c.s.Root[c.a.T] != c.a.T
}

func (g *Graph) tokenOf(s *model.State, t uint8) bool {
	for l := uint8(1); l <= g.w.NL; l++ {
		for x := uint8(1); x <= g.w.NL; x++ {
			for m := range g.w.NL + 1 {
				if s.Tof[l] == t && g.set.lens.in(s, "tok", l, x, m) {
					return true
				}
			}
		}
	}
	return false
}

// triesAgain says that a failed transfer is followed by another.
func (g *Graph) triesAgain(s *model.State, t uint8) bool {
	return g.w.Retrying && s.Lead[t] == model.LeadFailed && s.Cause[t] == model.CauseDerived && s.Root[t] == t && s.Succ[t] == 0
}

// dueLeaders: a request that is tried again while its side is there is asked for at once; an original cause of the last transfer is the request's.
func (g *Graph) dueLeaders(s *model.State, h *Hist, add func(string, model.Args)) {
	for t := uint8(1); t <= g.w.NT; t++ {
		r := s.Root[t]
		if r == t || !g.set.Leaders {
			continue
		}
		if s.Lead[t] == model.LeadSubmitted && h.Retried == t && s.Up[0] && !h.Held {
			add("Ask", model.Args{T: t})
		}
		if s.Succ[t] == 0 && s.Lead[t] == model.LeadFailed && s.Cause[t] == model.CauseOriginal && s.Cause[r] == model.CauseDerived && s.Http[r] == model.HTTPNone {
			add("Recause", model.Args{T: r, R: r, C: model.CauseOriginal})
		}
	}
}

// leaderHist keeps what the leaders' next steps depend on.
func (g *Graph) leaderHist(s *model.State, h *Hist, name string, a *model.Args, n *model.State) {
	h.Retried = 0
	switch name {
	case "Ask":
		h.Whole, h.Held, h.Asked[a.T] = true, false, s.Ep[0]+1
	case "Ready":
		h.Ready[n.Tof[a.L]] = g.set.Leaders
	case "Retry":
		h.Retried = a.U
	case "Connect":
		for t := uint8(1); t <= g.w.NT; t++ { // the leader hears of the link when it has done what came before
			undecided := s.Lead[t] == model.LeadOpen || s.Lead[t] == model.LeadRun
			h.Held = h.Held || g.triesAgain(s, t) || undecided && h.Report[t] == model.CauseDerived || s.Lead[t] == model.LeadSubmitted && s.Root[t] != t
		}
	case "Fence":
		h.Held = false
	}
	for l := uint8(1); l <= g.w.NL; l++ {
		t := n.Tof[l]
		if n.Dst[l] != model.DstRevoking || s.Dst[l] == model.DstRevoking || t == 0 || s.Lead[t] == model.LeadFailed || s.Lead[t] == model.LeadOk {
			continue
		}
		switch {
		case name == "Fence", name == "Take" && (a.C == model.KindAck || a.C == model.KindGone):
			h.Report[t] = model.CauseDerived
		default:
			h.Report[t] = model.CauseOriginal
		}
	}
}
