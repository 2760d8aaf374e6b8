package explain

// property is a property of the specification in one sentence.
type property struct{ name, says string }

// properties are those of Transfer.tla, Pull.tla and the modules beside them, with their numbers of spec/invariants.md.
func properties() []property {
	return []property{
		{"TypeOK", "I1: every variable has its shape"},
		{"NoReuseWhileInFlight", "I2: no page into which a write may still land is free or another lease's"},
		{"NoReuseUnderKernel", "I2: no page that a kernel reads is free, another lease's or of another generation"},
		{"NoSourceReuse", "I2: no source page from which a write will still read is free or another lease's"},
		{"NoForeignRead", "I3: what a kernel reads is the bytes of the lease that it expects, which may be shared with it"},
		{"NoForeignAnswer", "I3: a token is made of the bytes that were expected, which this lease may read"},
		{"SharesOwn", "I3: a lease shares only pages of its own tenant, adapter and tokens, in the generation that was published"},
		{"Coverage", "I4: a ready lease has every part of every page, from every rank that owes one"},
		{"ReadsCovered", "I4: what a kernel reads has every part of its page"},
		{"NoEarlyRead", "I5: nothing reads a page into which a write may still land"},
		{"SourceStable", "I6: the source of a write that will still be read is sealed and its lease's"},
		{"SendsOwnBytes", "I6: what is under way for a lease was computed for it"},
		{"Granted", "I7: a write lands only inside a grant of its own lease, generation and epoch that no fence has revoked"},
		{"RejectLeavesNothing", "I8: a request refused at admission has no lease, ever"},
		{"AckMeansDrainedS", "I9: when a receipt is taken, nothing of the lease on that link is pending"},
		{"ReleaseNeedsProofS", "I10: a hold ends by a receipt of the incarnation that was granted, or by a fence; pages end when no hold stands"},
		{"SourceEndsByProofS", "I10: an offered source page is given back only when no copy reads it"},
		{"FailedIsFinalS", "I11: a verdict is given once, and so is an answer"},
		{"CauseSettlesS", "I12: a cause changes from derived to original only, and only until the client is told"},
		{"NoFalseSuccess", "I12: success means that the part of every rank was completed and taken"},
		{"NoFalseAnswer", "I12: a 200 means success of a request that fits"},
		{"AnswerOfLast", "I12: the answer is that of the request's last transfer"},
		{"OneAttempt", "I12: while a transfer is tried again, no lease of the earlier attempt lives"},
		{"OneWriterEach", "I13: an auxiliary record has one writer"},
		{"LinkFresh", "I14: both ends of an open link speak of one connect"},
		{"FreshS", "I14: nothing of one epoch or incarnation changes the state of another"},
		{"TagsAgree", "I15: the tags of a page under a kernel are those that the ledger expects"},
		{"TagsAtStartS", "I15: a step starts only on the tags that the ledger expects"},
		{"FenceHolds", "I16: once a fence has returned, no write of an older epoch is being placed"},
		{"Conservation", "I17: a page is free or with one live lease, in its generation"},
		{"TailSafe", "I18: no write may land in a page that decode appended to"},
		{"NoSharedTail", "I18: a page that decode appended to is neither published nor shared"},
		{"NoLeak", "I3 and I12: no 200 for request 2 is made of bytes of request 1"},
		{"Answered", "liveness: every request gets its one answer"},
		{"PagesBack", "liveness: every page comes back"},
		{"SourcesBack", "liveness: every source page comes back"},
		{"AbortEnds", "liveness: an abort is answered or its peer fenced"},
		{"Healed", "liveness: a healed peer is used again"},
		{"IdleClean", "liveness: an idle system is clean"},
		{"StepsHold", "I9 to I12 and I14: the properties of steps"},
	}
}

// Meaning is what a property of the specifications says in one sentence, or "".
func Meaning(name string) string {
	for _, p := range properties() {
		if p.name == name {
			return p.says
		}
	}
	return ""
}
