package follow

import (
	"fmt"
	"strings"
)

// Act is an action with the values of its parameters, each under its name in the TLA+ text. S is what Grant hands out, Ks who
// owes a part, Parts who owes what.
type Act struct {
	Name    string
	Node    Node
	T, U, R Transfer
	L, X, M Lease
	P       Page
	K       Link
	C       Chan
	I, D    Inc
	Q       SPage
	G       Gen
	E       Epoch
	Kind    uint8 // of a receipt
	View    uint8
	Cause   uint8
	N, A, F uint64
	S       []Page
	Ks      []Link
	Parts   []Part
}

// Part says that a link owes its part of a page.
type Part struct {
	K Link
	P Page
}

// Refusal says which conjunct of an action does not hold, and with which values.
type Refusal struct {
	Action   string
	Conjunct string
	Values   string
}

// Error is one line.
func (r *Refusal) Error() string {
	return fmt.Sprintf("%s: %s does not hold; %s", r.Action, r.Conjunct, r.Values)
}

// need judges one conjunct. The step goes on where it holds, and where it is to be taken whatever holds.
func (s *State) need(holds bool, conjunct string) bool {
	if !holds && s.refused == nil {
		s.refused = &Refusal{Action: s.act.Name, Conjunct: conjunct}
		if s.explain {
			s.refused.Values = s.values(s.act)
		}
	}
	return holds || s.force
}

// Do takes one action, or says why not and changes nothing.
func (s *State) Do(a *Act) *Refusal {
	s.act, s.refused = a, nil
	for _, f := range []func(*Act) (bool, bool){s.leaderDo, s.leaseDo, s.readDo, s.linkDo, s.prefillDo, s.fabricDo} {
		if done, known := f(a); known {
			if s.journal != nil && done && s.refused == nil {
				s.journal(*a)
			}
			return s.refused
		}
	}
	return &Refusal{a.Name, "an action of the specification", "there is none of this name"}
}

// values says what the guards of an action look at, for people.
func (s *State) values(a *Act) string {
	var b strings.Builder
	if t := s.transfers[a.T]; t != nil {
		fmt.Fprintf(&b, "transfer is %s, cause %d, told %d; ", leadNames[t.lead], t.cause, t.http)
	}
	if l := s.leases[a.L]; l != nil {
		fmt.Fprintf(&b, "lease is %s of %d pages with %d kernels", dstNames[l.dst], len(l.plan), len(l.krn))
		if t := s.transfers[l.tof]; t != nil {
			fmt.Fprintf(&b, ", its transfer is %s", leadNames[t.lead])
		}
		for _, o := range l.owes {
			if o.owes {
				fmt.Fprintf(&b, "; link %d: epoch %d, hold %t, got %t, at prefill %s, %d writes, %d receipts, notices %d of %d", o.k, o.gep, o.hold, o.got, pstNames[o.pst], len(o.sent), o.ans, len(o.nin), len(o.nsent))
			}
		}
		b.WriteString("; ")
	} else if a.L != 0 {
		b.WriteString("lease was never granted, or is forgotten; ")
	}
	if int(a.K) < len(s.links) {
		k := s.links[a.K]
		fmt.Fprintf(&b, "link: epoch %d, up %t, fencing %t, mark %d, prefill's mark %d; ", k.ep, k.up, k.fencing, k.dmark&numbers>>subBits, k.pmark&numbers>>subBits)
	}
	if p := s.pages[a.P]; p != nil && a.P != 0 {
		fmt.Fprintf(&b, "page: owner %d, generation %d, appended %t, %d publications, %d shares; ", p.own&numbers>>subBits, p.gen, p.app, len(p.pubs), len(p.sharers))
	}
	return strings.TrimSuffix(b.String(), "; ")
}

func (s *State) touch(l *lease) { s.touched = append(s.touched, l.id) }
