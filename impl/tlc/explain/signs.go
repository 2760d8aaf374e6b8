package explain

import "strings"

// sign is a change by which an action of Transfer.tla is known where TLC does not name it, as it does not in specifications whose steps
// are Next and something else (Live.tla). value is the new value, or old>new, or of a set's member its first part; "" is any. beside is a
// variable that changes too.
type sign struct {
	variable string
	op       byte
	value    string
	beside   string
	action   string
}

// signs are looked at in this order; the first that fits decides.
func signs() []sign {
	return append(decodeSigns(), otherSigns()...)
}

func decodeSigns() []sign {
	return []sign{
		{"dinc", '=', "", "", "DecodeCrash"},
		{"pinc", '=', "", "", "PrefillCrash"},
		{"spent", '=', "", "pay", "Flip"},
		{"spent", '=', "", "unseen", "Torn"},
		{"spent", '=', "", "", "Stray"},
		{"succ", '=', "", "", "Retry"},
		{"lead", '=', "submitted", "", "Submit"},
		{"lead", '=', "asking", "", "Ask"},
		{"lead", '=', "open", "", "RecvAsked"},
		{"lead", '=', "run", "", "Run"},
		{"lead", '=', "ok", "", "Success"},
		{"lead", '=', "failed", "", "Failure"},
		{"lead", '=', "refused", "", "Refuse"},
		{"pask", '=', "", "", "RecvAsk"},
		{"http", '=', "", "", "Answer"},
		{"cause", '=', "", "", "Recause"},
		{"krn", '+', "", "", "Read"},
		{"krn", '-', "", "", "ReadEnd"},
		{"rec", '+', "complete", "", "RecvComplete"},
		{"rec", '+', "misnamed", "", "RecvComplete"},
		{"rec", '+', "", "", "RecvReceipt"},
		{"rec", '-', "", "", "Take"},
		{"nin", '+', "", "", "NoticeIn"},
		{"ep", '=', "", "", "Fence"},
		{"fencing", '=', "FALSE", "", "FenceEnd"},
		{"up", '=', "TRUE", "", "Connect"},
		{"dmark", '=', "", "", "RaiseMark"},
		{"dst", '=', "filling", "", "Grant"},
		{"dst", '=', "verified", "", "Verify"},
		{"dst", '=', "verified>ready", "", "Ready"},
		{"dst", '=', "new>ready", "", "Grow"},
		{"dst", '=', "filling>bad", "", "BadVerify"},
		{"dst", '=', "bad", "", "BadRead"},
		{"dst", '=', "bad>failed", "", "QuarantineEnd"},
		{"dst", '=', "revoking>failed", "", "Release"},
		{"dst", '=', "done", "", "Release"},
		{"dst", '=', "", "", "Abort"},
		{"hold", '=', "", "", "GiveUp"},
		{"app", '=', "", "", "Append"},
		{"pubs", '+', "", "", "Publish"},
		{"pubs", '-', "", "", "Unpublish"},
		{"shr", '+', "", "", "Share"},
	}
}

func otherSigns() []sign {
	return []sign{
		{"acc", '+', "", "", "Accept"},
		{"ans", '+', "complete", "", "Complete"},
		{"ans", '+', "misnamed", "", "Complete"},
		{"ans", '+', "ack", "", "AbortAck"},
		{"ans", '+', "failed", "", "Failed"},
		{"ans", '+', "gone", "", "Gone"},
		{"pfenced", '+', "", "", "PrefillFence"},
		{"lost", '+', "", "", "Lose"},
		{"pst", '=', "writing", "", "Start"},
		{"pst", '=', "closed>none", "", "Forget"},
		{"pst", '=', "closing", "", "RecvAbort"},
		{"pmark", '=', "", "", "RecvMark"},
		{"sst", '=', "computed", "", "Compute"},
		{"sst", '=', "sealed", "", "Seal"},
		{"sown", '=', "0", "", "GiveBack"},
		{"sown", '=', "", "", "TakeSource"},
		{"sent", '+', "", "", "Post"},
		{"nsent", '+', "", "", "Notice"},
		{"flying", '+', "", "", "Launch"},
		{"placing", '+', "", "", "Check"},
		{"flying", '-', "", "", "Drop"},
		{"unseen", '+', "", "", "Copy"},
		{"unseen", '-', "", "", "Visible"},
	}
}

// bySign is the action that the changes tell, or nil.
func (b *builder) bySign(diff []change) *action {
	if b.pull {
		return nil
	}
	for _, s := range signs() {
		for _, c := range diff {
			if s.fits(c) && (s.beside == "" || changed(diff, s.beside)) {
				return b.actionOf(s.action)
			}
		}
	}
	return nil
}

func (s sign) fits(c change) bool {
	if s.variable != c.variable || s.op != c.op {
		return false
	}
	if c.op != '=' {
		return s.value == "" || len(c.at) > 0 && c.at[0].String() == s.value
	}
	if old, now, both := strings.Cut(s.value, ">"); both {
		return c.before.String() == old && c.after.String() == now
	}
	return s.value == "" || c.after.String() == s.value
}

func changed(diff []change, variable string) bool {
	for _, c := range diff {
		if c.variable == variable {
			return true
		}
	}
	return false
}
