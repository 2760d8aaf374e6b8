package plants

// release: holds that end without proof.
func release() []Plant {
	return []Plant{
		{
			Name: "abort-frees", What: "an abort frees decode's pages at once: no link's hold keeps them",
			Guard: "Deferred release, decode side", Cases: []string{"B01", "B26", "B31"}, Mix: "push", Want: []string{"I13", "I2"},
			Edits: []Edit{
				{"core.DecodeRank.goOn", Always, "r.ledgerAdd(l, linkHold(k))", ""},
				{"core.DecodeRank.endHold", Skip, "r.ledgerEnd(h.lease, linkHold(h.link))", ""},
			},
		},
		{
			Name: "source-frees", What: "prefill's source pages go back while a posted batch still reads them",
			Guard: "Deferred release, prefill side", Cases: []string{"B25"}, Mix: "push", Want: []string{"I6"},
			Edits: []Edit{
				{"core.PrefillRank.post", Skip, "r.hold(j, pages.Hold{Kind: pages.OperationKind, ID: b.id})", ""},
				{"core.PrefillRank.batchOver", Skip, "r.endHold(b.job, pages.Hold{Kind: pages.OperationKind, ID: b.id})", ""},
			},
		},
	}
}
