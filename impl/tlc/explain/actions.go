package explain

// place is a line of the diagram.
type place byte

const (
	nowhere       place = 0
	client        place = 'C'
	decodeLeader  place = 'L'
	prefillLeader place = 'P'
	decodeRank    place = 'D'
	prefillRank   place = 'K' // one line for each
	fabric        place = 'F'
	pages         place = 'G'
)

// how an action shows.
type how byte

const (
	does     how = '.' // something at one place
	sends    how = '>' // a message goes out; it may arrive later, often, or never
	receives how = '<' // a message that went out arrives
	touches  how = '=' // one place acts upon another
	crashes  how = 'x'
)

// action is what the diagram knows of an action. formals are roles, as in variable; those of which the change tells no value, or
// several, are left out; a large letter may have several.
type action struct {
	name     string
	formals  string
	from, to place
	how      how
	message  string // what is sent and received: its kind, then the roles that tell one from another
	says     string
}

// actor is the place where the action happens.
func (a *action) actor() place {
	if a.how == receives {
		return a.to
	}
	return a.from
}

func transferActions() []action {
	return append(append(leaderActions(), decodeActions()...), append(prefillActions(), fabricActions()...)...)
}

func leaderActions() []action {
	return []action{
		{"Submit", "t", client, decodeLeader, touches, "", "a request comes"},
		{"Refuse", "t", decodeLeader, nowhere, does, "", "the prompt can never fit: the decode leader refuses"},
		{"Ask", "t", decodeLeader, prefillLeader, sends, "ask t", "the decode leader asks prefill"},
		{"RecvAsk", "t", decodeLeader, prefillLeader, receives, "ask t", "prefill's leader accepts"},
		{"RecvAsked", "t", prefillLeader, decodeLeader, receives, "", "the acceptance is here: leases may be taken"},
		{"Run", "t", decodeLeader, nowhere, does, "", "the plan is whole"},
		{"Success", "t", decodeLeader, nowhere, does, "", "the decode leader records success"},
		{"Failure", "tz", decodeLeader, nowhere, does, "", "the decode leader records a failure"},
		{"Recause", "tz", decodeLeader, nowhere, does, "", "a late report names the cause"},
		{"Retry", "T", decodeLeader, nowhere, does, "", "the request is tried again"},
		{"Answer", "t", decodeLeader, client, touches, "", "the client is answered"},
	}
}

func decodeActions() []action {
	return []action{
		{"Grant", "tlnafPK", decodeRank, prefillRank, sends, "grant lk", "decode hands pages to a lease and asks for their parts"},
		{"Grow", "lp", decodeRank, pages, touches, "", "decode takes a page that it fills by itself"},
		{"Abort", "l", decodeRank, prefillRank, sends, "abort l", "decode aborts the lease"},
		{"RecvComplete", "ylki", prefillRank, decodeRank, receives, "receipt ylki", "a Complete arrives"},
		{"RecvReceipt", "ylki", prefillRank, decodeRank, receives, "receipt ylki", "a receipt arrives"},
		{"NoticeIn", "lkci", fabric, decodeRank, touches, "", "a notice arrives behind the writes of its channel"},
		{"Take", "ylki", decodeRank, nowhere, does, "", "decode takes the receipt: the hold ends"},
		{"GiveUp", "lk", decodeRank, nowhere, does, "", "decode has waited long enough and ends the hold by itself"},
		{"Verify", "l", pages, decodeRank, touches, "", "decode verifies tags and digests: good"},
		{"BadVerify", "l", pages, decodeRank, touches, "", "decode verifies tags and digests: bad, quarantine"},
		{"Ready", "l", decodeRank, decodeLeader, touches, "", "the lease is reported ready"},
		{"Read", "tlp", pages, decodeRank, touches, "", "a step begins to read a page"},
		{"BadRead", "lp", pages, decodeRank, touches, "", "the check before a step fails: quarantine"},
		{"ReadEnd", "lpg", pages, decodeRank, touches, "", "the step has read; its check after it decides about the token"},
		{"Append", "lp", decodeRank, pages, touches, "", "decode appends to its tail page"},
		{"Publish", "lp", decodeRank, nowhere, does, "", "decode publishes a page for sharing"},
		{"Unpublish", "pg", decodeRank, nowhere, does, "", "decode withdraws a published page"},
		{"Share", "lpg", decodeRank, pages, touches, "", "a prefix hit: the lease shares a published page"},
		{"Release", "l", decodeRank, pages, touches, "", "decode gives the pages back"},
		{"QuarantineEnd", "l", decodeRank, pages, touches, "", "fences have passed: the quarantined pages are given back"},
		{"Fence", "k", decodeRank, prefillRank, sends, "connect k", "decode fences the link: a connect in a new epoch"},
		{"FenceEnd", "k", decodeRank, nowhere, does, "", "decode's fence returns"},
		{"Connect", "ki", prefillRank, decodeRank, receives, "accept k", "decode takes an answer to a connect"},
		{"RaiseMark", "km", decodeRank, prefillRank, sends, "mark k", "decode raises its mark"},
		{"DecodeCrash", "", decodeRank, nowhere, crashes, "", "the decode process ends; a new one starts with an empty pool"},
	}
}

func prefillActions() []action {
	return []action{
		{"Accept", "ki", prefillRank, decodeRank, sends, "accept k", "prefill answers the connect"},
		{"RecvMark", "km", decodeRank, prefillRank, receives, "mark k", "prefill hears decode's mark"},
		{"OwnMark", "km", prefillRank, nowhere, does, "", "prefill raises a mark of its own"},
		{"Start", "lkv", decodeRank, prefillRank, receives, "grant lk", "the grant arrives: prefill starts"},
		{"TakeSource", "lkq", prefillRank, nowhere, does, "", "prefill takes a source page; old bytes are still in it"},
		{"Compute", "lkq", prefillRank, nowhere, does, "", "prefill computes into it"},
		{"Seal", "lkq", prefillRank, nowhere, does, "", "the computation is finished: sealed"},
		{"GiveBack", "lkq", prefillRank, nowhere, does, "", "prefill gives the source page back"},
		{"Post", "lkpcq", prefillRank, fabric, touches, "", "prefill posts a one-sided write"},
		{"Notice", "lkc", prefillRank, fabric, touches, "", "prefill sends a notice behind its writes"},
		{"Complete", "ylki", prefillRank, decodeRank, sends, "receipt ylki", "prefill says Complete"},
		{"Break", "lk", prefillRank, nowhere, does, "", "prefill fails by itself and stops posting"},
		{"RecvAbort", "lk", decodeRank, prefillRank, receives, "abort l", "the abort arrives: prefill stops posting"},
		{"AbortAck", "lki", prefillRank, decodeRank, sends, "receipt ylki", "prefill answers the abort"},
		{"Failed", "lki", prefillRank, decodeRank, sends, "receipt ylki", "prefill reports its failure"},
		{"Gone", "lki", prefillRank, decodeRank, sends, "receipt ylki", "prefill answers that it does not hold the lease"},
		{"Forget", "lk", prefillRank, nowhere, does, "", "prefill forgets the lease"},
		{"PrefillFence", "kde", prefillRank, nowhere, does, "", "prefill fences its own end"},
		{"PrefillCrash", "ki", prefillRank, nowhere, crashes, "", "the prefill process ends and starts again; what flies goes on"},
	}
}

func fabricActions() []action {
	return []action{
		{"Launch", "lkpciq", prefillRank, fabric, touches, "", "the source page is read, only now"},
		{"Check", "lkpci", fabric, pages, touches, "", "the placer lets the write in"},
		{"Drop", "lkpci", fabric, nowhere, does, "", "the placer drops an old write"},
		{"Lose", "lkpci", fabric, prefillRank, touches, "", "the fabric reports a write as failed; that ends nothing"},
		{"Copy", "lkpci", fabric, pages, touches, "", "the placer copies: bytes are under way in the page"},
		{"Visible", "lkpci", fabric, pages, touches, "", "bytes and then tag are visible"},
		{"Stray", "pk", fabric, pages, crashes, "", "planted fault: somebody else's write lands here, tag and all"},
		{"Torn", "lkpci", fabric, pages, crashes, "", "planted fault: the tag lands without its bytes"},
		{"Flip", "lkpci", fabric, nowhere, crashes, "", "planted fault: bytes change under way"},
	}
}

// pullActions are those of Pull.tla: one prefill rank.
func pullActions() []action {
	return []action{
		{"Grant", "lp", decodeRank, prefillRank, sends, "grant l", "decode hands a page to a lease and asks for its bytes"},
		{"Abort", "l", decodeRank, nowhere, does, "", "decode aborts the lease"},
		{"PullBegin", "lp", prefillRank, decodeRank, receives, "offer l", "the offer is believed: a copy is queued"},
		{"PullCopy", "lpq", prefillRank, pages, touches, "", "the bytes are taken, whatever they are by now"},
		{"PullCheck", "lpq", decodeRank, pages, touches, "", "the copy ends: source tag and epoch are looked at"},
		{"SaidRead", "l", decodeRank, prefillRank, sends, "read l", "decode says that it reads the source no more"},
		{"RaiseMark", "m", decodeRank, prefillRank, sends, "mark", "decode raises its mark"},
		{"Read", "l", pages, decodeRank, touches, "", "a step begins to read"},
		{"ReadEnd", "l", pages, decodeRank, touches, "", "the step has read"},
		{"Release", "l", decodeRank, pages, touches, "", "decode gives the page back"},
		{"Fence", "", decodeRank, nowhere, does, "", "decode fences the link"},
		{"FenceEnd", "", decodeRank, nowhere, does, "", "decode's fence returns"},
		{"TakeSource", "lq", decodeRank, prefillRank, receives, "grant l", "the grant arrives: prefill takes a source page; old bytes are still in it"},
		{"Compute", "lq", prefillRank, nowhere, does, "", "prefill computes into it"},
		{"Seal", "lq", prefillRank, nowhere, does, "", "the computation is finished: sealed, its tag written"},
		{"Offer", "l", prefillRank, decodeRank, sends, "offer l", "prefill offers the page for reading"},
		{"GiveBack", "lq", prefillRank, nowhere, does, "", "prefill gives the source page back"},
		{"PrefillCrash", "i", prefillRank, nowhere, crashes, "", "the prefill process ends; its memory stays mapped"},
	}
}
