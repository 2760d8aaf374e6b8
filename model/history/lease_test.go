package history

import (
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

func leased(id, page, gen int) Leased {
	return Leased{Lease: spec.LeaseID(id), Pages: []spec.GrantedPage{{Page: spec.PageID(page), Gen: spec.Generation(gen)}}}
}

// what each rule of leases lets pass, and the nearest thing that it does not.
func TestLeases_ToldHistories_GoodOnesPassAndTheirLiesDoNot(t *testing.T) {
	ready, lost := Fate{Ready: true}, Fate{Cause: spec.CauseFenced}
	for _, c := range []struct {
		name string
		ops  []porcupine.Operation
		lie  any
	}{
		{"a page is in one live lease", told(Lease{1, 1}, leased(1, 0, 1), Lease{2, 1}, leased(2, 1, 1)), leased(2, 0, 2)},
		{"numbers of leases rise", told(Lease{1, 1}, leased(1, 0, 1), Lease{2, 1}, leased(2, 1, 1)), leased(1, 1, 1)},
		{"a page comes back with its lease and a generation up", told(Lease{1, 1}, leased(1, 0, 1), Await{1}, ready, Yield{1}, nil, Freed{1}, nil, Lease{2, 1}, leased(2, 0, 2)), leased(2, 0, 1)},
		{"a ready lease has its own bytes", told(Lease{1, 1}, leased(1, 0, 1), Await{1}, ready, Peruse{1, 1}, []uint64{1}), []uint64{2}},
		{"what is not ready is not read", told(Lease{1, 1}, leased(1, 0, 1), Fault{}, nil, Await{1}, lost), ready.Cause},
		{"only a fault fails a lease", told(Lease{1, 1}, leased(1, 0, 1), Await{1}, ready), lost},
		{"a fault is no mismatch", told(Lease{1, 1}, leased(1, 0, 1), Fault{}, nil, Await{1}, lost), Fate{Cause: spec.CauseMismatch}},
		{"a lease granted behind a fault that is over does not fail", told(Fault{}, nil, Healed{}, nil, Lease{1, 1}, leased(1, 0, 1), Await{1}, ready), lost},
		{"a lease granted before it may", told(Lease{1, 1}, leased(1, 0, 1), Fault{}, nil, Healed{}, nil, Await{1}, lost), Fate{}},
		{"a fate stays", told(Lease{1, 1}, leased(1, 0, 1), Fault{}, nil, Await{1}, lost, Await{1}, lost), ready},
		{"who waits for pages waits with reason", told(Lease{1, 2}, Leased{Lease: 1, Pages: []spec.GrantedPage{{Page: 0, Gen: 1}, {Page: 1, Gen: 1}}}, Lease{2, 1}, Leased{Refused: NoPages}), Leased{Refused: spec.CausePeerLost}},
		{"no page is lost", told(Lease{1, 1}, leased(1, 0, 1), Yield{1}, nil, Freed{1}, nil, Room{}, 2), 1},
		{"a fence frees what has failed", told(Lease{1, 1}, leased(1, 0, 1), Fault{}, nil, Freed{1}, nil, Await{1}, lost, Room{}, 2), 1},
		{"and it is never ready", told(Lease{1, 1}, leased(1, 0, 1), Fault{}, nil, Freed{1}, nil, Await{1}, lost), ready},
	} {
		require.NoError(t, Check(Leases(2), c.ops), c.name)
		lie := append([]porcupine.Operation(nil), c.ops...)
		lie[len(lie)-1].Output = c.lie
		require.ErrorIs(t, Check(Leases(2), lie), ErrRefused, c.name)
	}
	for name, ops := range map[string][]porcupine.Operation{
		"waiting while pages are free":     told(Lease{1, 1}, Leased{Refused: NoPages}),
		"reading what failed":              told(Lease{1, 1}, leased(1, 0, 1), Fault{}, nil, Await{1}, lost, Peruse{1, 1}, []uint64{1}),
		"reading what nobody waited for":   told(Lease{1, 1}, leased(1, 0, 1), Peruse{1, 1}, []uint64{1}),
		"a release twice":                  told(Lease{1, 1}, leased(1, 0, 1), Yield{1}, nil, Freed{1}, nil, Freed{1}, nil),
		"a release of what was not leased": told(Yield{1}, nil),
		"a release that nobody asked for":  told(Lease{1, 1}, leased(1, 0, 1), Freed{1}, nil),
		"a fence that frees what is ready": told(Lease{1, 1}, leased(1, 0, 1), Await{1}, ready, Fault{}, nil, Freed{1}, nil),
		"a page before its hold has ended": told(Lease{1, 1}, leased(1, 0, 1), Yield{1}, nil, Lease{2, 1}, leased(2, 0, 2)),
		"reading what was given back":      told(Lease{1, 1}, leased(1, 0, 1), Await{1}, ready, Yield{1}, nil, Peruse{1, 1}, []uint64{1}),
		"no operation":                     told("x", nil),
	} {
		require.ErrorIs(t, Check(Leases(2), ops), ErrRefused, name)
	}
}
