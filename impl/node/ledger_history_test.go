package node

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"kvfence/impl/histories"
	"kvfence/impl/pages"
	"kvfence/model/history"
	"kvfence/spec"
)

// ledgerClient asks one ledger on behalf of one goroutine, through the mailbox of the loop that alone may touch it. It remembers
// enough to ask for something sensible most of the time, and asks for anything else the rest of it.
type ledgerClient struct {
	history.Client
	rng    *rand.Rand
	on     *loop
	ledger *pages.Ledger
	pages  []ownedPage
	groups []uint64
	bad    []spec.PageID
	holds  []history.Begin // that stand, as far as it knows
}

type ownedPage struct {
	spec.GrantedPage
	owner uint64
}

const (
	historyPages  = 24
	historyPubs   = 6
	historyOwners = 10
)

func (c *ledgerClient) ask(in any) history.Answer {
	return c.Do(in, func() any {
		var a history.Answer
		c.on.call(func() { a = histories.ApplyLedger(c.ledger, in) })
		return a
	}).(history.Answer)
}

func (c *ledgerClient) one(n int) bool { return c.rng.IntN(n) == 0 }

// owner is this client's own, rarely another's.
func (c *ledgerClient) owner() uint64 {
	if c.one(6) {
		return uint64(c.rng.IntN(historyOwners + 1))
	}
	return uint64(c.ID + 1)
}

// page is one that this client was given, with who was; rarely any.
func (c *ledgerClient) page() ownedPage {
	if len(c.pages) == 0 || c.one(6) {
		return ownedPage{spec.GrantedPage{Page: spec.PageID(c.rng.IntN(historyPages + 1)), Gen: spec.Generation(c.rng.IntN(4))}, c.owner()}
	}
	return c.pages[len(c.pages)-1-c.rng.IntN(min(len(c.pages), 4))]
}

func (c *ledgerClient) given(id uint64, got []spec.GrantedPage) {
	for _, g := range got {
		c.pages = append(c.pages, ownedPage{g, id})
	}
}

// standing is a hold that this client began, rarely any.
func (c *ledgerClient) standing() history.Begin {
	if len(c.holds) == 0 || c.one(8) {
		return history.Begin{Owner: c.owner(), Hold: c.hold()}
	}
	i := c.rng.IntN(len(c.holds))
	h := c.holds[i]
	c.holds = slices.Delete(c.holds, i, i+1)
	return h
}

func (c *ledgerClient) hold() history.Hold {
	return history.Hold{Kind: uint8(c.rng.IntN(4)), ID: uint64(c.rng.IntN(8))}
}

func (c *ledgerClient) content() (id spec.ContentID) {
	id[0] = byte(c.rng.IntN(9))
	return id
}

func (c *ledgerClient) domain() (d spec.Domain) {
	d[0] = byte(c.rng.IntN(2))
	return d
}

func (c *ledgerClient) group() uint64 {
	if len(c.groups) == 0 || c.one(8) {
		return uint64(c.rng.IntN(50))
	}
	i := c.rng.IntN(len(c.groups))
	g := c.groups[i]
	c.groups = slices.Delete(c.groups, i, i+1)
	return g
}

// spoiled is a page that this client put in quarantine, rarely any.
func (c *ledgerClient) spoiled() spec.PageID {
	if len(c.bad) == 0 {
		return c.page().Page
	}
	p := c.bad[0]
	c.bad = c.bad[1:]
	return p
}

// run asks n times.
func (c *ledgerClient) run(n int) {
	for len(c.Ops) < n {
		switch c.rng.IntN(20) {
		case 0, 1, 2:
			id := c.owner()
			if a := c.ask(history.Take{Owner: id, N: c.rng.IntN(4)}); a.Refused == "" {
				c.given(id, a.Pages)
				c.holds = append(c.holds, history.Begin{Owner: id})
			}
		case 3:
			id, these := c.owner(), []spec.PageID{c.page().Page, spec.PageID(c.rng.IntN(historyPages))}
			c.given(id, c.ask(history.Take{Owner: id, These: these}).Pages)
		case 4, 5:
			h := history.Begin{Owner: c.owner(), Hold: c.hold()}
			if c.ask(h).Refused == "" {
				c.holds = append(c.holds, h)
			}
		case 6, 7, 8, 9:
			c.ask(history.End(c.standing()))
		case 10:
			if c.one(3) {
				c.ask(history.Revoke{Owner: c.owner()})
			} else if p, q := c.page(), c.page(); true {
				c.grouped(c.ask(history.BeginGroup{Owner: p.owner, Pages: []spec.PageID{p.Page, q.Page}}))
			}
		case 11, 12:
			c.ask(history.EndGroup{Group: c.group()})
		case 13:
			if p := c.page(); c.ask(history.Quarantine{Owner: p.owner, Page: p.Page}).Refused == "" {
				c.bad = append(c.bad, p.Page)
			}
		case 14:
			c.ask(history.EndQuarantine{Page: c.spoiled()})
		default:
			c.share()
		}
	}
}

func (c *ledgerClient) grouped(a history.Answer) {
	if a.Group != 0 {
		c.groups = append(c.groups, a.Group)
	}
}

// share is an operation about published pages, or one that reads.
func (c *ledgerClient) share() {
	p := c.page()
	switch c.rng.IntN(7) {
	case 0, 1:
		c.ask(history.Publish{Pub: history.Pub{Content: c.content(), Domain: c.domain(), Page: p.Page, Gen: p.Gen, Filler: p.owner}})
	case 2, 3:
		c.shareFound()
	case 4:
		if c.one(3) {
			c.ask(history.Unpublish{Page: p.Page})
		}
	case 5:
		if c.one(3) {
			c.ask(history.Store{Owner: p.owner, Page: p.Page})
		}
	default:
		if c.one(2) {
			c.ask(history.Count{})
		} else {
			c.ask(history.Look{Page: p.Page})
		}
	}
}

// shareFound looks a content up and does something with its page.
func (c *ledgerClient) shareFound() {
	found := c.ask(history.Find{Content: c.content()})
	if !found.Done {
		return
	}
	switch c.rng.IntN(6) {
	case 0:
		c.ask(history.Store{Owner: found.Pub.Filler, Page: found.Pub.Page})
	case 1:
		if c.one(2) {
			break
		}
		c.ask(history.Unpublish{Page: found.Pub.Page})
	case 2:
		found.Pub.Domain[0] ^= 1
	}
	a := c.ask(history.Share{Owner: c.owner(), Domain: found.Pub.Domain, Pubs: []history.Pub{found.Pub}})
	if a.Group != 0 && c.one(6) {
		c.ask(history.Quarantine{Group: a.Group, At: 0, Page: found.Pub.Page})
		c.bad = append(c.bad, found.Pub.Page)
	}
	c.grouped(a)
}

// recordLedger lets so many clients ask one ledger n times each at once; the loop is the one that a node runs its machines on.
func recordLedger(t *testing.T, clients, n int) []porcupine.Operation {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	l, err := pages.New(historyPages)
	require.NoError(t, err)
	l.AllowSharing(historyPubs)
	epoch := time.Now()
	on := newLoop(epoch, nil, func(err error) { t.Error(err) })
	go on.run()
	defer on.stop()
	var wg sync.WaitGroup
	var all []*history.Client
	for i := range clients {
		c := &ledgerClient{Client: history.Client{ID: i, Now: func() int64 { return int64(time.Since(epoch)) }}, rng: rand.New(rand.NewPCG(seed, uint64(i))), on: on, ledger: l}
		all = append(all, &c.Client)
		wg.Go(func() { c.run(n) })
	}
	wg.Wait()
	require.True(t, on.call(func() { require.NoError(t, l.Check()) }))
	return history.Join(all...)
}

// overlaps is how many operations began before an earlier one had ended: a history without any shows nothing about concurrency.
func overlaps(ops []porcupine.Operation) (n int) {
	var end int64
	for _, op := range ops {
		if op.Call < end {
			n++
		}
		end = max(end, op.Return)
	}
	return n
}

// booked is what a history did: how often each kind of operation was carried out, and how often refused.
func booked(ops []porcupine.Operation) (done, refused map[string]int) {
	done, refused = map[string]int{}, map[string]int{}
	for _, op := range ops {
		to := done
		if op.Output.(history.Answer).Refused != "" {
			to = refused
		}
		to[strings.TrimPrefix(fmt.Sprintf("%T", op.Input), "history.")]++
	}
	return done, refused
}

func TestLedgerHistory_ManyGoroutinesThroughTheLoop_IsLinearizable(t *testing.T) {
	ops := recordLedger(t, 8, 1500)
	begin := time.Now()
	require.NoError(t, history.Check(history.Ledger(historyPages, historyPubs), ops))
	done, refused := booked(ops)
	t.Logf("%d operations, %d overlap, checked in %v; carried out %v, refused %v", len(ops), overlaps(ops), time.Since(begin).Round(time.Millisecond), done, refused)
	require.GreaterOrEqual(t, len(ops), 10_000)
	require.Greater(t, overlaps(ops), len(ops)/4)
	for _, kind := range []string{"Take", "Begin", "End", "Revoke", "BeginGroup", "EndGroup", "Quarantine", "EndQuarantine", "Publish", "Share", "Store", "Unpublish"} {
		require.Greater(t, done[kind], 2, "%s was hardly ever carried out", kind)
		require.Positive(t, refused[kind], "%s was never refused", kind)
	}
}

// alterLedger changes one answer of a real history into a lie, and reports whether it found one to change.
type alterLedger struct {
	name string
	lie  func(ops []porcupine.Operation, i int) bool
}

// answerOf is operation i's answer with slices of its own.
func answerOf(op porcupine.Operation) history.Answer {
	a := op.Output.(history.Answer)
	a.Pages, a.Ended = slices.Clone(a.Pages), slices.Clone(a.Ended)
	return a
}

// ledgerLies are the faults of a ledger, one answer each.
func ledgerLies() []alterLedger {
	change := func(name string, lie func(in any, a *history.Answer) bool) alterLedger {
		return alterLedger{name, func(ops []porcupine.Operation, i int) bool {
			a := answerOf(ops[i])
			if !lie(ops[i].Input, &a) {
				return false
			}
			ops[i].Output = a
			return true
		}}
	}
	return []alterLedger{
		{"a page is granted twice", func(ops []porcupine.Operation, i int) bool {
			a, b := answerOf(ops[i]), history.Answer{}
			for j := i + 1; j < len(ops) && len(a.Pages) > 0; j++ {
				// What is given out before the first owner can have asked for any end.
				if ops[j].Call < ops[i].Return {
					if b = answerOf(ops[j]); len(b.Pages) > 0 && ops[j].Input.(history.Take).These == nil {
						b.Pages[0] = a.Pages[0]
						ops[j].Output = b
						return true
					}
				}
			}
			return false
		}},
		change("a generation is not raised", func(_ any, a *history.Answer) bool {
			if len(a.Pages) == 0 || a.Pages[0].Gen < 2 {
				return false
			}
			a.Pages[0].Gen--
			return true
		}),
		change("one page more is freed", func(_ any, a *history.Answer) bool { a.Freed++; return a.Freed > 1 }),
		change("a page is not given back", func(_ any, a *history.Answer) bool { a.Freed--; return a.Freed >= 0 }),
		change("an owner is over before its last hold", func(in any, a *history.Answer) bool {
			_, end := in.(history.End)
			lie := end && !a.Over && a.Refused == ""
			a.Over = true
			return lie
		}),
		change("a hold that nobody began is ended", func(_ any, a *history.Answer) bool {
			lie := a.Refused == history.UnknownHold
			a.Refused = ""
			return lie
		}),
		change("a page that still has a hold is handed out as proposed", func(in any, a *history.Answer) bool {
			take, ok := in.(history.Take)
			if !ok || a.Refused != history.NotFree || take.These[0] == take.These[1] {
				return false
			}
			a.Refused = ""
			for _, p := range take.These {
				a.Pages = append(a.Pages, spec.GrantedPage{Page: p, Gen: 1})
			}
			return true
		}),
		change("another domain shares", func(_ any, a *history.Answer) bool {
			lie := a.Refused == history.OtherDomain
			a.Refused, a.Group = "", 1<<40
			return lie
		}),
		change("a handed out page is still found", func(in any, a *history.Answer) bool {
			_, find := in.(history.Find)
			lie := find && a.Done
			a.Pub.Gen--
			return lie
		}),
		change("a published page is stored into", func(_ any, a *history.Answer) bool {
			lie := a.Refused == history.Published
			a.Refused = ""
			return lie
		}),
		change("counts that leave a page out", func(in any, a *history.Answer) bool {
			_, count := in.(history.Count)
			a.Counts[1]--
			return count
		}),
		change("a group's number comes again", func(_ any, a *history.Answer) bool { lie := a.Group > 1; a.Group = 1; return lie }),
	}
}

// A lie may happen to be a truth: another client did at the same time what makes it one. So each is tried at some places.
func TestLedgerHistory_AlteredAnswer_IsRefused(t *testing.T) {
	ops := recordLedger(t, 3, 1000)
	model := history.Ledger(historyPages, historyPubs)
	require.NoError(t, history.Check(model, ops))
	require.Greater(t, overlaps(ops), len(ops)/4)
	for _, alter := range ledgerLies() {
		var err error
		tried := 0
		for again := 0; tried == 0 && again < 50; again++ { // what a lie needs may not have happened in one history
			if again > 0 {
				ops = recordLedger(t, 6, 700)
			}
			for i := 50; i < len(ops) && tried < 16 && err == nil; i++ {
				if altered := slices.Clone(ops); alter.lie(altered, i) {
					tried++
					err = history.Check(model, altered)
				}
			}
		}
		require.ErrorIs(t, err, history.ErrRefused, "%s (%d tried)", alter.name, tried)
	}
}
