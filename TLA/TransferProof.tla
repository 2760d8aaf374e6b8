---------------------------- MODULE TransferProof ----------------------------
(* What makes the properties of Transfer.tla inductive.  IndInv holds at the  *)
(* start and every action keeps it, for any number of pages, ranks, channels, *)
(* leases, epochs and restarts: proofs/README.md says how that is checked.    *)
(*                                                                            *)
(* Each conjunct is one block of \A, one implication and, but for one, no     *)
(* quantifier below; each needs one or two others, one hop at a time:         *)
(*   pending write -> posted -> granted; pending here -> hold -> live lease   *)
(*   -> owner -> generation; receipt -> prefill's half -> notices -> landed   *)
(*   -> complete -> got -> ready -> read.                                     *)
EXTENDS TransferIsolation

UnderWay(l, k, p, c, i) == <<l, k, p, c, i>> \in flying \/ <<l, k, p, c, i>> \in placing \/ <<l, k, p, c, i>> \in unseen
PageOf(l, p) == dof[l] = dinc /\ gpage[l, p] = gen[p] /\ gpage[l, p] # 0      \* the page's present generation is l's
Ended(l, k)  == pst[l, k] = "closed" \/ (pst[l, k] = "none" /\ l < pmark[k])  \* rank k never posts for l again

-----------------------------------------------------------------------------
(* Lease numbers not given out yet have nothing.                              *)
FreshState == \A l \in Lease : nextL <= l => dst[l] = "new"
FreshOwes  == \A l \in Lease : \A k \in Rank : nextL <= l => ~owes[l, k]
FreshPages == \A l \in Lease : \A p \in Page : nextL <= l => gpage[l, p] = 0
FreshTof   == \A l \in Lease : nextL <= l => tof[l] = 0
FreshTok   == \A l, x \in Lease : \A m \in Lease0 : <<l, x, m>> \in tok => (l < nextL /\ x < nextL)

(* Leaders.                                                                   *)
TofOpen    == \A t \in Transfer : \A l \in Lease : tof[l] = t => lead[t] \notin {"new", "submitted", "asking"}
BigStopped == \A t \in Transfer : t \in Big => lead[t] \in {"new", "submitted", "refused", "failed"}
CauseFailed == \A t \in Transfer : (cause[t] # "none") = (lead[t] \in {"failed", "refused"})

(* Attempts of one request: a chain that begins with the first, all but the   *)
(* last failed.                                                               *)
NewAlone   == \A t, u \in Transfer : (lead[t] = "new" /\ root[u] = t) => u = t
NewSelf    == \A t \in Transfer : lead[t] = "new" => (root[t] = t /\ succ[t] = 0 /\ http[t] = "none")
RootRoot   == \A t, r \in Transfer : root[t] = r => root[r] = r
RootFailed == \A t, r \in Transfer : (root[t] = r /\ t # r) => (lead[r] = "failed" /\ http[t] = "none")
SuccFailed == \A t \in Transfer : succ[t] # 0 => lead[t] = "failed"
OneLast    == \A t, u \in Transfer : (root[t] = root[u] /\ succ[t] = 0 /\ succ[u] = 0) => t = u
ToldFinal  == \A t \in Transfer : http[t] # "none" => lead[t] \in {"ok", "failed", "refused"}

(* Pages, leases and generations of this decode incarnation.                  *)
DofBound   == \A l \in Lease : dof[l] <= dinc
LiveNow    == \A l \in Lease : Live(l) => dof[l] = dinc
OwnGen     == \A p \in Page : \A l \in Lease : own[p] = l => gen[p] # 0
KeepsPages == \A p \in Page : \A l \in Lease : (Live(l) /\ gpage[l, p] # 0) => (own[p] = l /\ gpage[l, p] = gen[p])
GenBound   == \A l \in Lease : \A p \in Page : dof[l] = dinc => gpage[l, p] <= gen[p]
GenUnique  == \A l, x \in Lease : \A p \in Page : (PageOf(l, p) /\ PageOf(x, p)) => l = x

(* Holds, epochs and incarnations.                                            *)
HoldKeeps  == \A l \in Lease : \A k \in Rank : hold[l, k] => (owes[l, k] /\ dst[l] \in {"filling", "revoking"})
FillEpoch  == \A l \in Lease : \A k \in Rank : (dst[l] = "filling" /\ hold[l, k]) => gep[l, k] = ep[k]
GrantEpoch == \A l \in Lease : \A k \in Rank : (owes[l, k] /\ dof[l] = dinc) => gep[l, k] <= ep[k]
GrantInc   == \A l \in Lease : \A k \in Rank : owes[l, k] => ginc[l, k] <= pinc[k]
LinkInc    == \A k \in Rank : linc[k] <= pinc[k]
AcceptInc  == \A k \in Rank : \A i \in Inc : \A d \in DInc : \A e \in Epoch : <<k, i, d, e>> \in acc => i <= pinc[k]

(* Prefill works for what was granted to it, posts once, and never again      *)
(* after it ended.                                                            *)
WorksGranted == \A l \in Lease : \A k \in Rank : pst[l, k] # "none" => (owes[l, k] /\ ginc[l, k] = pinc[k])
SentGranted  == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc :
  <<l, k, p, c, i>> \in sent => (Owed(l, k, p) /\ i = ginc[l, k])
SentStarted  == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan :
  <<l, k, p, c, pinc[k]>> \in sent => (pst[l, k] # "none" \/ l < pmark[k])
OneChannel   == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c, d \in Chan : \A i \in Inc :
  (<<l, k, p, c, i>> \in sent /\ <<l, k, p, d, i>> \in sent) => c = d
PendingSent  == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc :
  Pending(l, k, p, c, i) => <<l, k, p, c, i>> \in sent
QueuedNow    == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc :
  <<l, k, p, c, i>> \in queued => i = pinc[k]

(* Sources.                                                                   *)
SourceWorks == \A l \in Lease : \A k \in Rank : \A q \in SPage :
  sown[k, q] = l => (owes[l, k] /\ ginc[l, k] = pinc[k] /\ (pst[l, k] # "none" \/ l < pmark[k]))
SourceData  == \A l \in Lease : \A k \in Rank : \A q \in SPage :
  (sown[k, q] = l /\ sst[k, q] # "raw" /\ pview[l, k] = "same") => sdat[k, q] = l
PayOwn      == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc :
  (UnderWay(l, k, p, c, i) /\ pview[l, k] = "same") => pay[l, k, p, c] = l

(* Receipts: the last word of an incarnation, after its half of the drain.    *)
AnswerFinal  == \A c \in Kind : \A l \in Lease : \A k \in Rank : \A i \in Inc :
  <<c, l, k, i>> \in ans => (owes[l, k] /\ i = ginc[l, k] /\ (i = pinc[k] => Ended(l, k)))
EndedHalf    == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan :
  (pst[l, k] \in {"none", "closed"} /\ ~Fenced(l, k) /\ <<l, k, p, c, pinc[k]>> \in sent)
    => (<<l, k, p, c, pinc[k]>> \notin queued /\ <<l, k, c, pinc[k]>> \in nsent)
AnswerHalf   == \A x \in Kind : \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc :
  (<<x, l, k, i>> \in ans /\ <<l, k, p, c, i>> \in sent) => (<<l, k, p, c, i>> \notin queued /\ <<l, k, c, i>> \in nsent)
CompleteSame == \A l \in Lease : \A k \in Rank : \A i \in Inc : <<"complete", l, k, i>> \in ans => pview[l, k] = "same"
CompletePosted == \A l \in Lease : \A k \in Rank : \A p \in Page : \A i \in Inc :
  (<<"complete", l, k, i>> \in ans /\ Owed(l, k, p)) => \E c \in Chan : <<l, k, p, c, i>> \in sent

(* Decode's half.                                                             *)
ReceiptKept  == \A c \in Kind : \A l \in Lease : \A k \in Rank : \A i \in Inc :
  <<c, l, k, i>> \in rec => (<<c, l, k, i>> \in ans /\ i = ginc[l, k])
NoticeSent   == \A l \in Lease : \A k \in Rank : \A c \in Chan : \A i \in Inc : <<l, k, c, i>> \in nin => <<l, k, c, i>> \in nsent
NoticeBehind == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc :
  <<l, k, c, i>> \in nin => (<<l, k, p, c, i>> \notin queued /\ <<l, k, p, c, i>> \notin flying /\ <<l, k, p, c, i>> \notin placing)
HoldEnds     == \A l \in Lease : \A k \in Rank :
  (owes[l, k] /\ ~hold[l, k] /\ Current(l, k) /\ ginc[l, k] = pinc[k]) => Ended(l, k)
MayLandHeld  == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc : MayLand(l, k, p, c, i) => hold[l, k]

(* What is no longer pending has landed.                                      *)
SentLanded     == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan :
  (<<l, k, p, c, pinc[k]>> \in sent /\ ~Pending(l, k, p, c, pinc[k]) /\ Current(l, k) /\ ~Fenced(l, k) /\ PageOf(l, p))
    => (tagl[p, k] = l /\ (pview[l, k] = "same" => mem[p, k] = l))
CompleteLanded == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc :
  (<<"complete", l, k, i>> \in ans /\ <<l, k, p, c, i>> \in sent /\ ~UnderWay(l, k, p, c, i) /\ Current(l, k) /\ PageOf(l, p))
    => (mem[p, k] = l /\ tagl[p, k] = l)
GotLanded      == \A l \in Lease : \A k \in Rank : \A p \in Page :
  (got[l, k] /\ Owed(l, k, p) /\ PageOf(l, p)) => (mem[p, k] = l /\ tagl[p, k] = l)
GotEnded       == \A l \in Lease : \A k \in Rank : got[l, k] => (owes[l, k] /\ ~hold[l, k] /\ <<"complete", l, k, ginc[l, k]>> \in ans)
ReadyGot       == \A l \in Lease : \A k \in Rank : (dst[l] \in {"verified", "ready", "bad", "done"} /\ owes[l, k]) => got[l, k]

(* Readers, sharers and the tail.                                             *)
KernelReady == \A l, x \in Lease : \A p \in Page : \A g \in Gen : <<l, p, g, x>> \in krn => dst[l] \in {"ready", "bad"}
KernelFills == \A l, x \in Lease : \A p \in Page : \A g \in Gen : <<l, p, g, x>> \in krn => (Fills(l, p, x) /\ gen[p] = g)
PublishedOf == \A x \in Lease : \A p \in Page : \A g \in Gen :
  <<p, g, x>> \in pubs => (dof[x] = dinc /\ gpage[x, p] = g /\ g # 0)
PublishedGot == \A x \in Lease : \A p \in Page : \A g \in Gen : \A k \in Rank : (<<p, g, x>> \in pubs /\ owes[x, k]) => got[x, k]
SharedLive  == \A l, x \in Lease : \A p \in Page : <<l, p, x>> \in shr => (Live(l) /\ gpage[x, p] # 0)
SharedGot   == \A l, x \in Lease : \A p \in Page : \A k \in Rank : (<<l, p, x>> \in shr /\ owes[x, k]) => got[x, k]
OwnCovered    == \A l \in Lease : \A p \in Page : own[p] = l => (app[p] \/ \E k \in Rank : Owed(l, k, p))
PubsCovered   == \A x \in Lease : \A p \in Page : \A g \in Gen : <<p, g, x>> \in pubs => \E k \in Rank : Owed(x, k, p)
SharedCovered == \A l, x \in Lease : \A p \in Page : <<l, p, x>> \in shr => \E k \in Rank : Owed(x, k, p)
TailReady   == \A p \in Page : \A l \in Lease : (app[p] /\ own[p] = l) => dst[l] \in {"ready", "bad"}

-----------------------------------------------------------------------------
Promises ==
  /\ NoReuseWhileInFlight /\ NoReuseUnderKernel /\ NoSourceReuse /\ NoForeignRead /\ NoForeignAnswer /\ SharesOwn /\ Coverage
  /\ NoEarlyRead /\ SourceStable /\ SendsOwnBytes /\ Granted /\ RejectLeavesNothing /\ NoFalseSuccess /\ NoFalseAnswer
  /\ AnswerOfLast /\ OneAttempt /\ ReadsCovered
  /\ OneWriterEach /\ LinkFresh /\ TagsAgree /\ FenceHolds /\ Conservation /\ TailSafe /\ NoSharedTail

Strengthening ==
  /\ FreshState /\ FreshOwes /\ FreshPages /\ FreshTof /\ FreshTok /\ TofOpen /\ BigStopped /\ CauseFailed
  /\ NewAlone /\ NewSelf /\ RootRoot /\ RootFailed /\ SuccFailed /\ OneLast /\ ToldFinal
  /\ DofBound /\ LiveNow /\ OwnGen /\ KeepsPages /\ GenBound /\ GenUnique
  /\ HoldKeeps /\ FillEpoch /\ GrantEpoch /\ GrantInc /\ LinkInc /\ AcceptInc
  /\ WorksGranted /\ SentGranted /\ SentStarted /\ OneChannel /\ PendingSent /\ QueuedNow
  /\ SourceWorks /\ SourceData /\ PayOwn
  /\ AnswerFinal /\ EndedHalf /\ AnswerHalf /\ CompleteSame /\ CompletePosted
  /\ ReceiptKept /\ NoticeSent /\ NoticeBehind /\ HoldEnds /\ MayLandHeld
  /\ SentLanded /\ CompleteLanded /\ GotLanded /\ GotEnded /\ ReadyGot
  /\ KernelReady /\ KernelFills /\ PublishedOf /\ PublishedGot /\ SharedLive /\ SharedGot /\ TailReady
  /\ OwnCovered /\ PubsCovered /\ SharedCovered

(* Where z3 looks for a state, not for a proof, these tell it where to look   *)
(* first: that an action can happen, and that a dropped guard breaks something*)
(* are said of fewer states then, so of all.                                  *)
Numbers(e, m, i) ==
  /\ nextL = 3
  /\ \A l \in Lease : \A k \in Rank : gep[l, k] = 0 /\ ginc[l, k] = 0
  /\ \A k \in Rank : ep[k] = e /\ pinc[k] = i /\ linc[k] = 0 /\ pmark[k] = m
First  == dinc = 0 /\ \A l \in Lease : dof[l] = 0
Second == dinc = 1 /\ \A l \in Lease : dof[l] = (IF l = 1 THEN 0 ELSE 1)   \* decode has restarted after lease 1
Early  == First /\ Numbers(0, 0, 0)
Late   == First /\ Numbers(1, 0, 0)           \* after one fence
Marked == First /\ Numbers(0, 3, 0)           \* every lease is below the mark
Again  == Second /\ Numbers(0, 0, 0)
Reborn == First /\ Numbers(0, 0, 1)           \* prefill ranks have restarted
Single == \A t \in Transfer : root[t] = t /\ succ[t] = 0        \* no request was tried again
Twice  == /\ \A t \in Transfer : root[t] = (IF t = 2 THEN 1 ELSE t)    \* the first one was
          /\ \A t \in Transfer : succ[t] = (IF t = 1 THEN 2 ELSE 0)
Quiet  == shr = {} /\ krn = {} /\ tok = {} /\ lost = {} /\ pfenced = {} /\ queued = {} /\ flying = {} /\ placing = {} /\ unseen = {}
Idle   == pubs = {} /\ shr = {} /\ krn = {} /\ tok = {} /\ lost = {} /\ pfenced = {} /\ placing = {}

IndInv == Promises /\ Strengthening
=============================================================================
