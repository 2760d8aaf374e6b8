package follow

import (
	"strings"

	"kvfence/spec"
)

// Messages within a side are delivered in order, each once: a leader's to its ranks and theirs to it. What a machine is given must have been put
// out, and nothing that was put out before may be missing. So a line that is left out, or stands twice, is seen.

// sideOf names a rank of a side.
type sideOf struct {
	leader spec.Incarnation
	rank   spec.Rank
}

// sideMessage is one on its way.
type sideMessage struct {
	message  string
	transfer spec.TraceTransfer
}

// sideStarted notes which side a rank is of.
func (f *Follower) sideStarted(l *spec.TraceLine, s *spec.TraceStart) {
	if len(s.Side) > 0 {
		f.sides[l.Node] = sideOf{s.Side[0], s.Rank}
	}
}

// unled are messages that a driver has for itself: further samples have no leader yet.
func unled(message string, t spec.TraceTransfer) bool {
	return message == "Fork" || t.Counter >= outsideCounter && t.Counter < 2*outsideCounter
}

// sidePut notes what a line puts on its way within the side.
func (f *Follower) sidePut(l *spec.TraceLine) {
	for i := range l.Out {
		o := &l.Out[i]
		if unled(o.Message, o.Transfer) {
			continue
		}
		m := sideMessage{o.Message, o.Transfer}
		switch o.Kind {
		case "ToRank":
			to := sideOf{l.Node, o.Rank}
			f.toRank[to] = append(f.toRank[to], m)
		case "ToLeader":
			if from, ok := f.sides[l.Node]; ok {
				f.toLeader[from] = append(f.toLeader[from], m)
			}
		}
	}
}

// sideHeard judges that what a machine is given is what was put out next for it.
func (f *Follower) sideHeard(l *spec.TraceLine, leader bool) {
	e := &l.Event
	if e.Kind != "Side" || unled(e.Message, e.Transfer) {
		return
	}
	at, queue := sideOf{l.Node, e.Rank}, f.toLeader
	if !leader {
		at, queue = f.sides[l.Node], f.toRank
	}
	q := queue[at]
	if len(q) == 0 {
		f.say("Side "+e.Message, "messages within a side are put out before they come", "%s of %s was never put out, or came before", e.Message, e.Transfer)
		return
	}
	if f.require(q[0] == sideMessage{e.Message, e.Transfer}, "Side "+e.Message, "messages within a side come in order, each once", "%s of %s comes, put out was %s of %s", e.Message, e.Transfer, q[0].message, q[0].transfer) {
		if queue[at] = q[1:]; len(q) == 1 {
			delete(queue, at)
		}
	}
}

// sideOver forgets what was on its way within a life that is over.
func (f *Follower) sideOver(node spec.Incarnation) {
	at := f.sides[node]
	delete(f.toLeader, at)
	delete(f.toRank, at)
	delete(f.sides, node)
}

// peerSaid is the kind of a leader's message that came over a link.
func peerSaid(e *spec.TraceEvent, kind string) bool {
	return e.Kind == "Side" && strings.TrimPrefix(e.Message, "PeerSaid ") == kind && e.Message != kind
}
