------------------------------ MODULE Core ----------------------------------
(* One decode node, any number of prefill ranks with one link each, one-sided *)
(* writes.  Unbounded pages, ranks, leases, epochs, incarnations.             *)
(*                                                                            *)
(* How messages are modelled.  A message is its id; its fields are write-once *)
(* functions of that id (gpage, gep, ginc).  "Sent" is never taken back, so   *)
(* the soup loses (never received), repeats and reorders:                     *)
(*   Grant(l,k)   is in the soup  iff  owes[l,k]                              *)
(*   Abort(l,k)   is in the soup  iff  owes[l,k] and l was revoked            *)
(*   Mark(k,m)    is in the soup  for every m up to dmark[k]                  *)
(*   Hello(k,i)   is in the soup  for every i up to pinc[k]                   *)
(*   answers      are tuples <<kind, lease, rank, incarnation>> in ans        *)
(* A write is <<lease, rank, page, incarnation>>; the generation and epoch in *)
(* its header are those of its grant.                                         *)
EXTENDS Naturals

CONSTANTS Page, Rank

CONSTANTS DeferRelease,     \* an abort asks, it does not free
          AllHolds,         \* release only when every rank's hold has ended
          AllParts,         \* ready only when every owing rank's part is in
          CoverAll,         \* Complete only when every page was posted
          CompleteDrained,  \* Complete only when the writes are visible
          AckDrained,       \* AbortAck and Failed only after drain
          OnlyGranted,      \* only the granted incarnation works and answers
          FenceRaises,      \* a fence raises the epoch
          FenceWaits,       \* ... and then waits for placers
          PlaceChecks,      \* a placer compares the epoch
          MarkForget,       \* tombstones go below a mark only
          MarkStart,        \* no start below the mark
          LocalHold         \* local kernels hold pages

Lease == Nat \ {0}
Epoch == Nat
Inc   == Nat
Gen   == Nat

VARIABLES
  own, gen,                  \* decode: page -> lease (0: free), generation
  gpage, owes, gep, ginc,    \* the grant: generation of each page (0: not in it), owing ranks, epoch, incarnation
  dst, hold, got,            \* decode: lease state, hold and complete part per rank
  krn,                       \* local kernels that read: <<lease, page, gen>>
  ep, linc, fencing, dmark, nextL,
  pinc, pst, pmark, sent,    \* prefill rank: incarnation, state per lease, mark, pages posted
  queued, placing,           \* writes before and after the placer's check
  mem, memg,                 \* who wrote rank k's slot of page p last
  ans                        \* answers of prefill ranks

pageV == <<own, gen>>
planV == <<gpage, owes, gep, ginc>>
leaseV == <<dst, hold, got>>
linkV == <<ep, linc, fencing>>
markV == <<dmark, nextL>>
pfV   == <<pst, pmark, sent>>
memV  == <<mem, memg>>
vars  == <<pageV, planV, leaseV, krn, linkV, markV, pinc, pfV, queued, placing, memV, ans>>

TypeOK ==
  /\ own     \in [Page -> Lease \cup {0}]
  /\ gen     \in [Page -> Gen]
  /\ gpage   \in [Lease \X Page -> Gen]
  /\ owes    \in [Lease \X Rank -> BOOLEAN]
  /\ gep     \in [Lease \X Rank -> Epoch]
  /\ ginc    \in [Lease \X Rank -> Inc]
  /\ dst     \in [Lease -> {"new", "filling", "revoking", "ready", "failed", "done"}]
  /\ hold    \in [Lease \X Rank -> BOOLEAN]
  /\ got     \in [Lease \X Rank -> BOOLEAN]
  /\ krn     \in SUBSET (Lease \X Page \X Gen)
  /\ ep      \in [Rank -> Epoch]
  /\ linc    \in [Rank -> Inc]
  /\ fencing \in [Rank -> BOOLEAN]
  /\ dmark   \in [Rank -> Nat]
  /\ nextL   \in Nat
  /\ pinc    \in [Rank -> Inc]
  /\ pst     \in [Lease \X Rank -> {"none", "writing", "closing", "closed"}]
  /\ pmark   \in [Rank -> Nat]
  /\ sent    \in SUBSET (Lease \X Rank \X Page)
  /\ queued  \in SUBSET (Lease \X Rank \X Page \X Inc)
  /\ placing \in SUBSET (Lease \X Rank \X Page \X Inc)
  /\ mem     \in [Page \X Rank -> Lease \cup {0}]
  /\ memg    \in [Page \X Rank -> Gen]
  /\ ans     \in SUBSET ({"complete", "ack", "failed", "gone"} \X Lease \X Rank \X Inc)

Init ==
  /\ own = [p \in Page |-> 0]
  /\ gen = [p \in Page |-> 0]
  /\ gpage = [l \in Lease, p \in Page |-> 0]
  /\ owes = [l \in Lease, k \in Rank |-> FALSE]
  /\ gep = [l \in Lease, k \in Rank |-> 0]
  /\ ginc = [l \in Lease, k \in Rank |-> 0]
  /\ dst = [l \in Lease |-> "new"]
  /\ hold = [l \in Lease, k \in Rank |-> FALSE]
  /\ got = [l \in Lease, k \in Rank |-> FALSE]
  /\ krn = {}
  /\ ep = [k \in Rank |-> 0]
  /\ linc = [k \in Rank |-> 0]
  /\ fencing = [k \in Rank |-> FALSE]
  /\ dmark = [k \in Rank |-> 0]
  /\ nextL = 1
  /\ pinc = [k \in Rank |-> 0]
  /\ pst = [l \in Lease, k \in Rank |-> "none"]
  /\ pmark = [k \in Rank |-> 0]
  /\ sent = {}
  /\ queued = {}
  /\ placing = {}
  /\ mem = [p \in Page, k \in Rank |-> 0]
  /\ memg = [p \in Page, k \in Rank |-> 0]
  /\ ans = {}

-----------------------------------------------------------------------------
(* decode *)

Grant(l, S, K) ==
  /\ l = nextL
  /\ \A p \in Page : p \in S => own[p] = 0
  /\ own' = [p \in Page |-> IF p \in S THEN l ELSE own[p]]
  /\ gen' = [p \in Page |-> IF p \in S THEN gen[p] + 1 ELSE gen[p]]
  /\ gpage' = [x \in Lease, p \in Page |-> IF x = l /\ p \in S THEN gen[p] + 1 ELSE gpage[x, p]]
  /\ owes' = [x \in Lease, k \in Rank |-> IF x = l THEN k \in K ELSE owes[x, k]]
  /\ hold' = [x \in Lease, k \in Rank |-> IF x = l THEN k \in K ELSE hold[x, k]]
  /\ gep' = [x \in Lease, k \in Rank |-> IF x = l THEN ep[k] ELSE gep[x, k]]
  /\ ginc' = [x \in Lease, k \in Rank |-> IF x = l THEN linc[k] ELSE ginc[x, k]]
  /\ dst' = [dst EXCEPT ![l] = "filling"]
  /\ nextL' = l + 1
  /\ UNCHANGED <<got, krn, linkV, dmark, pinc, pfV, queued, placing, memV, ans>>

Abort(l) ==
  /\ dst[l] = "filling"
  /\ dst' = [dst EXCEPT ![l] = IF DeferRelease THEN "revoking" ELSE "failed"]
  /\ own' = [p \in Page |-> IF own[p] = l /\ ~DeferRelease THEN 0 ELSE own[p]]
  /\ UNCHANGED <<gen, planV, hold, got, krn, linkV, markV, pinc, pfV, queued, placing, memV, ans>>

RecvComplete(l, k, i) ==
  /\ <<"complete", l, k, i>> \in ans
  /\ OnlyGranted => i = ginc[l, k]
  /\ hold[l, k]
  /\ hold' = [hold EXCEPT ![l, k] = FALSE]
  /\ got' = [got EXCEPT ![l, k] = (dst[l] = "filling")]
  /\ UNCHANGED <<pageV, planV, dst, krn, linkV, markV, pinc, pfV, queued, placing, memV, ans>>

RecvReceipt(c, l, k, i) ==
  /\ c # "complete"
  /\ <<c, l, k, i>> \in ans
  /\ OnlyGranted => i = ginc[l, k]
  /\ hold[l, k]
  /\ hold' = [hold EXCEPT ![l, k] = FALSE]
  /\ dst' = [dst EXCEPT ![l] = IF dst[l] = "filling" THEN "revoking" ELSE dst[l]]
  /\ UNCHANGED <<pageV, planV, got, krn, linkV, markV, pinc, pfV, queued, placing, memV, ans>>

Ready(l) ==
  /\ dst[l] = "filling"
  /\ IF AllParts THEN \A k \in Rank : owes[l, k] => got[l, k]
                 ELSE \E k \in Rank : got[l, k]
  /\ dst' = [dst EXCEPT ![l] = "ready"]
  /\ UNCHANGED <<pageV, planV, hold, got, krn, linkV, markV, pinc, pfV, queued, placing, memV, ans>>

Read(l, p) ==
  /\ dst[l] = "ready"
  /\ own[p] = l
  /\ krn' = krn \cup {<<l, p, gen[p]>>}
  /\ UNCHANGED <<pageV, planV, leaseV, linkV, markV, pinc, pfV, queued, placing, memV, ans>>

ReadEnd(l, p, g) ==
  /\ <<l, p, g>> \in krn
  /\ krn' = krn \ {<<l, p, g>>}
  /\ UNCHANGED <<pageV, planV, leaseV, linkV, markV, pinc, pfV, queued, placing, memV, ans>>

Release(l) ==
  /\ dst[l] \in {"revoking", "ready"}
  /\ IF AllHolds THEN \A k \in Rank : ~hold[l, k]
                 ELSE \E k \in Rank : owes[l, k] /\ ~hold[l, k]
  /\ LocalHold => \A p \in Page : \A g \in Gen : <<l, p, g>> \notin krn
  /\ own' = [p \in Page |-> IF own[p] = l THEN 0 ELSE own[p]]
  /\ dst' = [dst EXCEPT ![l] = IF dst[l] = "ready" THEN "done" ELSE "failed"]
  /\ UNCHANGED <<gen, planV, hold, got, krn, linkV, markV, pinc, pfV, queued, placing, memV, ans>>

(* A fence of link k: raise, revoke, then wait.  Connect is a fence that also *)
(* takes up a newer incarnation.                                              *)
Fence(k) ==
  /\ ep[k] + 1 \in Epoch
  /\ ep' = [ep EXCEPT ![k] = IF FenceRaises THEN ep[k] + 1 ELSE ep[k]]
  /\ fencing' = [fencing EXCEPT ![k] = TRUE]
  /\ dst' = [l \in Lease |-> IF hold[l, k] /\ dst[l] = "filling" THEN "revoking" ELSE dst[l]]
  /\ UNCHANGED <<pageV, planV, hold, got, krn, linc, markV, pinc, pfV, queued, placing, memV, ans>>

Connect(k, i) ==
  /\ linc[k] < i
  /\ i <= pinc[k]
  /\ ep[k] + 1 \in Epoch
  /\ ep' = [ep EXCEPT ![k] = IF FenceRaises THEN ep[k] + 1 ELSE ep[k]]
  /\ linc' = [linc EXCEPT ![k] = i]
  /\ fencing' = [fencing EXCEPT ![k] = TRUE]
  /\ dst' = [l \in Lease |-> IF hold[l, k] /\ dst[l] = "filling" THEN "revoking" ELSE dst[l]]
  /\ UNCHANGED <<pageV, planV, hold, got, krn, markV, pinc, pfV, queued, placing, memV, ans>>

Older(l, k) == gep[l, k] < ep[k] \/ ~FenceRaises

FenceEnd(k) ==
  /\ fencing[k]
  /\ FenceWaits => \A l \in Lease : \A p \in Page : \A i \in Inc :
                     <<l, k, p, i>> \in placing => gep[l, k] = ep[k]
  /\ fencing' = [fencing EXCEPT ![k] = FALSE]
  /\ hold' = [l \in Lease, r \in Rank |-> hold[l, r] /\ ~(r = k /\ Older(l, k) /\ dst[l] = "revoking")]
  /\ UNCHANGED <<pageV, planV, dst, got, krn, ep, linc, markV, pinc, pfV, queued, placing, memV, ans>>

RaiseMark(k, m) ==
  /\ dmark[k] < m
  /\ m <= nextL
  /\ \A l \in Lease : l < m => ~hold[l, k]
  /\ dmark' = [dmark EXCEPT ![k] = m]
  /\ UNCHANGED <<pageV, planV, leaseV, krn, linkV, nextL, pinc, pfV, queued, placing, memV, ans>>

-----------------------------------------------------------------------------
(* prefill rank k *)

Hears(l, k) == owes[l, k] /\ (OnlyGranted => ginc[l, k] = pinc[k])
Aborted(l)  == dst[l] \in {"revoking", "failed"}
Drained(l, k) == \A p \in Page : <<l, k, p, pinc[k]>> \notin queued /\ <<l, k, p, pinc[k]>> \notin placing

RecvMark(k, m) ==
  /\ pmark[k] < m
  /\ m <= dmark[k]
  /\ pmark' = [pmark EXCEPT ![k] = m]
  /\ UNCHANGED <<pageV, planV, leaseV, krn, linkV, markV, pinc, pst, sent, queued, placing, memV, ans>>

OwnMark(k, m) ==
  /\ pmark[k] < m
  /\ pmark' = [pmark EXCEPT ![k] = m]
  /\ UNCHANGED <<pageV, planV, leaseV, krn, linkV, markV, pinc, pst, sent, queued, placing, memV, ans>>

Start(l, k) ==
  /\ Hears(l, k)
  /\ pst[l, k] = "none"
  /\ MarkStart => pmark[k] <= l
  /\ pst' = [pst EXCEPT ![l, k] = "writing"]
  /\ sent' = {<<x, r, p>> \in sent : ~(x = l /\ r = k)}
  /\ UNCHANGED <<pageV, planV, leaseV, krn, linkV, markV, pinc, pmark, queued, placing, memV, ans>>

Post(l, k, p) ==
  /\ pst[l, k] = "writing"
  /\ gpage[l, p] # 0
  /\ <<l, k, p>> \notin sent
  /\ sent' = sent \cup {<<l, k, p>>}
  /\ queued' = queued \cup {<<l, k, p, pinc[k]>>}
  /\ UNCHANGED <<pageV, planV, leaseV, krn, linkV, markV, pinc, pst, pmark, placing, memV, ans>>

Complete(l, k) ==
  /\ pst[l, k] = "writing"
  /\ CoverAll => \A p \in Page : gpage[l, p] # 0 => <<l, k, p>> \in sent
  /\ CompleteDrained => Drained(l, k)
  /\ pst' = [pst EXCEPT ![l, k] = "closed"]
  /\ ans' = ans \cup {<<"complete", l, k, pinc[k]>>}
  /\ UNCHANGED <<pageV, planV, leaseV, krn, linkV, markV, pinc, pmark, sent, queued, placing, memV>>

Break(l, k) ==                                \* prefill's own failure: stop posting
  /\ pst[l, k] = "writing"
  /\ pst' = [pst EXCEPT ![l, k] = "closing"]
  /\ UNCHANGED <<pageV, planV, leaseV, krn, linkV, markV, pinc, pmark, sent, queued, placing, memV, ans>>

RecvAbort(l, k) ==                            \* stop posting; also for a lease not seen yet
  /\ Hears(l, k)
  /\ Aborted(l)
  /\ pst[l, k] \in {"none", "writing"}
  /\ pst[l, k] = "none" => pmark[k] <= l
  /\ pst' = [pst EXCEPT ![l, k] = "closing"]
  /\ UNCHANGED <<pageV, planV, leaseV, krn, linkV, markV, pinc, pmark, sent, queued, placing, memV, ans>>

AbortAck(l, k) ==
  /\ pst[l, k] = "closing"
  /\ Aborted(l)
  /\ AckDrained => Drained(l, k)
  /\ pst' = [pst EXCEPT ![l, k] = "closed"]
  /\ ans' = ans \cup {<<"ack", l, k, pinc[k]>>}
  /\ UNCHANGED <<pageV, planV, leaseV, krn, linkV, markV, pinc, pmark, sent, queued, placing, memV>>

Failed(l, k) ==
  /\ pst[l, k] = "closing"
  /\ AckDrained => Drained(l, k)
  /\ pst' = [pst EXCEPT ![l, k] = "closed"]
  /\ ans' = ans \cup {<<"failed", l, k, pinc[k]>>}
  /\ UNCHANGED <<pageV, planV, leaseV, krn, linkV, markV, pinc, pmark, sent, queued, placing, memV>>

Gone(l, k) ==                                 \* asked about a lease below the mark that it does not hold
  /\ Hears(l, k)
  /\ pst[l, k] = "none"
  /\ l < pmark[k]
  /\ ans' = ans \cup {<<"gone", l, k, pinc[k]>>}
  /\ UNCHANGED <<pageV, planV, leaseV, krn, linkV, markV, pinc, pfV, queued, placing, memV>>

Forget(l, k) ==
  /\ pst[l, k] = "closed"
  /\ MarkForget => l < pmark[k]
  /\ pst' = [pst EXCEPT ![l, k] = "none"]
  /\ UNCHANGED <<pageV, planV, leaseV, krn, linkV, markV, pinc, pmark, sent, queued, placing, memV, ans>>

Crash(k) ==                                   \* and restart; what is queued or being placed stays in flight
  /\ pinc[k] + 1 \in Inc
  /\ pinc' = [pinc EXCEPT ![k] = pinc[k] + 1]
  /\ pst' = [l \in Lease, r \in Rank |-> IF r = k THEN "none" ELSE pst[l, r]]
  /\ pmark' = [pmark EXCEPT ![k] = 0]
  /\ sent' = {<<l, r, p>> \in sent : r # k}
  /\ UNCHANGED <<pageV, planV, leaseV, krn, linkV, markV, queued, placing, memV, ans>>

-----------------------------------------------------------------------------
(* the wire: nobody looks at lease or generation, only at the epoch *)

Check(l, k, p, i) ==
  /\ <<l, k, p, i>> \in queued
  /\ PlaceChecks => gep[l, k] = ep[k]
  /\ queued' = queued \ {<<l, k, p, i>>}
  /\ placing' = placing \cup {<<l, k, p, i>>}
  /\ UNCHANGED <<pageV, planV, leaseV, krn, linkV, markV, pinc, pfV, memV, ans>>

Drop(l, k, p, i) ==                           \* an old epoch: dropped, the writer is not told
  /\ <<l, k, p, i>> \in queued
  /\ gep[l, k] # ep[k]
  /\ queued' = queued \ {<<l, k, p, i>>}
  /\ UNCHANGED <<pageV, planV, leaseV, krn, linkV, markV, pinc, pfV, placing, memV, ans>>

Lose(l, k, p, i) ==                           \* the fabric fails it; its writer is told
  /\ <<l, k, p, i>> \in queued
  /\ queued' = queued \ {<<l, k, p, i>>}
  /\ pst' = [pst EXCEPT ![l, k] = IF i = pinc[k] /\ pst[l, k] = "writing" THEN "closing" ELSE pst[l, k]]
  /\ UNCHANGED <<pageV, planV, leaseV, krn, linkV, markV, pinc, pmark, sent, placing, memV, ans>>

Copy(l, k, p, i) ==
  /\ <<l, k, p, i>> \in placing
  /\ placing' = placing \ {<<l, k, p, i>>}
  /\ mem' = [mem EXCEPT ![p, k] = l]
  /\ memg' = [memg EXCEPT ![p, k] = gpage[l, p]]
  /\ UNCHANGED <<pageV, planV, leaseV, krn, linkV, markV, pinc, pfV, queued, ans>>

-----------------------------------------------------------------------------
Next ==
  \/ \E l \in Lease : \E S \in SUBSET Page : \E K \in SUBSET Rank : Grant(l, S, K)
  \/ \E l \in Lease : Abort(l) \/ Ready(l) \/ Release(l)
  \/ \E l \in Lease : \E p \in Page : Read(l, p) \/ \E g \in Gen : ReadEnd(l, p, g)
  \/ \E l \in Lease : \E k \in Rank : \E i \in Inc :
        RecvComplete(l, k, i) \/ \E c \in {"complete", "ack", "failed", "gone"} : RecvReceipt(c, l, k, i)
  \/ \E k \in Rank : Fence(k) \/ FenceEnd(k) \/ Crash(k) \/ \E i \in Inc : Connect(k, i)
  \/ \E k \in Rank : \E m \in Nat : RaiseMark(k, m) \/ RecvMark(k, m) \/ OwnMark(k, m)
  \/ \E l \in Lease : \E k \in Rank :
        \/ Start(l, k) \/ Complete(l, k) \/ Break(l, k) \/ RecvAbort(l, k) \/ AbortAck(l, k)
        \/ Failed(l, k) \/ Gone(l, k) \/ Forget(l, k)
        \/ \E p \in Page : Post(l, k, p)
        \/ \E p \in Page : \E i \in Inc : Check(l, k, p, i) \/ Drop(l, k, p, i) \/ Lose(l, k, p, i) \/ Copy(l, k, p, i)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* The properties. *)
Pending(l, k, p, i) == <<l, k, p, i>> \in queued \/ <<l, k, p, i>> \in placing
MayLand(l, k, p, i) == <<l, k, p, i>> \in placing \/ (<<l, k, p, i>> \in queued /\ gep[l, k] = ep[k])
Has(l, k, p) == mem[p, k] = l /\ memg[p, k] = gen[p]

NoForeignRead ==
  \A l \in Lease : \A p \in Page : \A g \in Gen : \A k \in Rank :
    (<<l, p, g>> \in krn /\ owes[l, k]) => (mem[p, k] = l /\ memg[p, k] = g)

NoReuseWhileInFlight ==
  /\ \A l \in Lease : \A k \in Rank : \A p \in Page : \A i \in Inc :
        MayLand(l, k, p, i) => (own[p] = l /\ gen[p] = gpage[l, p])
  /\ \A l \in Lease : \A p \in Page : \A g \in Gen :
        <<l, p, g>> \in krn => (own[p] = l /\ gen[p] = g)

FenceHolds ==
  \A l \in Lease : \A k \in Rank : \A p \in Page : \A i \in Inc :
    (<<l, k, p, i>> \in placing /\ ~fencing[k]) => gep[l, k] = ep[k]

-----------------------------------------------------------------------------
(* The strengthening. *)
Live(l) == dst[l] \in {"filling", "revoking", "ready"}

FreshLease == \A l \in Lease : nextL <= l => dst[l] = "new"
FreshOwes == \A l \in Lease : \A k \in Rank : nextL <= l => ~owes[l, k]
FreshPages == \A l \in Lease : \A p \in Page : nextL <= l => gpage[l, p] = 0

OwnLive == \A p \in Page : \A l \in Lease : own[p] = l => (Live(l) /\ gpage[l, p] = gen[p] /\ gen[p] # 0)

KeepsPages == \A p \in Page : \A l \in Lease :
  (Live(l) /\ gpage[l, p] # 0) => (own[p] = l /\ gpage[l, p] = gen[p])

HoldKeeps == \A l \in Lease : \A k \in Rank : hold[l, k] => (owes[l, k] /\ dst[l] \in {"filling", "revoking"})

HoldOrGot == \A l \in Lease : \A k \in Rank : (dst[l] = "filling" /\ owes[l, k]) => (hold[l, k] \/ got[l, k])

ReadyGot == \A l \in Lease : \A k \in Rank : (dst[l] = "ready" /\ owes[l, k]) => got[l, k]

FillingEpoch == \A l \in Lease : \A k \in Rank : (dst[l] = "filling" /\ hold[l, k]) => gep[l, k] = ep[k]

GrantEpoch == \A l \in Lease : \A k \in Rank : owes[l, k] =>
  (gep[l, k] <= ep[k] /\ ginc[l, k] <= pinc[k])

LinkInc == \A k \in Rank : linc[k] <= pinc[k]

MarkBound == \A k \in Rank : dmark[k] <= nextL

MarkHonest == \A l \in Lease : \A k \in Rank : l < dmark[k] => ~hold[l, k]

WorksGranted == \A l \in Lease : \A k \in Rank :
  pst[l, k] # "none" => (owes[l, k] /\ ginc[l, k] = pinc[k])

PendingGranted == \A l \in Lease : \A k \in Rank : \A p \in Page : \A i \in Inc :
  Pending(l, k, p, i) =>
    /\ owes[l, k] /\ i = ginc[l, k] /\ gpage[l, p] # 0
    /\ i = pinc[k] => (pst[l, k] \in {"writing", "closing"} /\ <<l, k, p>> \in sent)

OneWrite == \A l \in Lease : \A k \in Rank : \A p \in Page : \A i \in Inc :
  ~(<<l, k, p, i>> \in queued /\ <<l, k, p, i>> \in placing)

MayLandHeld == \A l \in Lease : \A k \in Rank : \A p \in Page : \A i \in Inc :
  MayLand(l, k, p, i) => hold[l, k]

HoldEnds == \A l \in Lease : \A k \in Rank :
  (owes[l, k] /\ gep[l, k] = ep[k] /\ ginc[l, k] = pinc[k] /\ ~hold[l, k])
    => (pst[l, k] = "closed" \/ (pst[l, k] = "none" /\ l < pmark[k]))

AnswerFinal == \A c \in {"complete", "ack", "failed", "gone"} : \A l \in Lease : \A k \in Rank : \A i \in Inc :
  <<c, l, k, i>> \in ans =>
    /\ owes[l, k] /\ i = ginc[l, k]
    /\ i = pinc[k] => (pst[l, k] = "closed" \/ (pst[l, k] = "none" /\ l < pmark[k]))

AnswerDrained == \A c \in {"complete", "ack", "failed", "gone"} : \A l \in Lease : \A k \in Rank : \A p \in Page : \A i, j \in Inc :
  <<c, l, k, i>> \in ans => ~Pending(l, k, p, j)

SentLanded == \A l \in Lease : \A k \in Rank : \A p \in Page :
  (pst[l, k] = "writing" /\ <<l, k, p>> \in sent /\ ~Pending(l, k, p, pinc[k])
     /\ gep[l, k] = ep[k] /\ own[p] = l) => Has(l, k, p)

CompleteLanded == \A l \in Lease : \A k \in Rank : \A p \in Page : \A i \in Inc :
  (<<"complete", l, k, i>> \in ans /\ gep[l, k] = ep[k] /\ own[p] = l) => Has(l, k, p)

GotLanded == \A l \in Lease : \A k \in Rank : \A p \in Page :
  (got[l, k] /\ own[p] = l) => Has(l, k, p)

GotEnded == \A l \in Lease : \A k \in Rank : got[l, k] => (owes[l, k] /\ ~hold[l, k])

KernelReady == \A l \in Lease : \A p \in Page : \A g \in Gen :
  <<l, p, g>> \in krn => (dst[l] = "ready" /\ own[p] = l /\ gen[p] = g)

IndInv ==
  /\ NoForeignRead /\ NoReuseWhileInFlight /\ FenceHolds
  /\ FreshLease /\ FreshOwes /\ FreshPages /\ OwnLive /\ KeepsPages /\ HoldKeeps /\ HoldOrGot /\ ReadyGot /\ FillingEpoch
  /\ GrantEpoch /\ LinkInc /\ MarkBound /\ MarkHonest /\ WorksGranted /\ PendingGranted /\ OneWrite /\ MayLandHeld /\ HoldEnds
  /\ AnswerFinal /\ AnswerDrained /\ SentLanded /\ CompleteLanded /\ GotLanded /\ GotEnded /\ KernelReady
=============================================================================
