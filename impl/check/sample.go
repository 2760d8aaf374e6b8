package check

import (
	"fmt"
	"slices"
	"strings"

	"kvfence/model/follow"
)

// SampleName is the module that Sample writes.
const SampleName = "Recorded"

// Sample is a recorded run, said and hidden steps, as a module that extends MCTransfer, and the constants that are large enough for it. The run
// must be of one decode rank. Numbers are put in TLA+'s order: leases by hand-out, marks by the first grant that they do not pass.
func Sample(acts []follow.Act) (module string, constants map[string]string) {
	s := &sample{leases: map[follow.Lease]int{}, pages: map[follow.Page]int{}, kinds: map[int]string{}, dmark: map[follow.Link]int{}, pmark: map[follow.Link]int{}}
	var steps []string
	for i := range acts {
		if text := s.step(&acts[i]); text != "" {
			steps = append(steps, text)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "---- MODULE %s ----\n(* A recorded run of the engine, step by step. *)\nEXTENDS MCTransfer\nCONSTANTS %s\nVARIABLE n\n", SampleName, strings.Join(s.values(), ", "))
	for from := 0; from < len(steps); from += 100 {
		fmt.Fprintf(&b, "Part%d ==\n", from/100)
		for i := from; i < min(from+100, len(steps)); i++ {
			fmt.Fprintf(&b, "  \\/ n = %d /\\ %s\n", i+1, steps[i])
		}
	}
	fmt.Fprintf(&b, "RNext ==\n")
	for from := 0; from < len(steps); from += 100 {
		fmt.Fprintf(&b, "  \\/ n > %d /\\ n <= %d /\\ Part%d /\\ n' = n + 1\n", from, from+100, from/100)
	}
	fmt.Fprintf(&b, "  \\/ n = %d /\\ UNCHANGED <<vars, n>>\nRSpec == Init /\\ n = 1 /\\ [][RNext]_<<vars, n>>\n====\n", len(steps)+1)
	constants = s.constants()
	for _, v := range s.values() {
		constants[v] = v
	}
	return b.String(), constants
}

// values are the model values that the steps name.
func (s *sample) values() (all []string) {
	for prefix, n := range map[string]int{"p": len(s.pages), "k": s.links, "n": len(s.tens), "c": 1, "a": 1, "f": 1} { // sorted below
		for i := range max(n, 1) {
			all = append(all, fmt.Sprintf("%s%d", prefix, i+1))
		}
	}
	slices.Sort(all)
	return all
}

type sample struct {
	leases map[follow.Lease]int
	grants []follow.Lease // that are no growth
	pages  map[follow.Page]int
	kinds  map[int]string // page: "kv", "state", "aux"
	links  int
	writer follow.Link
	states []follow.Link
	tens   []uint64
	nq, ne, nt,
	ni int
	dmark, pmark map[follow.Link]int
}

func (s *sample) lease(l follow.Lease) int {
	if l == 0 {
		return 0
	}
	if s.leases[l] == 0 {
		s.leases[l] = len(s.leases) + 1
	}
	return s.leases[l]
}

func (s *sample) page(p follow.Page) string {
	if s.pages[p] == 0 {
		s.pages[p] = len(s.pages) + 1
	}
	return fmt.Sprintf("p%d", s.pages[p])
}

func link(k follow.Link) string { return fmt.Sprintf("k%d", k+1) }

// mark is the number of the first grant that a mark does not pass, else the next number.
func (s *sample) mark(m follow.Lease) int {
	for _, l := range s.grants {
		if l >= m {
			return s.leases[l]
		}
	}
	return len(s.leases) + 1
}

func (s *sample) see(a *follow.Act) {
	s.links = max(s.links, int(a.K)+1)
	s.nq, s.ne = max(s.nq, int(a.Q)), max(s.ne, int(a.E))
	s.nt, s.ni = max(s.nt, int(a.T), int(a.U), int(a.R)), max(s.ni, int(a.I))
}

// step is the text of one action; "" for one that says nothing new.
func (s *sample) step(a *follow.Act) string {
	s.see(a)
	l, k, p, i := s.lease, link(a.K), "", int(a.I)
	if a.P != 0 {
		p = s.page(a.P)
	}
	kind := []string{`"complete"`, `"misnamed"`, `"ack"`, `"failed"`, `"gone"`}[min(a.Kind, 4)]
	cause := []string{`"none"`, `"derived"`, `"original"`}[min(a.Cause, 2)]
	switch a.Name {
	case "Submit", "Ask", "RecvAsk", "RecvAsked", "Run", "Success", "Refuse":
		return fmt.Sprintf("%s(%d)", a.Name, a.T)
	case "Failure":
		return fmt.Sprintf("Failure(%d, %s)", a.T, cause)
	case "Recause":
		return fmt.Sprintf("Recause(%d, %d, %s)", a.T, a.R, cause)
	case "Retry":
		return fmt.Sprintf("Retry(%d, %d, %d)", a.T, a.U, a.R)
	case "Answer":
		return fmt.Sprintf("Answer(%d, %d)", a.T, a.R)
	case "Grant":
		return s.grant(a)
	case "Grow":
		return fmt.Sprintf("Grow(%d, %d, %s)", l(a.L), l(a.X), p)
	case "Abort", "Verify", "BadVerify", "Ready", "Release", "QuarantineEnd":
		return fmt.Sprintf("%s(%d)", a.Name, l(a.L))
	case "RecvComplete", "RecvReceipt":
		return fmt.Sprintf("%s(%s, %d, %d, %s, %d)", a.Name, kind, l(a.X), l(a.L), k, i)
	case "NoticeIn":
		return fmt.Sprintf("NoticeIn(%d, %s, c1, %d)", l(a.L), k, i)
	case "Take":
		return fmt.Sprintf("Take(%s, %d, %s, %d)", kind, l(a.L), k, i)
	case "Read":
		return fmt.Sprintf("Read(%d, %d, %s, %d)", a.T, l(a.L), p, l(a.X))
	case "ReadEnd":
		return fmt.Sprintf("ReadEnd(%d, %s, %d, %d)", l(a.L), p, a.G, l(a.X))
	case "BadRead":
		return fmt.Sprintf("BadRead(%d, %s, %d)", l(a.L), p, l(a.X))
	case "Append", "Publish":
		return fmt.Sprintf("%s(%d, %s)", a.Name, l(a.L), p)
	case "Unpublish":
		return fmt.Sprintf("Unpublish(%s, %d, %d)", p, a.G, l(a.X))
	case "Share":
		return fmt.Sprintf("Share(%d, %s, %d, %d)", l(a.L), p, a.G, l(a.X))
	}
	return s.otherStep(a, k, p, i)
}

func (s *sample) otherStep(a *follow.Act, k, p string, i int) string {
	l := s.lease
	switch a.Name {
	case "Fence":
		s.ne++
		return fmt.Sprintf("Fence(%s)", k)
	case "FenceEnd", "Accept", "PrefillCrash":
		return fmt.Sprintf("%s(%s)", a.Name, k)
	case "Connect":
		return fmt.Sprintf("Connect(%s, %d, %d, %d)", k, i, a.D, a.E)
	case "RaiseMark":
		return s.raised(a.Name, k, s.dmark, a)
	case "RecvMark", "OwnMark":
		return s.raised(a.Name, k, s.pmark, a)
	case "PrefillFence":
		return fmt.Sprintf("PrefillFence(%s, %d, %d)", k, a.D, a.E)
	case "Start":
		return fmt.Sprintf(`Start(%d, %d, %s, "same")`, a.T, l(a.L), k)
	case "TakeSource", "Compute", "Seal", "GiveBack":
		return fmt.Sprintf("%s(%d, %s, %d)", a.Name, l(a.L), k, a.Q)
	case "Post":
		return fmt.Sprintf("Post(%d, %s, %s, c1, %d)", l(a.L), k, p, a.Q)
	case "Notice":
		return fmt.Sprintf("Notice(%d, %s, c1)", l(a.L), k)
	case "Complete", "Break", "RecvAbort", "AbortAck", "Failed", "Gone", "Forget":
		return fmt.Sprintf("%s(%d, %s)", a.Name, l(a.L), k)
	case "Launch":
		return fmt.Sprintf("Launch(%d, %s, %s, c1, %d, %d)", l(a.L), k, p, i, a.Q)
	case "Check", "Drop", "Lose", "Copy", "Visible":
		return fmt.Sprintf("%s(%d, %s, %s, c1, %d)", a.Name, l(a.L), k, p, i)
	}
	return "FALSE \\* " + a.Name
}

func (s *sample) raised(name, k string, marks map[follow.Link]int, a *follow.Act) string {
	m := s.mark(a.M)
	if m == marks[a.K] {
		return "" // numbers that were taken and given back lie between
	}
	marks[a.K] = m
	return fmt.Sprintf("%s(%s, %d)", name, k, m)
}

// component is where a page's number has its component (see follow's page numbers).
func component(p follow.Page) string {
	return []string{"kv", "state", "aux"}[min(uint64(p)>>40&0xf, 2)]
}

func (s *sample) grant(a *follow.Act) string {
	var pages, links []string
	for _, p := range a.S {
		name := s.page(p)
		pages = append(pages, name)
		s.kinds[s.pages[p]] = component(p)
	}
	for _, k := range a.Ks {
		links = append(links, link(k))
	}
	for _, x := range a.Parts {
		switch component(x.P) {
		case "aux":
			s.writer = x.K
		case "state":
			if !slices.Contains(s.states, x.K) {
				s.states = append(s.states, x.K)
			}
		}
	}
	at := slices.Index(s.tens, a.N)
	if at < 0 {
		at = len(s.tens)
		s.tens = append(s.tens, a.N)
	}
	s.grants = append(s.grants, a.L)
	return fmt.Sprintf("Grant(%d, n%d, a1, f1, %d, {%s}, {%s})", a.T, at+1, s.lease(a.L), strings.Join(pages, ", "), strings.Join(links, ", "))
}

func names(prefix string, n int) string {
	var all []string
	for i := range max(n, 1) {
		all = append(all, fmt.Sprintf("%s%d", prefix, i+1))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func (s *sample) constants() map[string]string {
	of := func(kind string) string {
		var all []string
		for i := range len(s.pages) {
			if s.kinds[i+1] == kind {
				all = append(all, fmt.Sprintf("p%d", i+1))
			}
		}
		return "{" + strings.Join(all, ", ") + "}"
	}
	var states []string
	for _, k := range s.states {
		states = append(states, link(k))
	}
	number := func(n int) string { return fmt.Sprint(n) }
	return map[string]string{"Page": names("p", len(s.pages)), "Rank": names("k", s.links), "Tenant": names("n", len(s.tens)), "Aux": of("aux"), "AuxWriter": link(s.writer),
		"State": of("state"), "StateRank": "{" + strings.Join(states, ", ") + "}", "NL": number(len(s.leases) + 1), "NE": number(s.ne + 1), "NI": number(s.ni), "NT": number(max(s.nt, 1)),
		"NQ": number(max(s.nq, 1)), "Causes": `{"derived", "original"}`, "Growing": "TRUE", "Publishing": "TRUE", "Appending": "TRUE", "Retrying": "TRUE"}
}
