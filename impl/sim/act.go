package sim

import (
	"slices"

	"kvfence/impl/core"
	"kvfence/impl/pages"
	"kvfence/impl/transport/mem"
	"kvfence/spec"
)

// Act is one thing that is done to a cluster between two steps: a request, a fault, its end. Which fields count depends on Do.
type Act struct {
	At   int     `yaml:"at"` // steps of the world before it
	Do   Kind    `yaml:"do"`
	P    int     `yaml:"p,omitempty"`    // prefill slot
	D    int     `yaml:"d,omitempty"`    // decode slot
	Rank int     `yaml:"rank,omitempty"` // of the side
	Nth  int     `yaml:"nth,omitempty"`  // operation, message, connection, request, page: counted from 0, and round
	N    int     `yaml:"n,omitempty"`    // bits of a mend, seconds of a held message or leap, milliseconds of a held operation, steps of a fork, pages of a resize, what mismatches
	Req  *Submit `yaml:"req,omitempty"`
}

// Submit is a request of a script.
type Submit struct {
	Tenant  string  `yaml:"tenant,omitempty"`
	Salt    string  `yaml:"salt,omitempty"`
	Adapter string  `yaml:"adapter,omitempty"`
	Label   string  `yaml:"label,omitempty"`
	Prompt  []int32 `yaml:"prompt,flow"`
	New     uint32  `yaml:"new,omitempty"`
	LeftMs  int     `yaml:"left-ms,omitempty"` // time left
}

func (s *Submit) core() core.Submit {
	return core.Submit{Tenant: s.Tenant, Salt: s.Salt, Adapter: s.Adapter, Label: s.Label, Prompt: slices.Clone(s.Prompt), MaxNew: s.New, TimeLeft: core.Duration(s.LeftMs) * 1_000_000}
}

// apply does an act, and counts it if it did anything. An act that names what is not there does nothing.
func (w *World) apply(a Act) bool {
	if len(w.prefill) == 0 || len(w.decode) == 0 {
		return false
	}
	a.P, a.D = round(a.P, len(w.prefill)), round(a.D, len(w.decode))
	do := w.applyUse
	switch a.Do {
	case Ask, Half, AskHalf, Leave, Fork, Drain, Mend, Heal:
	case MessageHeld, MessageReplayed, Cut, DataCut, HalfOpen:
		do = w.applyNet
	case OpHeld, WriteLost, RecordTorn, WriteDoubled, NoticeDoubled, PostFailed, BatchFailed, NoticeFailed, CopyFailed, NoticeEarly, FlipWrite, TearWrite:
		do = w.applyOp
	case FlipTag, FlipSource:
		do = w.applyFlip
	default:
		do = w.applyNode
	}
	if !do(a) {
		return false
	}
	w.count(a.Do)
	return true
}

// waits says that a kind waits for something to happen to.
func (k Kind) waits() bool {
	switch k {
	case MessageHeld, OpHeld, WriteLost, RecordTorn, WriteDoubled, NoticeDoubled, PostFailed, BatchFailed, NoticeFailed, CopyFailed, NoticeEarly, FlipWrite, TearWrite, FlipSource, Leave:
		return true
	}
	return false
}

// round is i in [0, n), whatever i is.
func round(i, n int) int { return ((i % n) + n) % n }

// count counts a kind.
func (w *World) count(k Kind) { w.kinds[k]++ }

// applyUse does what clients and operators do.
func (w *World) applyUse(a Act) bool {
	switch a.Do {
	case Ask:
		if a.Req == nil {
			return false
		}
		w.noteAsk(a.Req)
		w.Ask(a.D, a.Req.core())
	case Half:
		if a.Req == nil {
			return false
		}
		w.halves = append(w.halves, w.Half(a.P, a.Req.core()))
	case AskHalf:
		if len(w.halves) == 0 {
			return false
		}
		h := w.halves[round(a.Nth, len(w.halves))]
		s := h.Submit
		s.Source = h.Source()
		w.Ask(a.D, s)
	case Leave:
		var open []*Request
		for _, q := range w.requests {
			if !q.Half && !q.Done && !q.Gone {
				open = append(open, q)
			}
		}
		return len(open) > 0 && w.Leave(open[round(a.Nth, len(open))])
	case Fork:
		if len(w.asks) == 0 {
			return false
		}
		of := w.asks[len(w.asks)-1-round(a.Nth, len(w.asks))]
		slot := w.slotOf(of.Leader)
		return slot >= 0 && w.decode[slot].Fork(of, a.N)
	case Drain:
		if a.N%2 == 0 {
			return w.prefill[a.P].drain(w.prefill[a.P].lead)
		}
		return w.decode[a.D].drain(w.decode[a.D].lead)
	case Mend:
		w.mend(a.N)
	case Heal:
		w.heal()
	}
	return true
}

// noteAsk counts what is special about a request.
func (w *World) noteAsk(s *Submit) {
	switch n := len(s.Prompt); {
	case n <= 1 || n%pageTokens == 0 && n <= 2*pageTokens:
		w.count(SmallAsk)
	case n+int(s.New) > int(w.cfg.Window) || uint32(n) > w.cfg.PrefillPages*pageTokens:
		w.count(LargeAsk)
	}
	if s.LeftMs > 0 {
		w.count(Deadline)
	}
	if s.Label != "" && slices.ContainsFunc(w.requests, func(q *Request) bool { return q.Submit.Label == s.Label && !q.Done }) {
		w.count(SameLabel)
	}
}

// applyNode does what happens to processes, engines and clocks.
func (w *World) applyNode(a Act) bool {
	p, d := w.prefill[a.P], w.decode[a.D]
	switch a.Do {
	case KillPrefill:
		return w.KillPrefill(a.P)
	case KillDecode:
		return w.KillDecode(a.D)
	case KillPrefillRank:
		return w.KillPrefillRank(a.P, round(a.Rank, len(p.ranks)))
	case KillDecodeRank:
		return w.KillDecodeRank(a.D, round(a.Rank, len(d.ranks)))
	case Resize:
		if p.up {
			w.KillPrefill(a.P)
		}
		p.pages = uint32(max(a.N, 2))
		w.StartPrefill(a.P)
	case PausePrefill:
		return p.up && !p.paused && w.PausePrefill(a.P, true)
	case PauseDecode:
		return d.up && !d.paused && w.PauseDecode(a.D, true)
	case ClockLeap:
		h := w.all[round(a.Nth, len(w.all))].hosts
		h[round(a.Rank, len(h))].clock.off += core.Time(a.N) * 1e9
	case ComputeFailed:
		p.failing = true
	case StepFailed:
		d.failing = true
	case OpenFailed:
		d.ranks[round(a.Rank, len(d.ranks))].badOpen = true
	case FenceFailed:
		if a.N%2 == 0 {
			p.ranks[round(a.Rank, len(p.ranks))].badFence = true
			return true
		}
		d.ranks[round(a.Rank, len(d.ranks))].badFence = true
	default:
		return false
	}
	return true
}

// applyOp spoils one operation of the fabric.
func (w *World) applyOp(a Act) bool {
	var found []mem.Op
	for i := range w.fabric.Len() {
		if op := w.fabric.At(i); w.fits(a.Do, op) {
			found = append(found, *op)
		}
	}
	if len(found) == 0 {
		return false
	}
	op := found[round(a.Nth, len(found))]
	w.stirred = true
	if a.Do == OpHeld {
		if a.N > 0 { // for so many milliseconds, else until a mend
			w.works = append(w.works, &work{at: w.now + core.Time(a.N)*1_000_000, always: true, host: w.all[0].hosts[0], run: func() {
				w.stirred = true
				_ = w.fabric.Hold(op.Ref, false) // it may be over
			}})
		}
		return w.fabric.Hold(op.Ref, true) == nil
	}
	do := map[Kind]mem.Do{WriteLost: mem.Lose, RecordTorn: mem.Lose, WriteDoubled: mem.Duplicate, NoticeDoubled: mem.Duplicate, PostFailed: mem.Fail, BatchFailed: mem.Fail,
		NoticeFailed: mem.Fail, CopyFailed: mem.Fail, NoticeEarly: mem.Overtake, FlipWrite: mem.Flip, TearWrite: mem.Tear}[a.Do]
	if w.fabric.Step(op.Ref, do) != nil {
		return false
	}
	w.sum.text(string(a.Do))
	w.sum.add(uint64(op.Ref))
	if do == mem.Lose { // a lost write loses its stream with it
		w.fabric.CutPush(op.Link)
	}
	return true
}

// fits reports an operation to which a kind of fault can be done.
func (w *World) fits(k Kind, op *mem.Op) bool {
	switch k {
	case OpHeld:
		return !op.Held
	case WriteLost, WriteDoubled, FlipWrite:
		return op.Kind == mem.Write && op.State >= mem.Launched && (k != FlipWrite || op.State <= mem.Half)
	case TearWrite:
		return op.Kind == mem.Write && op.State == mem.Half
	case RecordTorn:
		e := w.endsOf(op.Link)
		return op.Kind == mem.Write && op.State >= mem.Half && e.src != nil && e.src.writes[op.ID][op.Index].Component == spec.Aux
	case NoticeDoubled:
		return op.Kind == mem.Notice && op.State == mem.Launched
	case NoticeEarly:
		return w.lax && op.Kind == mem.Notice
	case PostFailed:
		return op.Kind == mem.Write && op.State == mem.Queued
	case BatchFailed:
		return op.Kind == mem.Batch
	case NoticeFailed:
		return op.Kind == mem.Noticed
	case CopyFailed:
		return op.Kind == mem.Job
	}
	return false
}

// applyFlip changes one bit of memory: of a tag at decode, of a sealed page at prefill.
func (w *World) applyFlip(a Act) bool {
	if a.Do == FlipTag {
		d := w.decode[a.D]
		r := d.ranks[round(a.Rank, len(d.ranks))]
		pool := r.mem[round(a.N, int(spec.ComponentCount))]
		if pool == nil || !d.up {
			return false
		}
		s := pool.Layout.Shape
		slot := spec.PartIndex(round(a.N/int(spec.ComponentCount), int(s.TagSlots)))
		pool.Slot(spec.PageID(round(a.Nth, int(s.Pages))), slot)[round(a.Nth, spec.TagBytes)] ^= 1
		return true
	}
	p := w.prefill[a.P]
	r := p.ranks[round(a.Rank, len(p.ranks))]
	if !p.up || r.host.dead || len(r.seals) == 0 {
		return false
	}
	s := r.seals[round(a.Nth, len(r.seals))]
	if v := r.m.Page(s.component, s.page.Page); v.Gen != s.page.Gen || v.State == pages.Free || r.sealing[s.page] > 0 {
		return false
	}
	at := s.segs[round(a.Nth, len(s.segs))]
	r.mem[s.component].Page(s.page.Page)[int(at.Offset)+round(a.N, int(at.Bytes))] ^= 4
	return true
}
