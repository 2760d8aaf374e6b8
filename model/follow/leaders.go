package follow

import (
	"slices"

	"kvfence/spec"
)

// decodeLeader is what is known of one decode leader in one life.
type decodeLeader struct {
	inc      spec.Incarnation
	name     string
	last     uint64              // counter of the last transfer that it named
	reqs     map[uint64]Transfer // present transfer of each request that is not answered
	answered []uint64            // requests without a transfer, the last ones
	stopped  bool
	over     bool
}

type prefillLeader struct {
	name string
	over bool
}

// outsideCounter is where the names of further samples begin, which no leader has yet.
const outsideCounter = 1 << 32

// transfer is the relation's number of a transfer; 0 for none.
func (f *Follower) transfer(t spec.TraceTransfer) Transfer {
	if t.IsZero() {
		return 0
	}
	if id, ok := f.ids[t]; ok {
		return id
	}
	f.lastT++
	f.ids[t] = f.lastT
	f.names[f.lastT] = t
	f.s.transfer(f.lastT)
	return f.lastT
}

// word says that a transfer's leader has asked for something: "Go", or a "Step".
func (f *Follower) word(t Transfer, what string) bool { return f.words[t][what] }

func (f *Follower) asks(t Transfer, what string) {
	if f.words[t] == nil {
		f.words[t] = map[string]bool{}
	}
	f.words[t][what] = true
}

func (f *Follower) decodeLeaderLine(l *spec.TraceLine) error {
	if l.Event.Kind == "Start" {
		s, err := f.started(l)
		if err != nil {
			return err
		}
		if old := f.leaders[f.life(spec.TraceDecodeLeader, s, l.Node)]; old != nil {
			f.leaderOver(old)
		}
		f.leaders[l.Node] = &decodeLeader{inc: l.Node, name: s.Name, reqs: map[uint64]Transfer{}}
		return nil
	}
	r := f.leaders[l.Node]
	if r == nil {
		return f.unknown(l)
	}
	f.name = r.name
	if r.stopped {
		return nil
	}
	if !f.require(!r.over, "Step", "the machine runs", "a later life of its node has begun") {
		return nil
	}
	f.sideHeard(l, true)
	asking := f.leaderAsking(l)
	f.inOrder(l, func(d *spec.TraceDid) { f.leaderDid(r, l, d) }, func(o *spec.TraceOut) { f.leaderOut(r, l, o) })
	f.require(!asking || says(l, "RecvAsked", 0, 0) || puts(l, "Count", "", 0, 0), "RecvAsked", "what was given is acted upon", "transfer %s", l.Event.Transfer)
	f.leaderNameless(r, l)
	f.require(r.stopped || count(l, "Answer") == answersPut(l), "Answer", "Answer(t, r)", "%d answers are put out, %d are said", answersPut(l), count(l, "Answer"))
	return nil
}

// causeOf is what the specification tells apart of causes.
func causeOf(c spec.Cause) uint8 {
	if c.Derived() || c == spec.CausePreempted {
		return causeDerived
	}
	return causeOriginal
}

func (f *Follower) leaderDid(r *decodeLeader, l *spec.TraceLine, d *spec.TraceDid) {
	if d.Transfer.IsZero() { // a request that is refused, or ends before it has a name
		f.require(d.Name == "Submit" || d.Name == "Refuse" || d.Name == "Failure" || d.Name == "Answer", d.Name, "t \\in Transfer", "it names no transfer")
		return
	}
	if (d.Name == "Submit" || d.Name == "Retry") && f.require(d.Transfer.Leader == r.inc && d.Transfer.Counter == r.last+1, d.Name, `lead[t] = "new"`, "transfer %s, the last was %d", d.Transfer, r.last) {
		r.last = d.Transfer.Counter
	} else if _, known := f.ids[d.Transfer]; !f.require(known, d.Name, `lead[t] # "new"`, "transfer %s is over, or was never named", d.Transfer) {
		return
	}
	a := Act{Name: d.Name, T: f.transfer(d.Transfer), Cause: causeOf(d.Cause)}
	t := f.s.transfer(a.T)
	switch d.Name {
	case "Submit":
		r.reqs[d.Req] = a.T
	case "Retry":
		a.T, a.U, a.R = f.transfer(d.After), a.T, f.transfer(d.Root)
		r.reqs[d.Req] = a.U
	case "Recause":
		a.R = f.transfer(d.Root)
		if t.cause == a.Cause { // preempted, and then lost for good: to the specification the same
			return
		}
	case "RecvAsked":
		f.believeAsk(l, t)
	case "Answer":
		a.R = f.transfer(d.Root)
	case "Refuse":
		t.big = true
	case "Success":
		f.judgeSuccess(t)
	}
	f.do(a)
}

// believeAsk takes it that prefill's leader accepted the Ask, where it writes no trace.
func (f *Follower) believeAsk(l *spec.TraceLine, t *transfer) {
	if !t.pask && !f.strict && len(f.leads) == 0 {
		t.pask = true
		f.stats.Believed++
	}
}

// leaderAsking: the line brings the answer that a transfer waits for.
func (f *Follower) leaderAsking(l *spec.TraceLine) bool {
	t := f.s.transfers[f.ids[l.Event.Transfer]]
	return peerSaid(&l.Event, "asked") && t != nil && t.lead == leadAsking
}

// leaderNameless: a request that has no transfer yet is submitted, fails and is answered in one step, once.
func (f *Follower) leaderNameless(r *decodeLeader, l *spec.TraceLine) {
	submits, ends, answers := 0, 0, 0
	for i := range l.Did {
		d := &l.Did[i]
		if !d.Transfer.IsZero() {
			continue
		}
		switch d.Name {
		case "Submit":
			submits++
		case "Answer":
			answers++
			f.require(!slices.Contains(r.answered, d.Req), "Answer", `http[r] = "none"`, "request %d is answered already", d.Req)
			if r.answered = append(r.answered, d.Req); len(r.answered) > 512 {
				r.answered = slices.Delete(r.answered, 0, 256)
			}
		default:
			ends++
		}
	}
	f.require(submits == ends && ends == answers, "Submit", "a request without a transfer is submitted, refused and answered in one step", "%d, %d, %d", submits, ends, answers)
}

func count(l *spec.TraceLine, name string) (n int) {
	for i := range l.Did {
		if l.Did[i].Name == name {
			n++
		}
	}
	return n
}

func answersPut(l *spec.TraceLine) (n int) {
	for i := range l.Out {
		if l.Out[i].Kind == "Answer" {
			n++
		}
	}
	return n
}

func (f *Follower) leaderOut(r *decodeLeader, l *spec.TraceLine, o *spec.TraceOut) {
	switch o.Kind {
	case "Answer":
		f.leaderAnswer(r, l, o)
	case "SendLeader":
		id, known := f.ids[o.Transfer]
		if o.Message == "ask" {
			f.require(known && f.s.transfer(id).lead >= leadAsking && f.s.transfer(id).lead <= leadRun, "Send ask", `lead[t] \notin {"new", "submitted", "refused"}`, "transfer %s", o.Transfer)
		}
		if o.Message == "drop" && known {
			t := f.s.transfer(id)
			f.require(t.lead == leadFailed || t.lead == leadOk, "Drop", `lead[t] \in {"ok", "failed"}`, "transfer %s is %s", o.Transfer, leadNames[t.lead])
		}
	case "ToRank":
		if id, known := f.ids[o.Transfer]; known {
			t := f.s.transfer(id)
			switch o.Message {
			case "ReleaseLease":
				f.require(t.lead == leadFailed || t.lead == leadOk, "ReleaseLease", `lead[t] \in {"ok", "failed"}`, "transfer %s is %s", o.Transfer, leadNames[t.lead])
			case "AbortLease":
				f.require(t.lead == leadFailed || t.lead == leadOpen && !f.word(f.ids[o.Transfer], "Go"), "AbortLease", `lead[t] = "failed"`, "transfer %s is %s", o.Transfer, leadNames[t.lead])
			}
		}
		if t := f.ids[o.Transfer]; o.Message == "Go" {
			f.require(f.s.transfer(t).lead == leadOpen, "Go", `lead[t] = "open"`, "transfer %s is %s", o.Transfer, leadNames[f.s.transfer(t).lead])
			f.asks(t, "Go")
		}
	case "ReadFirst", "RunStep":
		t := f.transfer(o.Transfer)
		f.require(f.s.transfer(t).lead == leadRun, o.Kind, `lead[t] = "run"`, "transfer %s is %s", o.Transfer, leadNames[f.s.transfer(t).lead])
		f.asks(t, "Step")
	case "Emit", "OpenStream":
		t, ok := r.reqs[o.Req]
		lead := f.s.transfer(t).lead
		f.require(ok && (lead == leadRun || lead == leadOk), o.Kind, `lead[t] = "run" /\ http[r] = "none"`, "request %d: its transfer is %s", o.Req, leadNames[lead])
	case "Stop":
		r.stopped = true
		f.require(o.Broken == 0, "Stop", "no invariant is broken", "the machine says that I%d is", o.Broken)
	}
}

// leaderAnswer: success only where the last transfer succeeded, and an answer once.
func (f *Follower) leaderAnswer(r *decodeLeader, l *spec.TraceLine, o *spec.TraceOut) {
	for i := range l.Did {
		d := &l.Did[i]
		if d.Name != "Answer" || d.Req != o.Req {
			continue
		}
		lead := leadFailed
		if !d.Transfer.IsZero() {
			lead = f.s.transfer(f.transfer(d.Transfer)).lead
		}
		f.require((o.Cause == "") == (lead == leadOk), "Answer", `IF lead[t] = "ok" THEN "200" ELSE "error"`, "request %d is answered with %q, its transfer is %s", o.Req, o.Cause, leadNames[lead])
		delete(r.reqs, o.Req)
		return
	}
	f.require(r.stopped, "Answer", "Answer(t, r)", "request %d is answered, and it is not said", o.Req)
}

func (f *Follower) prefillLeaderLine(l *spec.TraceLine) error {
	if l.Event.Kind == "Start" {
		s, err := f.started(l)
		if err != nil {
			return err
		}
		if old := f.leads[f.life(spec.TracePrefillLeader, s, l.Node)]; old != nil {
			old.over = true
		}
		f.leads[l.Node] = &prefillLeader{name: s.Name}
		return nil
	}
	f.sideHeard(l, true)
	p := f.leads[l.Node]
	if p == nil {
		return f.unknown(l)
	}
	f.name = p.name
	for i := range l.Did {
		d := &l.Did[i]
		f.stats.Actions[d.Name]++
		if led := f.leaders[d.Transfer.Leader]; led != nil && f.ids[d.Transfer] == 0 && d.Transfer.Counter <= led.last {
			f.stats.Believed++ // of a transfer that is over
			continue
		}
		t := f.s.transfer(f.transfer(d.Transfer))
		if f.leaders[d.Transfer.Leader] == nil && t.lead == leadNew { // its leader writes no trace
			if f.require(!f.strict, d.Name, `Arrives(lead[t] \notin {"new", "submitted", "refused"})`, "transfer %s was never named", d.Transfer) {
				t.lead = leadAsking
				f.stats.Believed++
			}
		}
		f.require(puts(l, "ReplyLeader", "asked", 0, 0), d.Name, "it is put out", "transfer %s", d.Transfer)
		word := "asked by " + l.Node.Hex()
		f.require(!f.word(f.ids[d.Transfer], word), d.Name, "~pask[t]", "transfer %s", d.Transfer)
		f.asks(f.ids[d.Transfer], word)
		if d.Name == "RecvAsk" && t.pask {
			continue // of another life of prefill: a repeat changes nothing
		}
		f.do(Act{Name: d.Name, T: f.transfer(d.Transfer)})
	}
	for i := range l.Out {
		if o := &l.Out[i]; o.Kind == "ReplyLeader" && o.Message == "asked" {
			id, known := f.ids[o.Transfer]
			f.require(!known || f.word(id, "asked by "+l.Node.Hex()), "Send asked", "pask[t]", "transfer %s", o.Transfer)
		}
	}
	return nil
}
