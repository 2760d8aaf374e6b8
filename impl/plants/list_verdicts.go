package plants

// verdicts: answers that are not what happened.
func verdicts() []Plant {
	return []Plant{
		{
			Name: "late-success", What: "a step that comes back after the request has failed goes on to a success",
			Guard: "First verdict is final", Cases: []string{"B51"}, Mix: "aborts", Want: []string{"I12", "I11", "answers"},
			Edits: []Edit{{"core.DecodeLeader.stepDone", Never, "x.state != xRunning", ""}},
		},
		{
			Name: "failure-overwritten", What: "a second failure is recorded over the first",
			Guard: "First verdict is final", Cases: []string{"B51", "B46"}, Mix: "aborts", Want: []string{"I11"},
			Edits: []Edit{{"core.DecodeLeader.failure", Never, "x.verdict != verdictOpen", ""}},
		},
		{
			Name: "last-cause", What: "the client is told why the last attempt failed, in place of the first cause",
			Guard: "First verdict is final", Cases: []string{"B51"}, Tests: true, Why: "a run does not say which of several failures that all happened was the first",
			Edits: []Edit{{"core.DecodeLeader.answerFailed", Always, `q.cause == "" || spec.Better(q.cause, x.cause) != q.cause`, ""}},
		},
		{
			Name: "failed-is-done", What: "a copy that failed counts as done",
			Guard: "Complete names its parts, tokens, tenant", Cases: []string{"B10", "B18"}, Mix: "pull-blind", Want: []string{"I3"}, With: []string{"blind"},
			Why:   "Verify would find a void tag",
			Edits: []Edit{{"core.DecodeRank.pullDone", Never, `e.Err != ""`, ""}},
		},
		{
			Name: "one-rank-for-all", What: "one decode rank's readiness counts for all ranks of its side",
			Guard: "Every lease of a transfer is ready before it runs", Cases: []string{"B08", "B46"}, Mix: "calm", Want: []string{"I12", "fidelity"},
			Edits: []Edit{{"core.DecodeLeader.leaseReady", Never, "!x.readyAll()", ""}},
		},
		{
			Name: "one-part-for-all", What: "a lease is verified when one link has sent its parts",
			Guard: "Coverage", Cases: []string{"B38"}, Mix: "calm", Want: []string{"I4", "I2", "fidelity"},
			Edits: []Edit{{"core.DecodeRank.partsIn", Never, "!h.got", ""}},
		},
		{
			Name: "retry-early", What: "a request is tried again before its last transfer is drained or fenced",
			Guard: "Retry only after drain", Cases: []string{"B26", "B08"}, Mix: "fences", Want: []string{"model"}, Model: true,
			Why:   "each transfer has pages of its own, and holds keep the older ones: memory does not show it",
			Edits: []Edit{{"core.DecodeLeader.settle", Value, "x.holds() == 0 && !x.busy", "!x.busy"}},
		},
		{
			Name: "skipped-is-granted", What: "a request that a rank had no room for is granted all the same",
			Guard: "Admission refuses what cannot fit", Cases: []string{"B39"}, Mix: "crowded", Want: []string{"fidelity", "answer", "pages"},
			Edits: []Edit{{"core.DecodeLeader.tookPart", Never, "x.short", ""}},
		},
	}
}
