package plants

// shares: prefixes that are shared with those who have no right to them, or stored into.
func shares() []Plant {
	return []Plant{
		{
			Name: "shared-across-tenants", What: "content ids leave out tenant and adapter, and the ledger does not compare them either",
			Guard: "Sharing within tenant, adapter and content only", Cases: []string{"B17"}, Mix: "sharing", Want: []string{"I3"},
			Edits: []Edit{
				{"core.DecodeLeader.submit", Value, "spec.ContentIDs(s.Prompt, q.domain, l.perPage)", "spec.ContentIDs(s.Prompt, spec.Domain{}, l.perPage)"},
				{"pages.Ledger.mayShare", Never, "x.Domain != d", ""},
			},
		},
		{
			Name: "shared-across-adapters", What: "the domain of a request leaves out its adapter, at both ends",
			Guard: "Sharing within tenant, adapter and content only", Cases: []string{"B17"}, Mix: "sharing", Want: []string{"I3"},
			Edits: []Edit{
				{"core.DecodeLeader.submit", Value, "spec.DomainOf(s.Tenant, s.Salt, s.Adapter, l.cfg.Revision)", `spec.DomainOf(s.Tenant, s.Salt, "", l.cfg.Revision)`},
				{"core.PrefillLeader.recvAsk", Value, "spec.DomainOf(a.Tenant, a.Salt, a.Adapter, l.cfg.Revision)", `spec.DomainOf(a.Tenant, a.Salt, "", l.cfg.Revision)`},
			},
		},
		{
			Name: "shared-by-position", What: "the content of a page is known by its own tokens, not by all before it",
			Guard: "Sharing within tenant, adapter and content only", Cases: []string{"B17"}, Mix: "sharing", Want: []string{"I3"},
			Edits: []Edit{{"core.DecodeLeader.submit", First, "l.requests[s.Req] = q", `for i := range q.contents {
						ids := spec.ContentIDs(s.Prompt[uint32(i)*l.perPage:uint32(i+1)*l.perPage], q.domain, l.perPage)
						q.contents[i] = ids[0]
					}`}},
		},
		{
			Name: "tail-uncopied", What: "a further sample goes on in a tail page that was not copied",
			Guard: "Copy before append", Cases: []string{"B31"}, Mix: "sharing", Want: []string{"I3"},
			Edits: []Edit{{"core.DecodeRank.readBegin", Value, "l.copies", "[]PageCopy(nil)"}},
		},
		{
			Name: "append-shared", What: "decode stores into a page that is published or shared, without a copy",
			Guard: "Copy before append", Cases: []string{"B31"}, Tests: true, Why: "a machine publishes full pages only, and appends to none of these",
			Edits: []Edit{{"pages.Ledger.Store", Never, "r.published || r.shares > 0", ""}},
		},
		{
			Name: "published-rehanded", What: "a page that is handed out again stays published under its old content",
			Guard: "Epoch, incarnation, generation, nonce on everything", Cases: []string{"B02", "B18"}, Mix: "sharing", Want: []string{"I3", "I18"},
			Edits: []Edit{
				{"pages.Ledger.give", Never, "r.published", ""},
				{"pages.Ledger.mayShare", Never, "l.pages[p.Page].gen != p.Gen", ""},
			},
		},
		{
			Name: "share-unheld", What: "a lease that shares pages has no hold on them",
			Guard: "Deferred release, decode side", Cases: []string{"B02", "B18"}, Mix: "sharing", Want: []string{"I3", "I2", "I17"},
			Edits: []Edit{
				{"pages.Ledger.Share", Skip, "r.shares++", ""},
				{"pages.Ledger.EndGroup", Skip, "l.pages[p].shares--", ""},
			},
		},
		{
			Name: "share-kept", What: "a lease's hold on what it shares never ends",
			Guard: "No leak", Cases: []string{"B33", "B44"}, Mix: "sharing", Want: []string{"pages", "answer"},
			Edits: []Edit{{"core.DecodeRank.ledgerEnd", Skip, "e.Freed += r.endShare(l)", ""}},
		},
		{
			Name: "holders-untold", What: "a page that was found bad fails the lease that found it, and none of the others that share it",
			Guard: "Tag check before and after the step", Cases: []string{"B18"}, Tests: true, Why: "their own checks find it as well",
			Edits: []Edit{{"core.DecodeRank.spoil", Skip, `r.fail(x, spec.CauseMismatch, fmt.Sprintf("%s page %d, which it shares, was found bad by lease %d", p.component, p.page, l.id), true)`, ""}},
		},
	}
}
