package plants

// detection: guards that find what prevention cannot: dropped beside a fault of the fabric.
func detection() []Plant {
	return []Plant{
		{
			Name: "torn", What: "the fabric loses the second half of every write",
			Edits: []Edit{{"mem.write.advance", Skip, "place(w.p.Page, w.p.Segs, w.buf, len(w.buf)/2, len(w.buf))", ""}},
		},
		{
			Name: "flipped", What: "the fabric flips a bit of every write",
			Edits: []Edit{{"mem.write.launch", First, "w.buf, w.State = b, Launched", "if len(b) > 0 { b[0] ^= 1 }"}},
		},
		{
			Name: "flipped-copy", What: "a bit of every copy is flipped at the reader",
			Edits: []Edit{{"mem.job.bytes", First, "half := len(now) / 2", "if len(now) > 0 { now[0] ^= 1 }"}},
		},
		{
			Name: "stray", What: "the fabric puts every fifth write into the page beside the one that it was granted",
			Edits: []Edit{{"mem.write.check", First, `if why == "" {`, `if w.Ref%5 == 0 && why == "" {
						pool := poolOf(t.mem, w.w.Component)
						beside := (w.w.Dst.Page + 1) % spec.PageID(pool.Layout.Shape.Pages)
						p.Page, p.Slot = pool.Page(beside), pool.Slot(beside, w.w.Part)
					}`}},
		},
		{
			Name: "torn-unseen", What: "the byte digests of what landed are not compared", With: []string{"torn"},
			Guard: "Digest at verify", Cases: []string{"B15", "B16"}, Mix: "push", Want: []string{"I3"}, Why: "only a torn write differs",
			Edits: []Edit{{"sim.decodeRank.verify", Skip, "bad.Digest = !ok || got != c.Want.Digest", ""}},
		},
		{
			Name: "flip-unseen", What: "what Verify finds is not heeded", With: []string{"flipped"},
			Guard: "Digest at verify", Cases: []string{"B15"}, Mix: "push", Want: []string{"I3"}, Why: "only a flipped bit differs",
			Edits: []Edit{{"core.DecodeRank.verified", Never, "len(e.Bad) > 0", ""}},
		},
		{
			Name: "source-unseen", What: "a reader does not heed the source's tag and digest, which it compares after its copy", With: []string{"flipped-copy"},
			Guard: "Source tag and epoch checked after the copy (pull)", Cases: []string{"B02", "B04", "B18"}, Mix: "pull", Want: []string{"I3"}, Why: "only a copy that went wrong differs",
			Edits: []Edit{{"mem.job.advance", Never, "state != spec.TagGood || differs", ""}},
		},
		{
			Name: "tags-unseen", What: "a step's block table is compared with no tag", With: []string{"stray"},
			Guard: "Tag check before and after the step", Cases: []string{"B12", "B52"}, Mix: "push", Want: []string{"I3", "I15"}, Why: "only a write that goes astray changes the page of a ready lease",
			Edits: []Edit{{"core.DecodeRank.readBegin", Never, "!r.cfg.NoStepChecks", ""}},
		},
		{
			Name: "tags-before-only", What: "the tags of a block table are compared before a step and not again after it", With: []string{"stray"},
			Guard: "Tag check after the step", Cases: []string{"B18"}, Mix: "push", Want: []string{"I3"}, Why: "only a write that goes astray between the check and the read differs",
			Edits: []Edit{{"sim.decodeSide.begun", First, "if good && !whole {", "good, rd.bad = true, make([][]core.BadPart, len(rd.bad))"}},
		},
		{
			Name: "tags-unvoided", What: "pages are handed out with the tags that they had",
			Guard: "Void tags at hand-out", Cases: []string{"B52"}, Mix: "calm", Want: []string{"fidelity"},
			Edits: []Edit{{"core.DecodeRank.voidPages", Skip, "r.do(VoidTags{Component: spec.Component(c), Pages: ids})", ""}},
		},
	}
}
