package follow

import "kvfence/spec"

// Ends that write no trace: what they must have done is taken as done, unless every end is to be in the trace.

// foreign says that a link's prefill rank writes no trace.
func (f *Follower) foreign(k *decodeLink) bool { return !f.strict && f.prefill[k.inc] == nil }

// believeReceipt takes it that a receipt that came was sent, where its sender writes no trace: with it all that it says.
func (f *Follower) believeReceipt(k *decodeLink, o *owe, d *spec.TraceDid, kind uint8) {
	if !f.foreign(k) || k.life(d.Inc) != o.ginc {
		return
	}
	f.stats.Believed++
	if kind == kindComplete {
		f.believePosted(o)
	}
	o.ans |= 1 << kind
	o.pst = pstClosed
}

// believePosted: every part that is owed was sealed, posted and read; notices went behind it.
func (f *Follower) believePosted(o *owe) {
	if o.sent == nil {
		o.sent = map[at]*write{}
	}
	for p := range o.owed {
		if o.sent[at{p, 0}] == nil {
			o.sent[at{p, 0}] = &write{at: at{p, 0}, flying: true, pay: o.lease.id}
		}
	}
	if len(o.nsent) == 0 && len(o.owed) > 0 {
		o.nsent = append(o.nsent, 0)
	}
}

// believeWrites is for pulled links whose other end is not in the trace; nothing else is to be believed at a verification.
func (f *Follower) believeWrites(*decodeRank, *decodeLease) {}
