package follow

// Numbers of the relation. They are the follower's own: it gives each thing of a trace its number when it first meets it.
type (
	Node     uint32 // a decode rank in one life
	Link     uint32 // Rank of the TLA+ text: a decode rank and one of its peers
	Lease    uint64 // rises with the grants of a node
	Transfer uint64
	Page     uint64
	SPage    uint64 // of a link
	Chan     uint32
	Inc      uint64 // lives of a link's prefill rank; lives of a node
	Epoch    uint64
	Gen      uint64
)

// A lease's number has its node above, its number at that node, and below which of the pages that decode filled itself it is; 0 for a
// grant.
const (
	subBits  = 12
	nodeBits = 44
	numbers  = 1<<nodeBits - 1
)

// Values of the variables that TLA+ writes as strings, in the order of package model.
const (
	leadNew uint8 = iota
	leadSubmitted
	leadAsking
	leadOpen
	leadRun
	leadOk
	leadFailed
	leadRefused
)

const (
	causeNone uint8 = iota
	causeDerived
	causeOriginal
)

const (
	httpNone uint8 = iota
	http200
	httpError
)

const (
	dstNew uint8 = iota
	dstFilling
	dstRevoking
	dstVerified
	dstReady
	dstBad
	dstFailed
	dstDone
	dstDead
)

const (
	pstNone uint8 = iota
	pstWriting
	pstClosing
	pstClosed
)

const (
	viewSame uint8 = iota
	viewShort
	viewOther
)

const (
	srcRaw uint8 = iota
	srcComputed
	srcSealed
)

const (
	kindComplete uint8 = iota
	kindMisnamed
	kindAck
	kindFailed
	kindGone
)

var (
	leadNames = [...]string{"new", "submitted", "asking", "open", "run", "ok", "failed", "refused"}
	dstNames  = [...]string{"new", "filling", "revoking", "verified", "ready", "bad", "failed", "done", "dead"}
	pstNames  = [...]string{"none", "writing", "closing", "closed"}
	kindNames = [...]string{"complete", "misnamed", "ack", "failed", "gone"}
)

// State is a state of TLA/Transfer.tla with all guards on, at any size: what is not here has the value of Init. There may be several
// decode nodes, each with pages, links and a lease counter of its own; the text's one node is the case of one.
type State struct {
	nodes     []*node
	links     []*link
	transfers map[Transfer]*transfer
	leases    map[Lease]*lease
	pages     map[Page]*page

	force   bool      // take the step although a guard does not hold
	refused *Refusal  // the first guard that did not hold
	explain bool      // say the values with a refusal
	journal func(Act) // is given each step that is taken
	act     *Act
	apart   bool // pages that decode fills itself have lease numbers beside those of grants
	asking  bool // transfers come by Submit: a crash fails those without a lease, too
	touched []Lease
}

type node struct {
	dinc   Inc
	nextL  Lease
	links  []Link
	leases map[Lease]*lease
	pages  map[Page]bool // that were ever handed out
}

type link struct {
	node        Node
	ep          Epoch
	linc, pinc  Inc
	up, fencing bool
	pull        bool // the receiver copies: Pull.tla
	dmark       Lease
	pmark       Lease
	pfenced     map[fenced]bool
	acc         map[accepted]bool
	src         map[SPage]*source
	owed        map[Lease]*owe // of grants on it that are not forgotten
}

type fenced struct {
	d Inc
	e Epoch
}

type accepted struct {
	i, d Inc
	e    Epoch
}

type source struct {
	own, dat Lease
	st       uint8
	queued   int // writes that read it
}

type transfer struct {
	lead, cause, http uint8
	root, succ        Transfer
	pask, big         bool
	had               bool // leases that are forgotten
	leases            []Lease
}

type page struct {
	own     Lease
	gen     Gen
	app     bool
	slots   []slot
	pubs    []published
	sharers []share
}

// slot is what one link writes into a page: whose bytes, whose tag.
type slot struct {
	k        Link
	mem, tag Lease
}

type published struct {
	gen    Gen
	filler Lease
}

type share struct {
	lease, filler Lease
	page          Page
}

type lease struct {
	id            Lease
	node          Node
	dst           uint8
	dof           Inc
	tof           Transfer
	ten, ada, pre uint64
	plan          []planned
	at            map[Page]Gen // the plan
	owes          []*owe
	shr           []share
	krn           map[kernel]int
	tok           map[token]bool
	ready         bool // it has been
	sub           []Lease
}

type planned struct {
	page Page
	gen  Gen
}

type kernel struct {
	page   Page
	gen    Gen
	filler Lease
}

type token struct{ filler, mem Lease }

// owe is what is between a lease and a link.
type owe struct {
	lease     *lease
	k         Link
	owes      bool
	hold, got bool
	gep, qep  Epoch
	ginc      Inc
	owed      map[Page]bool
	rec, ans  uint8 // bit for each kind
	nin       []Chan
	nsent     []Chan
	pst       uint8
	pview     uint8
	seen      bool // pview has been decided
	sent      map[at]*write
	pulled    map[at]*write // pull: copies, by page and job
	said      bool          // pull: Read was said
}

type at struct {
	p Page
	c Chan
}

type write struct {
	at
	queued, flying, placing, unseen, lost bool
	src                                   SPage
	pay                                   Lease
}

// NewState is Init without any node.
func NewState() *State {
	return &State{transfers: map[Transfer]*transfer{}, leases: map[Lease]*lease{}, pages: map[Page]*page{}}
}

// addNode adds a decode node with no links.
func (s *State) addNode(next Lease) Node {
	s.nodes = append(s.nodes, &node{nextL: next, leases: map[Lease]*lease{}, pages: map[Page]bool{}})
	return Node(len(s.nodes) - 1)
}

// addLink adds a link of a node, down.
func (s *State) addLink(n Node) Link {
	k := Link(len(s.links))
	s.links = append(s.links, &link{node: n, pfenced: map[fenced]bool{}, acc: map[accepted]bool{}, src: map[SPage]*source{}, owed: map[Lease]*owe{}})
	s.nodes[n].links = append(s.nodes[n].links, k)
	return k
}

func (s *State) page(n Node, p Page) *page {
	x := s.pages[p]
	if x == nil {
		x = &page{}
		s.pages[p] = x
		s.nodes[n].pages[p] = true
	}
	return x
}

// transfer is the record of t; a new one is as in Init.
func (s *State) transfer(t Transfer) *transfer {
	x := s.transfers[t]
	if x == nil {
		x = &transfer{root: t}
		s.transfers[t] = x
	}
	return x
}

// noLease stands for a lease that is not there: its variables are those of Init.
func (s *State) lease(l Lease) *lease {
	if x := s.leases[l]; x != nil {
		return x
	}
	return &lease{id: l}
}

// on is what is between a lease and a link; nil if there is nothing yet.
func (l *lease) on(k Link) *owe {
	for _, o := range l.owes {
		if o.k == k {
			return o
		}
	}
	return nil
}

// with is on, and made if it is not there.
func (s *State) with(l *lease, k Link) *owe {
	if o := l.on(k); o != nil {
		return o
	}
	o := &owe{lease: l, k: k}
	if s.leases[l.id] == l {
		l.owes = append(l.owes, o)
	}
	return o
}

func (p *page) slot(k Link) *slot {
	for i := range p.slots {
		if p.slots[i].k == k {
			return &p.slots[i]
		}
	}
	p.slots = append(p.slots, slot{k: k})
	return &p.slots[len(p.slots)-1]
}

// look is slot without making one.
func (p *page) look(k Link) slot {
	for i := range p.slots {
		if p.slots[i].k == k {
			return p.slots[i]
		}
	}
	return slot{k: k}
}
