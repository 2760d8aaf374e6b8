package history

import (
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// told is a history written by hand: pairs of input and output, one after another on one client.
func told(pairs ...any) (ops []porcupine.Operation) {
	for i := 0; i < len(pairs); i += 2 {
		ops = append(ops, porcupine.Operation{Input: pairs[i], Output: pairs[i+1], Call: int64(2 * i), Return: int64(2*i + 1)})
	}
	return ops
}

// together lets operations of a told history overlap: all of them are called before any returns.
func together(ops []porcupine.Operation) []porcupine.Operation {
	for i := range ops {
		ops[i].ClientId, ops[i].Call, ops[i].Return = i, 0, 1
	}
	return ops
}

func grant(page, gen int) Answer {
	return Answer{Pages: []spec.GrantedPage{{Page: spec.PageID(page), Gen: spec.Generation(gen)}}}
}

func over(freed int) Answer { return Answer{Over: true, Freed: freed} }

func content(n byte) spec.ContentID { return spec.ContentID{n} }

func pub(n byte, page, gen int, filler uint64) Pub {
	return Pub{Content: content(n), Domain: spec.Domain{1}, Page: spec.PageID(page), Gen: spec.Generation(gen), Filler: filler}
}

func refused(why Refusal) Answer { return Answer{Refused: why} }

// what each rule of the ledger lets pass, and the nearest thing that it does not.
func TestLedger_ToldHistories_GoodOnesPassAndTheirLiesDoNot(t *testing.T) {
	link := Hold{Kind: 1, ID: 7}
	for _, c := range []struct {
		name string
		ops  []porcupine.Operation
		lie  any // the answer of the last operation that must not be
	}{
		{"a page is granted once", told(Take{Owner: 1, N: 1}, grant(0, 1), Take{Owner: 2, N: 1}, grant(1, 1)), grant(0, 2)},
		{"a generation rises by one", told(Take{Owner: 1, N: 1}, grant(0, 1), End{Owner: 1}, over(1), Take{Owner: 2, N: 1}, grant(0, 2)), grant(0, 1)},
		{"no room is no room", told(Take{Owner: 1, N: 2}, Answer{Pages: []spec.GrantedPage{{Page: 0, Gen: 1}, {Page: 1, Gen: 1}}}, Take{Owner: 2, N: 1}, refused(NoRoom)), grant(1, 2)},
		{"two holds, and the first end frees nothing",
			told(Take{Owner: 1, N: 1}, grant(0, 1), Begin{1, link}, Answer{}, End{Owner: 1}, Answer{}), over(1)},
		{"two holds, and the page is not taken between their ends",
			told(Take{Owner: 1, N: 1}, grant(0, 1), Begin{1, link}, Answer{}, End{Owner: 1}, Answer{}, Take{Owner: 2, These: []spec.PageID{0}}, refused(NotFree)), grant(0, 2)},
		{"the last hold's end frees", told(Take{Owner: 1, N: 1}, grant(0, 1), Begin{1, link}, Answer{}, End{1, link}, Answer{}, End{Owner: 1}, over(1)), over(0)},
		{"a hold ends once", told(Take{Owner: 1, N: 1}, grant(0, 1), Begin{1, link}, Answer{}, End{1, link}, Answer{}, End{1, link}, refused(UnknownHold)), Answer{}},
		{"an owner that is over takes no hold", told(Take{Owner: 1, N: 1}, grant(0, 1), BeginGroup{1, []spec.PageID{0}}, Answer{Group: 1}, End{Owner: 1}, over(0), Begin{1, link}, refused(Revoked)), Answer{}},
		{"a group outlives its owner", told(Take{Owner: 1, N: 1}, grant(0, 1), BeginGroup{1, []spec.PageID{0}}, Answer{Group: 1}, End{Owner: 1}, over(0), EndGroup{1}, Answer{Freed: 1}), Answer{}},
		{"a revoked owner grows no more", told(Take{Owner: 1, N: 1}, grant(0, 1), Revoke{1}, Answer{}, Take{Owner: 1, N: 1}, refused(NoRoom)), grant(1, 1)},
		{"a group is of its owner's pages", told(Take{Owner: 1, N: 1}, grant(0, 1), Take{Owner: 2, N: 1}, grant(1, 1), BeginGroup{1, []spec.PageID{1}}, refused(ForeignOwner)), Answer{Group: 1}},
		{"quarantine outlives its owner", told(Take{Owner: 1, N: 1}, grant(0, 1), Quarantine{Owner: 1, Page: 0}, Answer{}, End{Owner: 1}, over(0), EndQuarantine{0}, Answer{Freed: 1}), Answer{}},
		{"what is bad is not published", told(Take{Owner: 1, N: 1}, grant(0, 1), Quarantine{Owner: 1, Page: 0}, Answer{}, Publish{pub(1, 0, 1, 1)}, refused(Bad)), Answer{Done: true}},
		{"what was stored into is not published", told(Take{Owner: 1, N: 1}, grant(0, 1), Store{1, 0}, Answer{}, Publish{pub(1, 0, 1, 1)}, refused(Stored)), Answer{Done: true}},
		{"what is published is not stored into", told(Take{Owner: 1, N: 1}, grant(0, 1), Publish{pub(1, 0, 1, 1)}, Answer{Done: true}, Store{1, 0}, refused(Published)), Answer{}},
		{"another domain shares nothing", told(Take{Owner: 1, N: 1}, grant(0, 1), Publish{pub(1, 0, 1, 1)}, Answer{Done: true}, Share{2, spec.Domain{2}, []Pub{pub(1, 0, 1, 1)}}, refused(OtherDomain)), Answer{Group: 1}},
		{"another content shares nothing", told(Take{Owner: 1, N: 1}, grant(0, 1), Publish{pub(1, 0, 1, 1)}, Answer{Done: true}, Share{2, spec.Domain{1}, []Pub{pub(2, 0, 1, 1)}}, refused(OtherContent)), Answer{Group: 1}},
		{"a share keeps the page", told(Take{Owner: 1, N: 1}, grant(0, 1), Publish{pub(1, 0, 1, 1)}, Answer{Done: true}, Share{2, spec.Domain{1}, []Pub{pub(1, 0, 1, 1)}}, Answer{Group: 1},
			End{Owner: 1}, over(0), Take{Owner: 3, These: []spec.PageID{0}}, refused(NotFree)), grant(0, 2)},
		{"a hand-out ends the publication", told(Take{Owner: 1, N: 1}, grant(0, 1), Publish{pub(1, 0, 1, 1)}, Answer{Done: true}, End{Owner: 1}, over(1),
			Take{Owner: 3, These: []spec.PageID{0}}, Answer{Pages: []spec.GrantedPage{{Page: 0, Gen: 2}}, Ended: []spec.PageID{0}}, Find{content(1)}, Answer{}), Answer{Done: true, Pub: pub(1, 0, 1, 1)}},
		{"a stale publication is not shared", told(Take{Owner: 1, N: 1}, grant(0, 1), Publish{pub(1, 0, 1, 1)}, Answer{Done: true}, End{Owner: 1}, over(1),
			Take{Owner: 3, These: []spec.PageID{0}}, Answer{Pages: []spec.GrantedPage{{Page: 0, Gen: 2}}, Ended: []spec.PageID{0}}, Share{2, spec.Domain{1}, []Pub{pub(1, 0, 1, 1)}}, refused(Stale)), Answer{Group: 1}},
		{"room is made of what nobody shares", told(Take{Owner: 1, N: 2}, Answer{Pages: []spec.GrantedPage{{Page: 0, Gen: 1}, {Page: 1, Gen: 1}}}, Publish{pub(1, 0, 1, 1)}, Answer{Done: true},
			Publish{pub(2, 1, 1, 1)}, Answer{Done: true, Ended: []spec.PageID{0}}), Answer{Done: true}},
		{"room is not made of what somebody shares", told(Take{Owner: 1, N: 2}, Answer{Pages: []spec.GrantedPage{{Page: 0, Gen: 1}, {Page: 1, Gen: 1}}}, Publish{pub(1, 0, 1, 1)}, Answer{Done: true},
			Share{2, spec.Domain{1}, []Pub{pub(1, 0, 1, 1)}}, Answer{Group: 1}, Publish{pub(2, 1, 1, 1)}, Answer{}), Answer{Done: true, Ended: []spec.PageID{0}}},
		{"no page is lost in the counts", told(Take{Owner: 1, N: 1}, grant(0, 1), Count{}, Answer{Counts: [4]int{1, 1, 0, 0}}), Answer{Counts: [4]int{1, 0, 0, 0}}},
	} {
		model := Ledger(2, 1)
		require.NoError(t, Check(model, c.ops), c.name)
		lie := append([]porcupine.Operation(nil), c.ops...)
		lie[len(lie)-1].Output = c.lie
		require.ErrorIs(t, Check(model, lie), ErrRefused, c.name)
	}
}

func TestLedger_Overlapping_AnyOrderMayExplain(t *testing.T) {
	// The end and the hand-out of the freed page overlap: the end came first.
	ops := told(Take{Owner: 2, N: 1}, grant(0, 2), End{Owner: 1}, over(1))
	first := told(Take{Owner: 1, N: 1}, grant(0, 1))
	for i := range ops {
		ops[i].Call, ops[i].Return = 10, 11
	}
	require.NoError(t, Check(Ledger(1, 0), append(first, ops...)))
	// One after the other it did not.
	ops[0].Call, ops[0].Return = 8, 9
	require.ErrorIs(t, Check(Ledger(1, 0), append(first, ops...)), ErrRefused)
}

func TestLedger_WhatIsNoOperation_IsRefused(t *testing.T) {
	require.ErrorIs(t, Check(Ledger(1, 0), told(3, Answer{})), ErrRefused)
	require.ErrorIs(t, Check(Ledger(1, 0), told(Count{}, 3)), ErrRefused)
	require.ErrorContains(t, Check(Ledger(1, 0), together(told(Take{Owner: 1, N: 1}, grant(0, 1), Take{Owner: 2, N: 1}, grant(0, 1)))), "1 of 2 operations fit")
}
