package lockstep

import "kvfence/model"

// Do carries out one action of the specification: its stimulus goes to the machines, or something moves in the world. An action that
// the engine takes within the step of an earlier one (see Chains) has none. The error wraps ErrWorld.
func (w *World) Do(action string, a *model.Args) error {
	do := w.set.executors[action]
	if do == nil {
		w.fail("no stimulus for %s", action)
		return w.err
	}
	do(w, a)
	w.note()
	if w.set.Leaders && w.hidden1() {
		w.pump()
		w.note()
	}
	return w.err
}

type executor func(w *World, a *model.Args)

// executors is the stimulus of each action.
func executors() map[string]executor {
	return map[string]executor{
		"Submit": (*World).submit, "Refuse": (*World).refuse, "Ask": (*World).ask, "RecvAsk": (*World).recvAsk, "RecvAsked": (*World).recvAsked, "Run": (*World).run,
		"Success": (*World).success, "Failure": (*World).failure, "Recause": (*World).recause, "Retry": (*World).retry, "Answer": (*World).reply,
		"Read": (*World).read, "ReadEnd": (*World).readEnd,
		"Grant": (*World).grant, "Grow": (*World).grow,
		"Abort":        func(w *World, a *model.Args) { w.abortLease(a) },
		"RecvComplete": (*World).recv,
		"RecvReceipt":  (*World).recv,
		"NoticeIn":     (*World).noticeIn,
		"Take":         (*World).takeReceipt,
		"Verify":       func(w *World, a *model.Args) { w.verify(a, true) },
		"BadVerify":    func(w *World, a *model.Args) { w.verify(a, false) },
		"Ready":        func(w *World, a *model.Args) { w.endVerify(a.L) },
		"Release":      (*World).release,
		"BadRead":      (*World).badRead,
		"Append":       (*World).appendTo,
		"Fence":        func(w *World, a *model.Args) { w.dial(a.K) },
		"FenceEnd":     func(w *World, a *model.Args) { w.fenceEnd(a.K) },
		"Connect":      func(w *World, a *model.Args) { w.connect(a.K, a.I, a.D, a.E) },
		"RaiseMark":    (*World).raiseMark,
		"DecodeCrash":  func(w *World, _ *model.Args) { w.decodeCrash() },
		"Accept":       func(w *World, a *model.Args) { w.accept(a.K) },
		"RecvMark":     (*World).recvMark,
		"Start":        (*World).start,
		"TakeSource":   (*World).takeSource,
		"Compute":      (*World).compute,
		"Seal":         (*World).seal,
		"GiveBack":     (*World).giveBack,
		"Post":         (*World).post,
		"Notice":       (*World).sendNotice,
		"Complete":     func(w *World, a *model.Args) { w.complete(a) },
		"Break":        func(w *World, a *model.Args) { w.stopLease(a, true) },
		"RecvAbort":    func(w *World, a *model.Args) { w.stopLease(a, false) },
		"AbortAck":     func(w *World, a *model.Args) { w.answer(a, model.KindAck) },
		"Failed":       func(w *World, a *model.Args) { w.answer(a, model.KindFailed) },
		"Gone":         (*World).gone,
		"PrefillFence": (*World).prefillFence,
		"PrefillCrash": (*World).prefillCrash,
		"Launch":       (*World).launch,
		"Check":        (*World).check,
		"Drop":         (*World).drop,
		"Lose":         (*World).lose,
		"Copy":         (*World).copyBytes,
		"Visible":      (*World).visible,
		"Stray":        (*World).stray,
		"Torn":         (*World).torn,
		"Flip":         (*World).flip,
	}
}
