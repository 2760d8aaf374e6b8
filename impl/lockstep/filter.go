package lockstep

import "kvfence/model"

// Cut is a kind of step that the specification allows and the engine never takes.
type Cut struct {
	Kind string
	Why  string
	is   func(g *Graph, c *choice) bool

	beyond bool // it shows only in settings larger than the pinned ones
}

// choice is a step to be judged.
type choice struct {
	s    *model.State
	h    *Hist
	name string
	a    model.Args
	n    *model.State
}

func (c *choice) one(names ...string) bool {
	for _, n := range names {
		if c.name == n {
			return true
		}
	}
	return false
}

// Cuts is every kind, in the order in which they are tried: the first that fits counts.
func Cuts() []Cut {
	var all []Cut
	for _, group := range [][]Cut{decodeCuts(), linkCuts(), prefillCuts(), leaderCuts()} {
		all = append(all, group...)
	}
	return all
}

func decodeCuts() []Cut {
	return []Cut{
		{Kind: "second-lease", Why: "A transfer has one lease at a decode rank: what comes after its end is a next transfer.", is: func(g *Graph, c *choice) bool {
			return c.name == "Grant" && g.hasLease(c.s, c.a.T)
		}},
		{Kind: "whole-side", Why: "A lease is granted over the links of a whole prefill side: every rank that has a part owes it.", is: func(g *Graph, c *choice) bool {
			return c.name == "Grant" && !g.wholeSide(c)
		}},
		{Kind: "whole-lease", Why: "A lease has the pages of its whole prompt and the place of its first token, of every component.", is: func(g *Graph, c *choice) bool {
			return c.name == "Grant" && !g.wholeLease(c)
		}},
		{Kind: "next-free", Why: "The ledger hands out the page that is free for longest.", is: func(g *Graph, c *choice) bool {
			return c.name == "Grant" && !g.nextFree(c) || c.name == "Grow" && c.h.Order[0] != c.a.P+1
		}},
		{Kind: "quarantine-first", beyond: true, Why: "No lease is granted over a link that a quarantine waits to fence.", is: func(g *Graph, c *choice) bool {
			return c.name == "Grant" && g.anyWants(c.s)
		}},
		{Kind: "own-lease", Why: "A grown page is its lease's: it is appended to, grows and goes with it.", is: func(g *Graph, c *choice) bool {
			return c.one("Append", "Grow", "Release", "BadRead", "Read") && c.h.Parent[c.a.L] != 0
		}},
		{Kind: "bad-all-the-same", Why: "What a check that had begun finds in a lease given up meanwhile is quarantined, not released.", is: func(g *Graph, c *choice) bool {
			return c.name == "Release" && c.s.Dst[c.a.L] == model.DstRevoking && !verifyGood(g.w, c.s, c.a.L)
		}},
		{Kind: "prefix-at-grant", Why: "Shares are taken with the grant and pages published when their lease is ready; they end when the page is handed out.", is: func(g *Graph, c *choice) bool {
			return c.one("Share", "Publish", "Unpublish")
		}},
	}
}

func linkCuts() []Cut {
	return []Cut{
		{Kind: "no-connect", Why: "A link that decode fenced for its own reasons is connected anew by another fence.", is: func(g *Graph, c *choice) bool {
			return c.one("Accept", "Connect") && !c.h.Out[c.a.K]
		}},
		{Kind: "one-answer", Why: "A connect is answered once: a second life of prefill has another connection.", is: func(g *Graph, c *choice) bool {
			return c.name == "Accept" && g.answered(c)
		}},
		{Kind: "old-epoch-first", Why: "A connect that is taken ends what stood before: its fence comes first.", is: func(g *Graph, c *choice) bool {
			return c.name == "Accept" && g.unfenced(c)
		}},
		{Kind: "open-behind-fence", Why: "The data path opens when the older epochs are fenced.", is: func(g *Graph, c *choice) bool {
			return c.name == "Connect" && c.s.Fencing[c.a.K]
		}},
		{Kind: "highest-mark", Why: "A message says the highest mark that may be said, and only an open link carries one.", is: func(g *Graph, c *choice) bool {
			return c.name == "RaiseMark" && (!c.s.Up[c.a.K] || c.a.M != g.mark(c.s, c.a.K))
		}},
		{Kind: "mark-in-epoch", Why: "A mark comes with a message of the open link's epoch.", is: func(g *Graph, c *choice) bool {
			return c.name == "RecvMark" && !g.markComes(c)
		}},
	}
}

func prefillCuts() []Cut {
	return []Cut{
		{Kind: "short-refused", Why: "Prefill compares the token count of a grant with its own before it starts.", is: func(g *Graph, c *choice) bool {
			return c.name == "Start" && c.a.V == model.ViewShort
		}},
		{Kind: "once-sourced", Why: "A job takes all its source pages once, those that are free for longest, and gives all back when its lease is answered.", is: func(g *Graph, c *choice) bool {
			return c.name == "TakeSource" && !g.takesSource(c) || c.name == "GiveBack" && !g.givesBack(c)
		}},
		{Kind: "sealed-together", Why: "The pages of a prompt are sealed when its last chunk is computed.", is: func(g *Graph, c *choice) bool {
			return c.name == "Post" && !g.allSealed(c.s, c.a.L, c.a.K)
		}},
		{Kind: "plan-order", Why: "Pages are posted in the order of the plan, each from its own source page.", is: func(g *Graph, c *choice) bool {
			return c.name == "Post" && !g.inPlanOrder(c)
		}},
		{Kind: "own-receipt", Why: "A lease that was aborted is answered by AbortAck, one that failed here by Failed.", is: func(g *Graph, c *choice) bool {
			return c.name == "AbortAck" && c.h.Why[c.a.L][c.a.K] == 2 || c.name == "Failed" && c.h.Why[c.a.L][c.a.K] == 1
		}},
		{Kind: "no-abort-sent", Why: "An Abort is sent when a lease is revoked, on the links whose hold stands and that are open, in their epoch.", is: func(g *Graph, c *choice) bool {
			return c.name == "RecvAbort" && !c.h.Abort[c.a.L][c.a.K]
		}},
		{Kind: "over-at-prefill", Why: "What is of an epoch that prefill has fenced or left is refused.", is: func(g *Graph, c *choice) bool {
			return c.one("RecvAbort", "Start", "Gone") && g.left(c)
		}},
		{Kind: "gone-unposted", Why: "Of a lease that was posted no Gone is said above decode's mark: the link is fenced.", is: func(g *Graph, c *choice) bool {
			return c.name == "Gone" && g.wasPosted(c) && c.h.Marks[c.a.K]>>(c.a.L+1) == 0
		}},
		{Kind: "post-over", Why: "A post that is over is not reported as failed.", is: func(g *Graph, c *choice) bool {
			return c.name == "Lose" && c.s.Pst[c.a.L][c.a.K] != model.PstWriting && c.s.Pst[c.a.L][c.a.K] != model.PstClosing
		}},
		{Kind: "accepted-epochs", Why: "Prefill fences the epoch that it accepted last.", is: func(g *Graph, c *choice) bool {
			e, ok := g.set.lens.accepted(g.w, c.s, c.a.K, c.a.D)
			return c.name == "PrefillFence" && (!ok || e != c.a.E)
		}},
		{Kind: "heard-before-mark", beyond: true, Why: "An Abort that lies in a box is heard before the rank forgets past its lease.", is: func(g *Graph, c *choice) bool {
			return c.one("Complete", "AbortAck", "Failed") && g.passesBox(c)
		}},
		{Kind: "full-only", Why: "Prefill raises a mark of its own only when it keeps too many answers, and forgets what a mark passes at once.", is: func(g *Graph, c *choice) bool {
			return c.one("OwnMark", "Forget")
		}},
	}
}

// judge says whether the engine takes a step, or the kind by which it does not.
func (g *Graph) judge(c *choice, due []edge) string {
	if len(due) > 0 {
		for _, e := range due {
			if e.name == c.name && e.args == c.a {
				return ""
			}
		}
		return KindInside
	}
	for i := range g.cuts {
		if g.cuts[i].is(g, c) {
			return g.cuts[i].Kind
		}
	}
	return ""
}

// KindInside is the cut of what comes between two steps of the specification that are one step of the engine.
const KindInside = "inside-a-step"

// KindBound is the cut of a step that the engine follows up with one that the bounds of the setting do not have.
const KindBound = "bound"

func (g *Graph) hasLease(s *model.State, t uint8) bool {
	for l := uint8(1); l <= g.w.NL; l++ {
		if s.Tof[l] == t {
			return true
		}
	}
	return false
}

func (g *Graph) wholeSide(c *choice) bool {
	for k := range ranks(g.w) {
		if !c.s.Up[k] || c.a.Ks>>k&1 == 0 {
			return false
		}
	}
	return true
}

func (g *Graph) wholeLease(c *choice) bool {
	kv, aux := uint32(0), uint32(0)
	for p := range pageCount(g.w) {
		if c.a.S>>p&1 != 0 && uint32(p) < g.set.KV {
			kv++
		} else if c.a.S>>p&1 != 0 {
			aux++
		}
	}
	need := g.set.need()
	if g.set.Published > 0 {
		if _, _, _, ok := g.knownOf(c.s, c.a.N, c.a.A, c.a.F); ok {
			need--
		}
	}
	return kv == need && aux == min(g.set.Aux, 1)
}

// nextFree: the pages of S are the first of the free list.
func (g *Graph) nextFree(c *choice) bool {
	left := c.a.S & (1<<g.set.KV - 1)
	for _, p := range c.h.Order {
		if left == 0 {
			break
		}
		if p == 0 || left>>(p-1)&1 == 0 {
			if p != 0 && g.sharedBy(c, p-1) {
				continue
			}
			return false
		}
		left &^= 1 << (p - 1)
	}
	return left == 0
}

// sharedBy: a free page that the lease shares leaves the free list before pages are handed out.
func (g *Graph) sharedBy(c *choice, p uint8) bool {
	q, _, _, ok := g.knownOf(c.s, c.a.N, c.a.A, c.a.F)
	return g.set.Published > 0 && ok && q == p
}

func (g *Graph) anyWants(s *model.State) bool {
	for k := range ranks(g.w) {
		if g.wants(s, k) {
			return true
		}
	}
	return false
}

func verifyGood(w *model.Settings, s *model.State, l uint8) bool {
	for p := range pageCount(w) {
		for k := range ranks(w) {
			if owed(w, s, l, k, p) && (s.Mem[p][k] != l || s.Tagl[p][k] != l) {
				return false
			}
		}
	}
	return true
}

func (g *Graph) answered(c *choice) bool {
	for i := range g.w.NI + 1 {
		if g.set.lens.in(c.s, "acc", c.a.K, i, c.s.Dinc, c.s.Ep[c.a.K]) {
			return true
		}
	}
	return false
}

func (g *Graph) unfenced(c *choice) bool {
	for d := range c.s.Dinc + 1 {
		if e, ok := g.set.lens.accepted(g.w, c.s, c.a.K, d); ok && !g.set.lens.in(c.s, "pfenced", c.a.K, d, e) {
			return true
		}
	}
	return false
}

// mark is what decode says to rank k: the lowest lease whose hold stands there, else the next.
func (g *Graph) mark(s *model.State, k uint8) uint8 {
	for l := uint8(1); l <= g.w.NL; l++ {
		if s.Hold[l][k] {
			return l
		}
	}
	return s.NextL
}

func (g *Graph) markComes(c *choice) bool {
	e, ok := g.set.lens.accepted(g.w, c.s, c.a.K, c.s.Dinc)
	return ok && e == c.s.Ep[c.a.K] && c.s.Up[c.a.K] && c.s.Linc[c.a.K] == c.s.Pinc[c.a.K] && c.h.Marks[c.a.K]>>c.a.M&1 != 0
}

func (g *Graph) takesSource(c *choice) bool {
	for q := uint8(1); q <= g.w.NQ; q++ {
		if g.usesSource(c.a.K, q) && (c.s.Sown[c.a.K][q] != 0 || q < c.a.Q) {
			return false
		}
	}
	return c.h.Source[c.a.L][c.a.K] == sourceNone && g.usesSource(c.a.K, c.a.Q)
}

func (g *Graph) givesBack(c *choice) bool {
	for q := uint8(1); q < c.a.Q; q++ {
		if c.s.Sown[c.a.K][q] == c.a.L {
			return false
		}
	}
	return c.s.Pst[c.a.L][c.a.K] == model.PstClosed || c.s.Pst[c.a.L][c.a.K] == model.PstNone
}

func (g *Graph) allSealed(s *model.State, l, k uint8) bool {
	for q := uint8(1); q <= g.w.NQ; q++ {
		if s.Sown[k][q] == l && s.Sst[k][q] != model.SrcSealed {
			return false
		}
	}
	return true
}

func (g *Graph) inPlanOrder(c *choice) bool {
	aux := uint32(c.a.P) >= g.set.KV
	at := c.h.Seq[c.a.L][c.a.P]
	for p := range uint8(g.set.KV) {
		if owed(g.w, c.s, c.a.L, c.a.K, p) && (aux || c.h.Seq[c.a.L][p] < at) && !g.posted(c.s, c.a.L, c.a.K, p) {
			return false
		}
	}
	if aux {
		return uint32(c.a.Q) == g.set.Source+1
	}
	return uint32(c.a.Q) == uint32(at)+g.set.need()-g.ownKV(c.s, c.a.L)
}

// ownKV is how many KV pages a lease got itself.
func (g *Graph) ownKV(s *model.State, l uint8) (n uint32) {
	for p := range g.set.KV {
		if s.Gpage[l][p] != 0 {
			n++
		}
	}
	return n
}

func (g *Graph) posted(s *model.State, l, k, p uint8) bool {
	for c := range uint8(len(g.w.Chan)) {
		if g.set.lens.in(s, "sent", l, k, p, c, s.Pinc[k]) {
			return true
		}
	}
	return false
}

// left says that prefill has fenced the epoch of a lease, or is in another.
func (g *Graph) left(c *choice) bool {
	e, ok := g.set.lens.accepted(g.w, c.s, c.a.K, c.s.Dof[c.a.L])
	return !ok || e != c.s.Gep[c.a.L][c.a.K] || g.set.lens.in(c.s, "pfenced", c.a.K, c.s.Dof[c.a.L], e)
}

// wasPosted says that of this lease or a later one, which the rank has forgotten, something was posted.
func (g *Graph) wasPosted(c *choice) bool {
	for l := c.a.L; l <= g.w.NL; l++ {
		for p := range pageCount(g.w) {
			if c.s.Pst[l][c.a.K] == model.PstNone && g.posted(c.s, l, c.a.K, p) {
				return true
			}
		}
	}
	return false
}

// passesBox says that with a step the rank forgets past a lease whose Abort may lie in its box.
func (g *Graph) passesBox(c *choice) bool {
	k := c.a.K
	first := g.full(c.n, k)
	for l := uint8(1); l < first; l++ {
		if c.n.Pst[l][k] == model.PstClosing && c.h.Why[l][k] == 1 {
			return true
		}
	}
	return false
}
