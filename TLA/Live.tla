-------------------------------- MODULE Live ---------------------------------
(* Liveness of the push direction: what must happen, and what that needs.     *)
(*                                                                            *)
(* Progress is what the engine and the network do of themselves, each step of *)
(* which brings something nearer to its end; it never goes in circles.  Weak  *)
(* fairness of all of it together says: while there is progress to be made,   *)
(* some is made.  (Reads begin as often as they like, and so does the use of  *)
(* source pages: both end by a fairness of their own.)  Faults are finite in  *)
(* number by the bounds of a configuration; a partition may last for ever:    *)
(* then nothing is delivered.                                                 *)
EXTENDS Transfer

(* A fence is not begun for nothing: repeats stayed unanswered, or pages are  *)
(* in quarantine.                                                             *)
NeedsFence(k) == \E l \in Lease : (hold[l, k] /\ dst[l] = "revoking") \/
                                  (dst[l] = "bad" /\ owes[l, k] /\ qep[l, k] >= ep[k])
Sparing == \A k \in Rank : (ep'[k] # ep[k] /\ dinc' = dinc) => NeedsFence(k)
Runs == Init /\ [][Next /\ Sparing]_vars

(* What decode does alone: timers, its own memory, its own fence.             *)
Deadline    == \E t \in Transfer : Failure(t, "original")
DecodeAlone ==
  \/ \E t \in Transfer : Ask(t) \/ Success(t) \/ \E r \in Transfer : Answer(t, r)
  \/ \E l \in Lease : Abort(l) \/ Verify(l) \/ BadVerify(l) \/ Ready(l) \/ Release(l) \/ QuarantineEnd(l)
  \/ \E c \in Kind : \E l \in Lease : \E k \in Rank : \E i \in Inc : Take(c, l, k, i)
  \/ \E k \in Rank : FenceEnd(k)
  \/ \E l \in Lease : \E k \in Rank : \E p \in Page : \E c \in Chan : \E i \in Inc : Copy(l, k, p, c, i) \/ Visible(l, k, p, c, i)
DecodeFence == \E k \in Rank : NeedsFence(k) /\ Fence(k)

(* What prefill does alone.  It fences its own end only for what it holds and *)
(* gets no further with.                                                      *)
PrefillAlone ==
  \E l \in Lease : \E k \in Rank :
    \/ Complete(l, k) \/ AbortAck(l, k) \/ Failed(l, k) \/ Forget(l, k)
    \/ \E c \in Chan : Notice(l, k, c)
OwnFence == \E k \in Rank : \E d \in DInc : \E e \in Epoch :
  (\E l \in Lease : \E q \in SPage : sown[k, q] = l /\ dof[l] = d /\ gep[l, k] = e) /\ PrefillFence(k, d, e)

(* What needs the wire.                                                       *)
Delivery ==
  \/ \E t \in Transfer : RecvAsk(t) \/ RecvAsked(t)
  \/ \E c \in Kind : \E x, l \in Lease : \E k \in Rank : \E i \in Inc : RecvComplete(c, x, l, k, i) \/ RecvReceipt(c, x, l, k, i)
  \/ \E l \in Lease : \E k \in Rank : RecvAbort(l, k) \/ Gone(l, k) \/ \E c \in Chan : \E i \in Inc : NoticeIn(l, k, c, i)
  \/ \E k \in Rank : Accept(k) \/ \E m \in Nat : RaiseMark(k, m) \/ RecvMark(k, m)
  \/ \E k \in Rank : \E i \in Inc : \E d \in DInc : \E e \in Epoch : Connect(k, i, d, e)
  \/ \E l \in Lease : \E k \in Rank : \E p \in Page : \E c \in Chan : \E i \in Inc :
        Check(l, k, p, c, i) \/ Drop(l, k, p, c, i) \/ \E q \in SPage : Launch(l, k, p, c, i, q)

UsesEnd == /\ WF_vars(\E l, x \in Lease : \E p \in Page : \E g \in Gen : ReadEnd(l, p, g, x))
           /\ WF_vars(\E l \in Lease : \E k \in Rank : \E q \in SPage : GiveBack(l, k, q))

LiveConnected   == Runs /\ UsesEnd /\ WF_vars(Deadline \/ DecodeAlone \/ DecodeFence \/ PrefillAlone \/ OwnFence \/ Delivery)
LivePartitioned == Runs /\ UsesEnd /\ WF_vars(Deadline \/ DecodeAlone \/ DecodeFence \/ PrefillAlone \/ OwnFence)

(* Each of them is needed.                                                    *)
WithoutDeadline == Runs /\ UsesEnd /\ WF_vars(DecodeAlone \/ DecodeFence \/ PrefillAlone \/ OwnFence)
WithoutFence    == Runs /\ UsesEnd /\ WF_vars(Deadline \/ DecodeAlone \/ PrefillAlone \/ OwnFence)
WithoutOwnFence == Runs /\ UsesEnd /\ WF_vars(Deadline \/ DecodeAlone \/ DecodeFence \/ PrefillAlone)
WithoutDelivery == LivePartitioned

-----------------------------------------------------------------------------
Answered    == \A t, r \in Transfer : (lead[t] = "submitted" /\ root[t] = r) ~> (http[r] # "none")     \* every request gets one answer
PagesBack   == \A p \in Page : (own[p] # 0) ~> (own[p] = 0)                                            \* every page comes back
SourcesBack == \A k \in Rank : \A q \in SPage : (sown[k, q] # 0) ~> (sown[k, q] = 0)                   \* ... at both ends
AbortEnds   == \A l \in Lease : \A k \in Rank : (dst[l] = "revoking" /\ hold[l, k]) ~> ~hold[l, k]     \* an abort is answered or its peer fenced
Healed      == \A k \in Rank : ~up[k] ~> up[k]                                                         \* a healed peer is used again

(* An idle system is clean: nothing is held, pending or remembered.           *)
Idle  == \A t \in Transfer : lead[t] = "new" \/ \E r \in Transfer : root[t] = r /\ http[r] # "none"
Clean == /\ \A p \in Page : own[p] = 0
         /\ \A k \in Rank : \A q \in SPage : sown[k, q] = 0
         /\ \A l \in Lease : \A k \in Rank : ~hold[l, k] /\ pst[l, k] \notin {"writing", "closing"}
         /\ krn = {} /\ rec = {}
         /\ queued = {} /\ flying = {} /\ placing = {} /\ unseen = {}
IdleClean == []<>(Idle => Clean)
=============================================================================
