-------------------------------- MODULE Heart --------------------------------
(* The heart of the push protocol: why nobody reads bytes that were not       *)
(* written for it.  An abstraction of Transfer.tla, with its names; the       *)
(* theorem of proofs/coq is about this module, for any number of pages,       *)
(* leases, ranks, channels, epochs and restarts.                              *)
(*                                                                            *)
(* A decode node grants pages to a lease.  The prefill ranks that owe a part  *)
(* write straight into its memory, over several channels.  A write goes       *)
(* queued -> flying -> placing -> unseen -> seen:  posted; source read, on    *)
(* its way; past the placer's check, the only one that there is; being        *)
(* copied; visible.  It may be late, and the world may change at each step:   *)
(* the request is aborted, prefill or decode restarts, decode fences the link.*)
(*                                                                            *)
(* What is left out, and why nothing is lost                                  *)
(*  - Messages are facts that stay (a grant, a receipt in ans, a notice in    *)
(*    nsent).  To be late is to be used late, to be lost is never to be used, *)
(*    to be repeated is to be used again.                                     *)
(*  - A lease is a name that is used once, of its decode incarnation, too.    *)
(*  - Bytes are the lease that they were computed for, 0 for all others.  The *)
(*    NIC reads anything at all (Launch); that Complete is said only of own   *)
(*    bytes is what Transfer's source pages, seals and holds are there for.   *)
(*  - Tags, digests, verification: prevention does not need detection.        *)
(*  - Prefill may do nothing, at any time; so starts, marks, failures and     *)
(*    losses that are reported are not told apart.                            *)
(*  - Sharing, growth, requests, verdicts and answers: only in Transfer.      *)
EXTENDS Naturals

CONSTANTS
  Page, Rank, Chan,     \* decode pages; prefill ranks = links; channels of a link
  Part,                 \* <<k, p>>: rank k has a part in page p (an auxiliary record has one writer)
  Lease,                \* names of leases
  Epoch, Inc, DInc, Gen \* Nat; for TLC the first few numbers

ASSUME Part \subseteq Rank \X Page /\ 0 \notin Lease
ASSUME {0} \subseteq Epoch /\ {0} \subseteq Inc /\ {0} \subseteq DInc /\ {0} \subseteq Gen

Kind  == {"complete", "ack"}
Write == Lease \X Rank \X Page \X Chan
Lease0 == Lease \cup {0}

VARIABLES
  \* decode
  own, gen,    \* page -> its lease (0: free); its generation, raised at each hand-out
  dst,         \* lease -> state
  hold,        \* lease, link -> the hold stands
  got,         \* lease, link -> its Complete was taken
  nin,         \* notices that came in
  krn,         \* running kernels: <<lease, page>>
  ep, fencing, \* link -> epoch; a fence has begun and not returned
  dinc,        \* incarnation of the decode node
  \* the grant, written once
  gpage,       \* lease, page -> generation (0: not in the plan)
  owes,        \* lease, link -> owes its parts
  gep, ginc,   \* lease, link -> epoch, prefill incarnation
  dof,         \* lease -> decode incarnation
  \* prefill
  pinc,        \* rank -> incarnation
  pfenced,     \* <<rank, decode incarnation, epoch>> fenced at this end
  sent,        \* writes ever posted
  nsent,       \* notices sent: <<lease, rank, channel>>
  ans,         \* receipts sent: <<kind, lease, rank>>
  \* the fabric
  queued, flying, placing, unseen,
  pay,         \* write -> whose bytes it carries
  mem          \* page, slot of rank -> whose bytes are there

decodeV == <<own, gen, dst, hold, got, nin, krn, ep, fencing, dinc>>
planV   == <<gpage, owes, gep, ginc, dof>>
prefV   == <<pinc, pfenced, sent, nsent, ans>>
wireV   == <<queued, flying, placing, unseen, pay, mem>>
vars    == <<decodeV, planV, prefV, wireV>>

TypeOK ==
  /\ own     \in [Page -> Lease0]
  /\ gen     \in [Page -> Gen]
  /\ dst     \in [Lease -> {"new", "filling", "revoking", "ready", "failed", "done", "dead"}]
  /\ hold    \in [Lease \X Rank -> BOOLEAN]
  /\ got     \in [Lease \X Rank -> BOOLEAN]
  /\ nin     \in SUBSET (Lease \X Rank \X Chan)
  /\ krn     \in SUBSET (Lease \X Page)
  /\ ep      \in [Rank -> Epoch]
  /\ fencing \in [Rank -> BOOLEAN]
  /\ dinc    \in DInc
  /\ gpage   \in [Lease \X Page -> Gen]
  /\ owes    \in [Lease \X Rank -> BOOLEAN]
  /\ gep     \in [Lease \X Rank -> Epoch]
  /\ ginc    \in [Lease \X Rank -> Inc]
  /\ dof     \in [Lease -> DInc]
  /\ pinc    \in [Rank -> Inc]
  /\ pfenced \in SUBSET (Rank \X DInc \X Epoch)
  /\ sent    \in SUBSET Write
  /\ nsent   \in SUBSET (Lease \X Rank \X Chan)
  /\ ans     \in SUBSET (Kind \X Lease \X Rank)
  /\ queued  \in SUBSET Write
  /\ flying  \in SUBSET Write
  /\ placing \in SUBSET Write
  /\ unseen  \in SUBSET Write
  /\ pay     \in [Write -> Lease0]
  /\ mem     \in [Page \X Rank -> Lease0]

Init ==
  /\ own     = [p \in Page |-> 0]
  /\ gen     = [p \in Page |-> 0]
  /\ dst     = [l \in Lease |-> "new"]
  /\ hold    = [l \in Lease, k \in Rank |-> FALSE]
  /\ got     = [l \in Lease, k \in Rank |-> FALSE]
  /\ nin     = {}
  /\ krn     = {}
  /\ ep      = [k \in Rank |-> 0]
  /\ fencing = [k \in Rank |-> FALSE]
  /\ dinc    = 0
  /\ gpage   = [l \in Lease, p \in Page |-> 0]
  /\ owes    = [l \in Lease, k \in Rank |-> FALSE]
  /\ gep     = [l \in Lease, k \in Rank |-> 0]
  /\ ginc    = [l \in Lease, k \in Rank |-> 0]
  /\ dof     = [l \in Lease |-> 0]
  /\ pinc    = [k \in Rank |-> 0]
  /\ pfenced = {}
  /\ sent    = {}
  /\ nsent   = {}
  /\ ans     = {}
  /\ queued  = {}
  /\ flying  = {}
  /\ placing = {}
  /\ unseen  = {}
  /\ pay     = [l \in Lease, k \in Rank, p \in Page, c \in Chan |-> 0]
  /\ mem     = [p \in Page, k \in Rank |-> 0]

-----------------------------------------------------------------------------
Owed(l, k, p) == owes[l, k] /\ gpage[l, p] # 0 /\ <<k, p>> \in Part
Current(l, k) == gep[l, k] = ep[k] /\ dof[l] = dinc              \* granted in the present epoch
Live(l)       == dst[l] \in {"filling", "revoking", "ready"}
Hears(l, k)   == owes[l, k] /\ ginc[l, k] = pinc[k]              \* only the granted incarnation works and answers
Fenced(l, k)  == <<k, dof[l], gep[l, k]>> \in pfenced

(* The drain has two halves.  Prefill's: nothing of l is queued, and behind   *)
(* the writes of each channel goes a notice.  Decode's: all these are in, and *)
(* what was placed is visible.                                                *)
PrefillHalf(l, k) == \A p \in Page : \A c \in Chan :
  <<l, k, p, c>> \in sent => (<<l, k, p, c>> \notin queued /\ <<l, k, c>> \in nsent)
DecodeHalf(l, k) ==
  /\ \A c \in Chan : <<l, k, c>> \in nsent => <<l, k, c>> \in nin
  /\ \A p \in Page : \A c \in Chan : <<l, k, p, c>> \notin unseen

-----------------------------------------------------------------------------
(* Decode.                                                                    *)

(* Free pages S to a new lease l; the ranks K owe their parts, and rank k is  *)
(* to be in incarnation I[k], the last that decode heard of.                  *)
Grant(l, S, K, I) ==
  /\ dst[l] = "new"
  /\ \A p \in Page : p \in S => own[p] = 0
  /\ \A p \in Page : p \in S => \E k \in Rank : k \in K /\ <<k, p>> \in Part
  /\ \A k \in Rank : I[k] <= pinc[k]
  /\ own'   = [p \in Page |-> IF p \in S THEN l ELSE own[p]]
  /\ gen'   = [p \in Page |-> IF p \in S THEN gen[p] + 1 ELSE gen[p]]
  /\ gpage' = [x \in Lease, p \in Page |-> IF x = l /\ p \in S THEN gen[p] + 1 ELSE gpage[x, p]]
  /\ owes'  = [x \in Lease, k \in Rank |-> IF x = l THEN k \in K ELSE owes[x, k]]
  /\ hold'  = [x \in Lease, k \in Rank |-> IF x = l THEN k \in K ELSE hold[x, k]]
  /\ gep'   = [x \in Lease, k \in Rank |-> IF x = l THEN ep[k] ELSE gep[x, k]]
  /\ ginc'  = [x \in Lease, k \in Rank |-> IF x = l THEN I[k] ELSE ginc[x, k]]
  /\ dof'   = [dof EXCEPT ![l] = dinc]
  /\ dst'   = [dst EXCEPT ![l] = "filling"]
  /\ UNCHANGED <<got, nin, krn, ep, fencing, dinc, prefV, wireV>>

Abort(l) ==                                   \* asks, and frees nothing
  /\ dst[l] = "filling"
  /\ dst' = [dst EXCEPT ![l] = "revoking"]
  /\ UNCHANGED <<own, gen, hold, got, nin, krn, ep, fencing, dinc, planV, prefV, wireV>>

NoticeIn(l, k, c) ==                          \* comes behind the writes of its channel
  /\ <<l, k, c>> \in nsent
  /\ hold[l, k]
  /\ \A p \in Page : <<l, k, p, c>> \notin queued /\ <<l, k, p, c>> \notin flying /\ <<l, k, p, c>> \notin placing
  /\ nin' = nin \cup {<<l, k, c>>}
  /\ UNCHANGED <<own, gen, dst, hold, got, krn, ep, fencing, dinc, planV, prefV, wireV>>

Take(a, l, k) ==                              \* a receipt ends the hold of its lease on its link
  /\ <<a, l, k>> \in ans
  /\ hold[l, k]
  /\ DecodeHalf(l, k)
  /\ hold' = [hold EXCEPT ![l, k] = FALSE]
  /\ got'  = [got EXCEPT ![l, k] = (a = "complete" /\ dst[l] = "filling")]
  /\ dst'  = [dst EXCEPT ![l] = IF a = "ack" /\ dst[l] = "filling" THEN "revoking" ELSE dst[l]]
  /\ UNCHANGED <<own, gen, nin, krn, ep, fencing, dinc, planV, prefV, wireV>>

Ready(l) ==
  /\ dst[l] = "filling"
  /\ \A k \in Rank : owes[l, k] => got[l, k]
  /\ dst' = [dst EXCEPT ![l] = "ready"]
  /\ UNCHANGED <<own, gen, hold, got, nin, krn, ep, fencing, dinc, planV, prefV, wireV>>

Read(l, p) ==                                 \* a kernel starts; it reads p at any moment until ReadEnd
  /\ dst[l] = "ready"
  /\ own[p] = l
  /\ krn' = krn \cup {<<l, p>>}
  /\ UNCHANGED <<own, gen, dst, hold, got, nin, ep, fencing, dinc, planV, prefV, wireV>>

ReadEnd(l, p) ==
  /\ <<l, p>> \in krn
  /\ krn' = krn \ {<<l, p>>}
  /\ UNCHANGED <<own, gen, dst, hold, got, nin, ep, fencing, dinc, planV, prefV, wireV>>

Release(l) ==                                 \* when the last hold has ended by proof
  /\ dst[l] \in {"revoking", "ready"}
  /\ \A k \in Rank : ~hold[l, k]
  /\ \A p \in Page : <<l, p>> \notin krn
  /\ own' = [p \in Page |-> IF own[p] = l THEN 0 ELSE own[p]]
  /\ dst' = [dst EXCEPT ![l] = IF dst[l] = "ready" THEN "done" ELSE "failed"]
  /\ UNCHANGED <<gen, hold, got, nin, krn, ep, fencing, dinc, planV, prefV, wireV>>

Fence(k) ==                                   \* raise the epoch ...
  /\ ep[k] + 1 \in Epoch
  /\ ep' = [ep EXCEPT ![k] = ep[k] + 1]
  /\ fencing' = [fencing EXCEPT ![k] = TRUE]
  /\ dst' = [l \in Lease |-> IF hold[l, k] /\ dst[l] = "filling" THEN "revoking" ELSE dst[l]]
  /\ UNCHANGED <<own, gen, hold, got, nin, krn, dinc, planV, prefV, wireV>>

FenceEnd(k) ==                                \* ... then wait for the placers, then end the holds
  /\ fencing[k]
  /\ \A l \in Lease : \A p \in Page : \A c \in Chan :
       (<<l, k, p, c>> \in placing \/ <<l, k, p, c>> \in unseen) => Current(l, k)
  /\ fencing' = [fencing EXCEPT ![k] = FALSE]
  /\ hold' = [l \in Lease, r \in Rank |-> hold[l, r] /\ ~(r = k /\ dst[l] = "revoking" /\ gep[l, r] < ep[r])]
  /\ UNCHANGED <<own, gen, dst, got, nin, krn, ep, dinc, planV, prefV, wireV>>

DecodeCrash ==                                \* and restart, with whatever placed into its memory gone
  /\ dinc + 1 \in DInc
  /\ dinc' = dinc + 1
  /\ own' = [p \in Page |-> 0]
  /\ gen' = [p \in Page |-> 0]
  /\ dst' = [l \in Lease |-> IF Live(l) THEN "dead" ELSE dst[l]]
  /\ hold' = [l \in Lease, k \in Rank |-> FALSE]
  /\ nin' = {}
  /\ krn' = {}
  /\ ep' = [k \in Rank |-> 0]
  /\ fencing' = [k \in Rank |-> FALSE]
  /\ placing' = {}
  /\ unseen' = {}
  /\ UNCHANGED <<got, planV, prefV, queued, flying, pay, mem>>

-----------------------------------------------------------------------------
(* Prefill rank k.                                                            *)

Post(l, k, p, c) ==                           \* once, before the channel's notice, never after a receipt
  /\ Hears(l, k)
  /\ Owed(l, k, p)
  /\ \A a \in Kind : <<a, l, k>> \notin ans
  /\ <<l, k, c>> \notin nsent
  /\ \A d \in Chan : <<l, k, p, d>> \notin sent
  /\ sent' = sent \cup {<<l, k, p, c>>}
  /\ queued' = queued \cup {<<l, k, p, c>>}
  /\ UNCHANGED <<decodeV, planV, pinc, pfenced, nsent, ans, flying, placing, unseen, pay, mem>>

Notice(l, k, c) ==
  /\ Hears(l, k)
  /\ \E p \in Page : <<l, k, p, c>> \in sent
  /\ nsent' = nsent \cup {<<l, k, c>>}
  /\ UNCHANGED <<decodeV, planV, pinc, pfenced, sent, ans, wireV>>

Complete(l, k) ==                             \* every owed part was posted, with the lease's own bytes
  /\ Hears(l, k)
  /\ ~Fenced(l, k)
  /\ \A p \in Page : Owed(l, k, p) => \E c \in Chan : <<l, k, p, c>> \in sent
  /\ \A p \in Page : \A c \in Chan : <<l, k, p, c>> \in sent => pay[l, k, p, c] = l
  /\ PrefillHalf(l, k)
  /\ ans' = ans \cup {<<"complete", l, k>>}
  /\ UNCHANGED <<decodeV, planV, pinc, pfenced, sent, nsent, wireV>>

AbortAck(l, k) ==                             \* any other receipt: AbortAck, Failed, Gone
  /\ Hears(l, k)
  /\ ~Fenced(l, k)
  /\ PrefillHalf(l, k)
  /\ ans' = ans \cup {<<"ack", l, k>>}
  /\ UNCHANGED <<decodeV, planV, pinc, pfenced, sent, nsent, wireV>>

PrefillFence(k, d, e) ==                      \* nothing of that epoch is read here any more, and no receipt follows
  /\ d < dinc \/ (d = dinc /\ e <= ep[k])
  /\ pfenced' = pfenced \cup {<<k, d, e>>}
  /\ queued' = {<<l, r, p, c>> \in queued : ~(r = k /\ dof[l] = d /\ gep[l, r] = e)}
  /\ UNCHANGED <<decodeV, planV, pinc, sent, nsent, ans, flying, placing, unseen, pay, mem>>

PrefillCrash(k) ==                            \* and restart; what flies or is being placed stays in flight
  /\ pinc[k] + 1 \in Inc
  /\ pinc' = [pinc EXCEPT ![k] = pinc[k] + 1]
  /\ pfenced' = {<<r, d, e>> \in pfenced : r # k}
  /\ queued' = {<<l, r, p, c>> \in queued : r # k}
  /\ UNCHANGED <<decodeV, planV, sent, nsent, ans, flying, placing, unseen, pay, mem>>

-----------------------------------------------------------------------------
(* The fabric: looks at nothing but the epoch and the decode incarnation.     *)

Launch(l, k, p, c, b) ==                      \* the source is read, late: bytes b
  /\ <<l, k, p, c>> \in queued
  /\ queued' = queued \ {<<l, k, p, c>>}
  /\ flying' = flying \cup {<<l, k, p, c>>}
  /\ pay' = [pay EXCEPT ![l, k, p, c] = b]
  /\ UNCHANGED <<decodeV, planV, prefV, placing, unseen, mem>>

Check(l, k, p, c) ==
  /\ <<l, k, p, c>> \in flying
  /\ Current(l, k)
  /\ flying' = flying \ {<<l, k, p, c>>}
  /\ placing' = placing \cup {<<l, k, p, c>>}
  /\ UNCHANGED <<decodeV, planV, prefV, queued, unseen, pay, mem>>

Drop(l, k, p, c) ==
  /\ <<l, k, p, c>> \in flying
  /\ ~Current(l, k)
  /\ flying' = flying \ {<<l, k, p, c>>}
  /\ UNCHANGED <<decodeV, planV, prefV, queued, placing, unseen, pay, mem>>

Copy(l, k, p, c) ==                           \* bytes are under way: what is in the page now is nobody's
  /\ <<l, k, p, c>> \in placing
  /\ placing' = placing \ {<<l, k, p, c>>}
  /\ unseen' = unseen \cup {<<l, k, p, c>>}
  /\ mem' = [mem EXCEPT ![p, k] = 0]
  /\ UNCHANGED <<decodeV, planV, prefV, queued, flying, pay>>

Visible(l, k, p, c) ==
  /\ <<l, k, p, c>> \in unseen
  /\ unseen' = unseen \ {<<l, k, p, c>>}
  /\ mem' = [mem EXCEPT ![p, k] = pay[l, k, p, c]]
  /\ UNCHANGED <<decodeV, planV, prefV, queued, flying, placing, pay>>

-----------------------------------------------------------------------------
Next ==
  \/ \E l \in Lease : \E S \in SUBSET Page : \E K \in SUBSET Rank : \E I \in [Rank -> Inc] :
        Grant(l, S, K, I)
  \/ \E l \in Lease : Abort(l) \/ Ready(l) \/ Release(l)
  \/ \E l \in Lease : \E k \in Rank : \E c \in Chan : NoticeIn(l, k, c) \/ Notice(l, k, c)
  \/ \E a \in Kind : \E l \in Lease : \E k \in Rank : Take(a, l, k)
  \/ \E l \in Lease : \E p \in Page : Read(l, p) \/ ReadEnd(l, p)
  \/ \E k \in Rank : Fence(k) \/ FenceEnd(k) \/ PrefillCrash(k)
  \/ DecodeCrash
  \/ \E l \in Lease : \E k \in Rank : Complete(l, k) \/ AbortAck(l, k)
  \/ \E k \in Rank : \E d \in DInc : \E e \in Epoch : PrefillFence(k, d, e)
  \/ \E l \in Lease : \E k \in Rank : \E p \in Page : \E c \in Chan :
        \/ Post(l, k, p, c) \/ Check(l, k, p, c) \/ Drop(l, k, p, c) \/ Copy(l, k, p, c) \/ Visible(l, k, p, c)
        \/ \E b \in Lease0 : Launch(l, k, p, c, b)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
Lands(l, k, p, c)   == <<l, k, p, c>> \in placing \/ <<l, k, p, c>> \in unseen
MayLand(l, k, p, c) ==                        \* no fence stands between it and the page
  Lands(l, k, p, c) \/ ((<<l, k, p, c>> \in queued \/ <<l, k, p, c>> \in flying) /\ Current(l, k))

(* The promise: at any moment while a kernel of l may read p, p is l's, in the*)
(* generation granted to l; some rank owes a part of it, and each owed part   *)
(* holds bytes that were computed for l.                                      *)
NoForeignRead == \A l \in Lease : \A p \in Page : <<l, p>> \in krn =>
  /\ own[p] = l /\ gen[p] = gpage[l, p]
  /\ \E k \in Rank : Owed(l, k, p)
  /\ \A k \in Rank : Owed(l, k, p) => mem[p, k] = l

(* A page that a write may still reach is in the hands that the write is for. *)
NoReuseWhileInFlight == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan :
  MayLand(l, k, p, c) => (own[p] = l /\ gen[p] = gpage[l, p])

(* Nothing may land where a kernel reads.                                     *)
NoEarlyRead == \A l, x \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan :
  <<l, p>> \in krn => ~MayLand(x, k, p, c)

(* Once a fence has returned, nothing of an older epoch is being placed.      *)
FenceHolds == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan :
  (Lands(l, k, p, c) /\ ~fencing[k]) => Current(l, k)
=============================================================================
