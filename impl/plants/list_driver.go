package plants

// driver: the same guards where they live outside of the core, in the node that runs it and in its transport. Their own tests are the gate:
// sockets and goroutines are not simulated.
func driver() []Plant {
	const why = "sockets and goroutines are not simulated"
	return []Plant{
		{
			Name: "tcp-fence-unwaited", What: "a tcp target says that it is fenced when its streams are closed",
			Guard: "Fence waits for placers in progress", Cases: []string{"B09", "B26"}, Tests: true, Why: why,
			Edits: []Edit{{"tcp.target.Fence", Skip, "t.wg.Wait() err = t.grants.Wait(t.info.Epoch + 1)", ""}},
		},
		{
			Name: "node-strays-stay", What: "a page is handed out while something of a lease that is over is still being placed there",
			Guard: "Deferred release, decode side", Cases: []string{"B01", "B09"}, Tests: true, Why: why,
			Edits: []Edit{{"node.decodeRank.expel", Always, "l == nil || len(l.grants.Strays(c, pages)) == 0", ""}},
		},
		{
			Name: "node-verified-first", What: "a lease is verified while its writer's adapter still holds the right to write to it",
			Guard: "Nothing lands from ready on", Cases: []string{"B01", "B09"}, Tests: true, Why: why,
			Edits: []Edit{{"node.decodeRank.takeBack", Instead, "s.Settle(lease) return l.grants.WaitLease(a.Lease)", "s.Settle(lease); return nil"}},
		},
		{
			Name: "tcp-staged-tag-first", What: "the tags of a frame are stored while its bytes are still in staging memory",
			Guard: "Tag last", Cases: []string{"B18"}, Tests: true, Why: why,
			Edits: []Edit{{"tcp.receiver.settle", Skip, "err = s.end(x.places[:])", ""}},
		},
		{
			Name: "tcp-landing-forgotten", What: "a landing is not waited for when another call of its device has failed",
			Guard: "Fence waits for placers in progress", Cases: []string{"B09"}, Tests: true, Why: why,
			Edits: []Edit{{"tcp.stager.end", Instead, "return errors.Join(err, s.drop(places))", "return err"}},
		},
		{
			Name: "tcp-lost-is-over", What: "what was landing on a device when it was lost counts as being placed no more",
			Guard: "Deferred release, decode side", Cases: []string{"B01", "B09"}, Tests: true, Why: why,
			Edits: []Edit{{"tcp.receiver.frame", Never, "pl.staged && lost", ""}},
		},
		{
			Name: "node-unraised", What: "a node's fence does not raise the epoch of its grant table",
			Guard: "Fence raises the epoch", Cases: []string{"B09", "B34"}, Tests: true, Why: why,
			Edits: []Edit{{"node.decodeRank.fence", Skip, "l.grants.Raise(a.New)", ""}},
		},
		{
			Name: "node-checked-once", What: "a node compares the tags of a block table before a step and not after it",
			Guard: "Tag check after the step", Cases: []string{"B18"}, Tests: true, Why: why,
			Edits: []Edit{{"node.decodeSide.checked", Instead, `return fmt.Errorf("%w after the read", errTags)`, "rd.bad = make([][]core.BadPart, len(rd.bad)); return nil"}},
		},
		{
			Name: "node-digest-unread", What: "a node does not compare the digests of what landed",
			Guard: "Digest at verify", Cases: []string{"B15", "B16"}, Tests: true, Why: why,
			Edits: []Edit{{"node.decodeRank.checkPart", Skip, "bad.Digest = !ok || got != c.Want.Digest", ""}},
		},
		{
			Name: "node-slots-unread", What: "a node does not look at the tag slots that no part uses",
			Guard: "Void tags at hand-out", Cases: []string{"B52"}, Tests: true, Why: why,
			Edits: []Edit{{"node.decodeRank.compare", Never, "states[i] != spec.TagGood", ""}},
		},
		{
			Name: "node-ends-forgotten", What: "a node says that a fence is done when the first of its paths has ended",
			Guard: "Fence waits for placers in progress", Cases: []string{"B09"}, Tests: true, Why: why,
			Edits: []Edit{{"node.ends.over", Always, "w.left == 0", ""}},
		},
	}
}
