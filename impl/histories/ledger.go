package histories

import (
	"errors"
	"fmt"

	"kvfence/impl/pages"
	"kvfence/model/history"
)

// refusals are the model's words for the ledger's sentinels.
func refusals() map[error]history.Refusal {
	return map[error]history.Refusal{
		pages.ErrUnknownPage: history.UnknownPage, pages.ErrUnknownOwner: history.UnknownOwner, pages.ErrForeignOwner: history.ForeignOwner,
		pages.ErrNotFree: history.NotFree, pages.ErrDoubleFree: history.AlreadyFree, pages.ErrRevoked: history.Revoked,
		pages.ErrUnknownHold: history.UnknownHold, pages.ErrHoldExists: history.HoldExists, pages.ErrNotBad: history.NotBad,
		pages.ErrPublished: history.Published, pages.ErrStored: history.Stored, pages.ErrNotPublished: history.NotPublished,
		pages.ErrStale: history.Stale, pages.ErrOtherContent: history.OtherContent, pages.ErrOtherDomain: history.OtherDomain, pages.ErrQuarantined: history.Bad,
	}
}

func refusalOf(err error) history.Refusal {
	if err == nil {
		return ""
	}
	for sentinel, word := range refusals() {
		if errors.Is(err, sentinel) {
			return word
		}
	}
	return history.Refusal("no sentinel: " + err.Error())
}

func toPublication(p history.Pub) pages.Publication {
	return pages.Publication{Content: p.Content, Domain: p.Domain, Page: p.Page, Gen: p.Gen, Filler: pages.Owner(p.Filler)}
}

func toPub(p pages.Publication) history.Pub {
	return history.Pub{Content: p.Content, Domain: p.Domain, Page: p.Page, Gen: p.Gen, Filler: uint64(p.Filler)}
}

func toHold(h history.Hold) pages.Hold { return pages.Hold{Kind: pages.HoldKind(h.Kind), ID: h.ID} }

// ApplyLedger carries out one operation of a history on a ledger; on the ledger's own goroutine.
func ApplyLedger(l *pages.Ledger, in any) (a history.Answer) {
	var err error
	switch x := in.(type) {
	case history.Take:
		if x.These != nil {
			a.Pages, err = l.TakeThese(x.These, pages.Owner(x.Owner))
		} else if got, ok := l.Take(uint32(x.N), pages.Owner(x.Owner)); ok {
			a.Pages = got
		} else {
			a.Refused = history.NoRoom
		}
	case history.Begin:
		err = l.AddHold(pages.Owner(x.Owner), toHold(x.Hold))
	case history.End:
		var e pages.Ended
		e, err = l.EndHold(pages.Owner(x.Owner), toHold(x.Hold))
		a.Freed, a.Over = int(e.Freed), e.Over
	case history.Revoke:
		err = l.Revoke(pages.Owner(x.Owner))
	case history.BeginGroup:
		var g pages.Group
		g, err = l.HoldPages(pages.Owner(x.Owner), x.Pages)
		a.Group = uint64(g)
	case history.EndGroup:
		var e pages.Ended
		e, err = l.EndGroup(pages.Group(x.Group))
		a.Freed = int(e.Freed)
	case history.Quarantine:
		if x.Group == 0 {
			err = l.Quarantine(pages.Owner(x.Owner), x.Page)
		} else {
			err = l.QuarantineShared(pages.Group(x.Group), uint32(x.At), x.Page)
		}
	case history.EndQuarantine:
		var e pages.Ended
		e, err = l.EndQuarantine(x.Page)
		a.Freed = int(e.Freed)
	default:
		a, err = applySharing(l, in)
	}
	if err != nil {
		a.Refused = refusalOf(err)
	}
	for _, p := range l.Ended() {
		a.Ended = append(a.Ended, p.Page)
	}
	return a
}

func applySharing(l *pages.Ledger, in any) (a history.Answer, err error) {
	switch x := in.(type) {
	case history.Publish:
		a.Done, err = l.Publish(toPublication(x.Pub))
	case history.Unpublish:
		err = l.Unpublish(x.Page)
	case history.Find:
		var p pages.Publication
		if p, a.Done = l.Find(x.Content); a.Done {
			a.Pub = toPub(p)
		}
	case history.Share:
		var these []pages.Publication
		for _, p := range x.Pubs {
			these = append(these, toPublication(p))
		}
		var g pages.Group
		g, err = l.Share(pages.Owner(x.Owner), x.Domain, these)
		a.Group = uint64(g)
	case history.Store:
		err = l.Store(pages.Owner(x.Owner), x.Page)
	case history.Look:
		a.Owner, a.Gen, a.State, a.Done = uint64(l.Owner(x.Page)), l.Gen(x.Page), uint8(l.State(x.Page)), l.Stored(x.Page)
	case history.Count:
		c := l.Counts()
		a.Counts = [4]int{int(c.Free), int(c.Held), int(c.Revoking), int(c.Quarantined)}
	default:
		err = fmt.Errorf("no ledger operation %T", in)
	}
	return a, err
}
