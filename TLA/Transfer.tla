------------------------------ MODULE Transfer -------------------------------
(* The transfer protocol in the push direction: one decode node, any number   *)
(* of prefill ranks with one link each, one-sided writes.  Pages, ranks,      *)
(* channels, leases, epochs and incarnations are unbounded; a configuration   *)
(* bounds them for TLC.  The pull direction is Pull.tla; the promise that all *)
(* this keeps is Isolation.tla, and TransferIsolation.tla says how.           *)
(*                                                                            *)
(* Network.tla has the messages, Fabric.tla the writes, Sharing.tla published *)
(* pages: their variables and what they guarantee.  Here is the protocol.     *)
(*                                                                            *)
(* What is abstracted, and why that is sound                                  *)
(*  - A lease number stands for (decode incarnation, counter): it is never    *)
(*    used twice.  Epochs and generations start again with each incarnation.  *)
(*  - Outside names (room, request id) are labels and may repeat: they are    *)
(*    not here.  Without ByName a message is taken by its label.              *)
(*  - A request is its first transfer: root[t].  Retries, preemptions and     *)
(*    retractions are a failure and a next transfer (Retry).                  *)
(*  - The decode ranks of a side share one set of pages here; a transfer has  *)
(*    a lease for each of them.  That allows more than disjoint pools do.     *)
(*  - Growth while decoding takes a lease of its own, which no rank owes.     *)
(*  - Components are sets of pages with the ranks that have a part of them:   *)
(*    KV (all ranks), State, and auxiliary records (one rank).                *)
(*  - Time and liveness clocks are not here: whatever a timer may do, may     *)
(*    happen at any moment.                                                   *)
EXTENDS Network, Fabric, Sharing

CONSTANTS
  Aux, AuxWriter,             \* the pages that are auxiliary records, and the rank that writes them
  State, StateRank,           \* the pages of the component State, and the ranks that have a part of it
  Big,                        \* transfers whose prompt can never fit
  Views,                      \* what prefill may take the prompt for: "same", "short", "other"
  Causes                      \* of failures: "derived" (fenced, peer failed, ...), "original" (deadline, client gone, ...)

(* Features: what the surroundings may do.  A configuration turns off what it *)
(* does not look at; all on is the whole protocol.                            *)
CONSTANTS
  Asking,                     \* requests come by Submit and Ask (off: every transfer is open from the start)
  Running,                    \* transfers run, are read and answered (off: they stay open)
  EmptyPlans,                 \* a lease may have no pages
  Marking,                    \* decode raises marks
  Publishing,                 \* pages are published and shared
  Appending,                  \* decode appends to its tail page
  Growing,                    \* decode takes pages that it fills by itself
  Retrying,                   \* a failed transfer is tried again
  Losing,                     \* the fabric reports a write as failed
  Breaking,                   \* prefill fails by itself
  OwnMarking,                 \* prefill raises marks of its own
  PFencing                    \* prefill fences its own end

(* Prevention guards.                                                         *)
CONSTANTS
  Admit,                      \* what cannot fit is refused before anything else exists
  CompleteNames,              \* Complete names parts, tokens, tenant, and decode compares
  PlanCovers,                 \* a plan covers every page, or nothing is granted
  ByName,                     \* messages are known by transfer and lease, not by a label
  AllHolds,                   \* release only when the hold of every link has ended
  DeferRelease,               \* an abort asks, it does not free
  SrcHold,                    \* a source page stays owned until its writes have read it
  LocalHold,                  \* local kernels hold pages
  SealedOnly,                 \* only sealed pages are written
  AckDrained,                 \* receipts only after prefill's half of the drain
  TakeDrained,                \* AbortAck, Failed and Gone taken only after decode's half
  CompleteVisible,            \* Complete taken only after decode's half
  ChannelAll,                 \* decode's half waits for the notices of all channels
  GoneLists,                  \* Gone lists channels and notices like every receipt
  OnlyGranted,                \* only the granted incarnation works and answers
  FenceFirst,                 \* silence ends no hold; a fence does
  FenceRaises,                \* a fence raises the epoch
  FenceWaits,                 \* ... and then waits for placers
  MarkStart,                  \* no start below the mark
  MarkForget,                 \* a lease is forgotten below the mark only
  RetryDrained,               \* a write reported failed is not posted again, and still counts
  PlaceChecks,                \* a placer compares the epoch
  DecodeInc,                  \* writes and receipts are compared by decode incarnation
  NonceCheck,                 \* an answer to another connect opens no link
  FirstVerdict,               \* the first verdict is final
  OneWriter,                  \* the record has one declared writer
  AllParts,                   \* verified only when the part of every owing rank is in
  CoverAll,                   \* Complete only when every owed page was posted
  LeadAll,                    \* success only when every lease of the transfer is ready
  RetryOver,                  \* the next transfer of a request only when no lease of the last one lives
  LastSpeaks,                 \* the answer is the last transfer's
  CauseKept                   \* a cause changes from derived to original, until the answer is sent

(* Detection guards.                                                          *)
CONSTANTS
  DigestVerify,               \* byte digests at verify
  TagBefore,                  \* tags at verify and before each step
  TagAfter,                   \* tags after each step
  VoidTags                    \* tags voided at hand-out

ASSUME Aux \subseteq Page /\ AuxWriter \in Rank
ASSUME State \subseteq Page /\ StateRank \subseteq Rank
ASSUME Big \subseteq Transfer
ASSUME Views \subseteq {"same", "short", "other"} /\ Causes \subseteq {"derived", "original"}
ASSUME {Asking, Running, EmptyPlans, Marking, Publishing, Appending, Growing, Retrying, Losing, Breaking, OwnMarking,
        PFencing} \subseteq BOOLEAN
ASSUME {Admit, CompleteNames, PlanCovers, ByName, AllHolds, DeferRelease, SrcHold, LocalHold, SealedOnly, AckDrained,
        TakeDrained, CompleteVisible, ChannelAll, GoneLists, OnlyGranted, FenceFirst, FenceRaises, FenceWaits, MarkStart,
        MarkForget, RetryDrained, PlaceChecks, DecodeInc, NonceCheck, FirstVerdict, OneWriter, AllParts, CoverAll,
        LeadAll, RetryOver, LastSpeaks, CauseKept} \subseteq BOOLEAN
ASSUME {DigestVerify, TagBefore, TagAfter, VoidTags} \subseteq BOOLEAN

VARIABLES
  \* decode leader (impl/core DecodeLeader) and prefill leader
  lead,       \* transfer -> state of the one verdict
  cause,      \* transfer -> of its failure
  root, succ, \* transfer -> first transfer of its request, the transfer that tries it again (0: none); written once
  http,       \* request -> what the client was told
  pask,       \* transfer -> prefill's leader has accepted the Ask
  \* decode rank (impl/core DecodeRank, impl/pages)
  own, gen,   \* page -> lease (0: free), generation
  dst,        \* lease -> state
  hold,       \* lease, link -> the hold stands
  got,        \* lease, link -> its Complete was taken
  rec,        \* receipts received and not yet taken
  nin,        \* notices that came in
  qep,        \* lease, link -> epoch when its pages were found bad
  krn,        \* running kernels: <<lease, page, generation, lease that filled it>>
  tok,        \* tokens let out: <<lease, lease expected in the page, lease whose bytes were there>>
  ep,         \* link -> epoch
  linc, up,   \* link -> prefill incarnation at its other end; open
  fencing,    \* link -> a fence has begun and not returned
  dinc,       \* incarnation of the decode node
  dmark,      \* link -> mark
  nextL,      \* next lease number
  \* the grant, written once (fields of Grant in spec/)
  gpage,      \* lease, page -> generation (0: not in the plan)
  owes,       \* lease, link -> owes a part
  gep, ginc,  \* lease, link -> epoch, incarnation
  dof,        \* lease -> decode incarnation that granted it
  tof,        \* lease -> transfer
  \* prefill rank (impl/core PrefillRank)
  pinc,       \* rank -> incarnation
  pst,        \* lease, rank -> state
  pview,      \* lease, rank -> what this rank takes the prompt for
  pmark,      \* rank -> mark
  pfenced,    \* <<rank, decode incarnation, epoch>> fenced at this end
  sown, sdat, sst,  \* rank, source page -> owner, bytes, state
  sent,       \* writes ever posted
  src         \* write (without incarnation) -> its source page

leadV  == <<lead, cause, root, succ, http, pask>>
pageV  == <<own, gen>>
leaseV == <<dst, hold, got, rec, nin, qep>>
readV  == <<krn, tok>>
linkV  == <<ep, linc, up, fencing, dinc>>
markV  == <<dmark, nextL>>
planV  == <<gpage, owes, gep, ginc, dof, tof, ten, ada, pre>>
pfV    == <<pst, pview, pmark, pfenced>>
srcV   == <<sown, sdat, sst>>
postV  == <<sent, src, lost, nsent>>
vars   == <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

TypeOK ==
  /\ NetworkType
  /\ FabricType
  /\ SharingType
  /\ lead    \in [Transfer -> {"new", "submitted", "asking", "open", "run", "ok", "failed", "refused"}]
  /\ cause   \in [Transfer -> {"none", "derived", "original"}]
  /\ root    \in [Transfer -> Transfer]
  /\ succ    \in [Transfer -> Transfer \cup {0}]
  /\ http    \in [Transfer -> {"none", "200", "error"}]
  /\ pask    \in [Transfer -> BOOLEAN]
  /\ own     \in [Page -> Lease0]
  /\ gen     \in [Page -> Gen]
  /\ dst     \in [Lease -> {"new", "filling", "revoking", "verified", "ready", "bad", "failed", "done", "dead"}]
  /\ hold    \in [Lease \X Rank -> BOOLEAN]
  /\ got     \in [Lease \X Rank -> BOOLEAN]
  /\ rec     \in SUBSET (Kind \X Lease \X Rank \X Inc)
  /\ nin     \in SUBSET (Lease \X Rank \X Chan \X Inc)
  /\ qep     \in [Lease \X Rank -> Epoch]
  /\ krn     \in SUBSET (Lease \X Page \X Gen \X Lease)
  /\ tok     \in SUBSET (Lease \X Lease \X Lease0)
  /\ ep      \in [Rank -> Epoch]
  /\ linc    \in [Rank -> Inc]
  /\ up      \in [Rank -> BOOLEAN]
  /\ fencing \in [Rank -> BOOLEAN]
  /\ dinc    \in DInc
  /\ dmark   \in [Rank -> Nat]
  /\ nextL   \in Nat
  /\ gpage   \in [Lease \X Page -> Gen]
  /\ owes    \in [Lease \X Rank -> BOOLEAN]
  /\ gep     \in [Lease \X Rank -> Epoch]
  /\ ginc    \in [Lease \X Rank -> Inc]
  /\ dof     \in [Lease -> DInc]
  /\ tof     \in [Lease -> Transfer \cup {0}]
  /\ pinc    \in [Rank -> Inc]
  /\ pst     \in [Lease \X Rank -> {"none", "writing", "closing", "closed"}]
  /\ pview   \in [Lease \X Rank -> {"same", "short", "other"}]
  /\ pmark   \in [Rank -> Nat]
  /\ pfenced \in SUBSET (Rank \X DInc \X Epoch)
  /\ sown    \in [Rank \X SPage -> Lease0]
  /\ sdat    \in [Rank \X SPage -> Lease0]
  /\ sst     \in [Rank \X SPage -> {"raw", "computed", "sealed"}]
  /\ sent    \in SUBSET Write
  /\ src     \in [Lease \X Rank \X Page \X Chan -> SPage \cup {0}]

Init ==
  /\ NetworkInit
  /\ FabricInit
  /\ SharingInit
  /\ lead = [t \in Transfer |-> IF Asking THEN "new" ELSE "open"]
  /\ cause = [t \in Transfer |-> "none"]
  /\ root = [t \in Transfer |-> t]
  /\ succ = [t \in Transfer |-> 0]
  /\ http = [t \in Transfer |-> "none"]
  /\ pask = [t \in Transfer |-> ~Asking]
  /\ own = [p \in Page |-> 0]
  /\ gen = [p \in Page |-> 0]
  /\ dst = [l \in Lease |-> "new"]
  /\ hold = [l \in Lease, k \in Rank |-> FALSE]
  /\ got = [l \in Lease, k \in Rank |-> FALSE]
  /\ rec = {}
  /\ nin = {}
  /\ qep = [l \in Lease, k \in Rank |-> 0]
  /\ krn = {}
  /\ tok = {}
  /\ ep = [k \in Rank |-> 0]
  /\ linc = [k \in Rank |-> 0]
  /\ up = [k \in Rank |-> TRUE]
  /\ fencing = [k \in Rank |-> FALSE]
  /\ dinc = 0
  /\ dmark = [k \in Rank |-> 0]
  /\ nextL = 1
  /\ gpage = [l \in Lease, p \in Page |-> 0]
  /\ owes = [l \in Lease, k \in Rank |-> FALSE]
  /\ gep = [l \in Lease, k \in Rank |-> 0]
  /\ ginc = [l \in Lease, k \in Rank |-> 0]
  /\ dof = [l \in Lease |-> 0]
  /\ tof = [l \in Lease |-> 0]
  /\ pinc = [k \in Rank |-> 0]
  /\ pst = [l \in Lease, k \in Rank |-> "none"]
  /\ pview = [l \in Lease, k \in Rank |-> "same"]
  /\ pmark = [k \in Rank |-> 0]
  /\ pfenced = {}
  /\ sown = [k \in Rank, q \in SPage |-> 0]
  /\ sdat = [k \in Rank, q \in SPage |-> 0]
  /\ sst = [k \in Rank, q \in SPage |-> "raw"]
  /\ sent = {}
  /\ src = [l \in Lease, k \in Rank, p \in Page, c \in Chan |-> 0]

-----------------------------------------------------------------------------
(* Words used by several actions.                                             *)

Has(k, p)     == (p \in Aux => k = AuxWriter) /\ (p \in State => k \in StateRank)   \* rank k has a part of pages like p
Owed(l, k, p) == owes[l, k] /\ gpage[l, p] # 0 /\ Has(k, p)                     \* rank k owes its part of page p
Current(l, k) == gep[l, k] = ep[k] /\ dof[l] = dinc                              \* granted in the present epoch
Older(l, k)   == gep[l, k] < ep[k] \/ ~FenceRaises
Aborted(l)    == dst[l] \in {"revoking", "bad", "failed", "dead"}
Live(l)       == dst[l] \in {"filling", "revoking", "verified", "ready", "bad"}
TagOk(p, x)   == \A k \in Rank : Owed(x, k, p) => tagl[p, k] = x
BytesOk(p, x) == \A k \in Rank : Owed(x, k, p) => mem[p, k] = x

(* decode's half of the drain of lease l on link k, as the receipt of prefill *)
(* incarnation i lists it: every listed notice is in, and what was placed is  *)
(* visible (the flush).                                                       *)
NoticesIn(l, k, i) ==
  IF ChannelAll THEN \A c \in Chan : <<l, k, c, i>> \in nsent => <<l, k, c, i>> \in nin
                ELSE (\A c \in Chan : <<l, k, c, i>> \notin nsent) \/ (\E c \in Chan : <<l, k, c, i>> \in nin)
DecodeHalf(x, l, k, i) == (x = "gone" => GoneLists) => (NoticesIn(l, k, i) /\ Flushed(l, k))

-----------------------------------------------------------------------------
(* Decode leader and prefill leader.                                          *)

Submit(t) ==
  /\ lead[t] = "new"
  /\ lead' = [lead EXCEPT ![t] = "submitted"]
  /\ UNCHANGED <<cause, root, succ, http, pask, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

(* Admission: what can never fit is refused with its original error.  Without *)
(* the guard the refusal comes whenever somebody runs into the limit.         *)
Refuse(t) ==
  /\ t \in Big
  /\ IF Admit THEN lead[t] = "submitted" ELSE lead[t] \in {"submitted", "asking", "open", "run"}
  /\ lead' = [lead EXCEPT ![t] = "refused"]
  /\ cause' = [cause EXCEPT ![t] = "original"]
  /\ UNCHANGED <<root, succ, http, pask, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

Ask(t) ==
  /\ lead[t] = "submitted"
  /\ Admit => t \notin Big
  /\ lead' = [lead EXCEPT ![t] = "asking"]
  /\ UNCHANGED <<cause, root, succ, http, pask, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

RecvAsk(t) ==                                 \* prefill's leader; a repeat changes nothing
  /\ Arrives(lead[t] \notin {"new", "submitted", "refused"})
  /\ ~pask[t]
  /\ pask' = [pask EXCEPT ![t] = TRUE]
  /\ UNCHANGED <<lead, cause, root, succ, http, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

RecvAsked(t) ==
  /\ lead[t] = "asking"
  /\ Arrives(pask[t])
  /\ lead' = [lead EXCEPT ![t] = "open"]
  /\ UNCHANGED <<cause, root, succ, http, pask, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

Run(t) ==                                     \* the plan is whole: every lease of t was taken
  /\ Running
  /\ lead[t] = "open"
  /\ lead' = [lead EXCEPT ![t] = "run"]
  /\ UNCHANGED <<cause, root, succ, http, pask, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

AllReady(t) ==                                \* "ready" reports are never taken back
  /\ \E l \in Lease : tof[l] = t
  /\ IF LeadAll THEN \A l \in Lease : tof[l] = t => dst[l] \in {"ready", "done"}
                ELSE \E l \in Lease : tof[l] = t /\ dst[l] \in {"ready", "done"}

(* The last token has passed its second check: every kernel of t has ended.   *)
Success(t) ==
  /\ lead[t] = "run" \/ (lead[t] = "failed" /\ ~FirstVerdict)
  /\ AllReady(t)
  /\ \A l, x \in Lease : \A p \in Page : \A g \in Gen : tof[l] = t => <<l, p, g, x>> \notin krn
  /\ lead' = [lead EXCEPT ![t] = "ok"]
  /\ UNCHANGED <<cause, root, succ, http, pask, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

Failure(t, c) ==                              \* any cause, from anyone: client gone, deadline, either engine, a fence
  /\ Running
  /\ c \in Causes
  /\ lead[t] \in {"submitted", "asking", "open", "run"}
  /\ lead' = [lead EXCEPT ![t] = "failed"]
  /\ cause' = [cause EXCEPT ![t] = c]
  /\ UNCHANGED <<root, succ, http, pask, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

Recause(t, r, c) ==                           \* a report that comes late names what was first
  /\ lead[t] = "failed"
  /\ root[t] = r
  /\ c \in Causes
  /\ c # cause[t]
  /\ CauseKept => (c = "original" /\ http[r] = "none")
  /\ cause' = [cause EXCEPT ![t] = c]
  /\ UNCHANGED <<lead, root, succ, http, pask, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

(* The next attempt of the request that began as r: after a failure that the  *)
(* client was not told of, also when a running one makes room (preemption).   *)
Retry(t, u, r) ==
  /\ Retrying
  /\ lead[t] = "failed"
  /\ root[t] = r
  /\ http[r] = "none"
  /\ succ[t] = 0
  /\ lead[u] = "new"
  /\ (t \in Big) = (u \in Big)
  /\ RetryOver => \A l \in Lease : tof[l] = t => ~Live(l)
  /\ lead' = [lead EXCEPT ![u] = "submitted"]
  /\ root' = [root EXCEPT ![u] = r]
  /\ succ' = [succ EXCEPT ![t] = u]
  /\ UNCHANGED <<cause, http, pask, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

Answer(t, r) ==                               \* the request that began as r; an error's cause is cause[r]
  /\ lead[t] \in {"ok", "failed", "refused"}
  /\ root[t] = r
  /\ http[r] = "none"
  /\ LastSpeaks => succ[t] = 0
  /\ http' = [http EXCEPT ![r] = IF lead[t] = "ok" THEN "200" ELSE "error"]
  /\ UNCHANGED <<lead, cause, root, succ, pask, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

-----------------------------------------------------------------------------
(* Decode rank: leases.                                                       *)

(* Hands out pages S to a new lease l of transfer t, tenant n, adapter a and  *)
(* prompt prefix f, of which the ranks K owe parts: generations raised and    *)
(* tags voided before it is sent.                                             *)
Grant(t, n, a, f, l, S, K) ==
  /\ l = nextL
  /\ l + 1 \in Nat
  /\ lead[t] = "open"
  /\ (S = {}) = (K = {})
  /\ EmptyPlans \/ S # {}
  /\ \A k \in Rank : k \in K => up[k]
  /\ PlanCovers => \A p \in Page : p \in S => \E k \in Rank : k \in K /\ Has(k, p)
  /\ \A p \in Page : p \in S => own[p] = 0
  /\ \A p \in Page : p \in S => Free(p)
  /\ own' = [p \in Page |-> IF p \in S THEN l ELSE own[p]]
  /\ gen' = [p \in Page |-> IF p \in S THEN gen[p] + 1 ELSE gen[p]]
  /\ tagl' = [p \in Page, k \in Rank |-> IF p \in S /\ VoidTags THEN 0 ELSE tagl[p, k]]
  /\ app' = [p \in Page |-> app[p] /\ p \notin S]
  /\ gpage' = [x \in Lease, p \in Page |-> IF x = l /\ p \in S THEN gen[p] + 1 ELSE gpage[x, p]]
  /\ owes' = [x \in Lease, k \in Rank |-> IF x = l THEN k \in K ELSE owes[x, k]]
  /\ hold' = [x \in Lease, k \in Rank |-> IF x = l THEN k \in K ELSE hold[x, k]]
  /\ gep' = [x \in Lease, k \in Rank |-> IF x = l THEN ep[k] ELSE gep[x, k]]
  /\ ginc' = [x \in Lease, k \in Rank |-> IF x = l THEN linc[k] ELSE ginc[x, k]]
  /\ dof' = [dof EXCEPT ![l] = dinc]
  /\ tof' = [tof EXCEPT ![l] = t]
  /\ ten' = [ten EXCEPT ![l] = n]
  /\ ada' = [ada EXCEPT ![l] = a]
  /\ pre' = [pre EXCEPT ![l] = f]
  /\ dst' = [dst EXCEPT ![l] = "filling"]
  /\ nextL' = l + 1
  /\ UNCHANGED <<leadV, got, rec, nin, qep, readV, linkV, dmark, pubs, shr, pinc, pfV, srcV, postV, ans, acc, wireV, mem, spent>>

(* Decode takes a page that it fills by itself, for growth or for a copy of a *)
(* shared tail: a lease x of its own beside l, which no rank owes.            *)
Grow(l, x, p) ==
  /\ Growing
  /\ x = nextL
  /\ x + 1 \in Nat
  /\ dst[l] = "ready"
  /\ own[p] = 0
  /\ Free(p)
  /\ p \notin Aux
  /\ own' = [own EXCEPT ![p] = x]
  /\ gen' = [gen EXCEPT ![p] = gen[p] + 1]
  /\ tagl' = [q \in Page, k \in Rank |-> IF q = p /\ VoidTags THEN 0 ELSE tagl[q, k]]
  /\ app' = [app EXCEPT ![p] = TRUE]
  /\ gpage' = [y \in Lease, q \in Page |-> IF y = x /\ q = p THEN gen[p] + 1 ELSE gpage[y, q]]
  /\ dof' = [dof EXCEPT ![x] = dinc]
  /\ tof' = [y \in Lease |-> IF y = x THEN tof[l] ELSE tof[y]]
  /\ ten' = [y \in Lease |-> IF y = x THEN ten[l] ELSE ten[y]]
  /\ ada' = [y \in Lease |-> IF y = x THEN ada[l] ELSE ada[y]]
  /\ pre' = [y \in Lease |-> IF y = x THEN pre[l] ELSE pre[y]]
  /\ dst' = [dst EXCEPT ![x] = "ready"]
  /\ nextL' = x + 1
  /\ UNCHANGED <<leadV, hold, got, rec, nin, qep, readV, linkV, dmark, pubs, shr, owes, gep, ginc, pinc, pfV, srcV, postV, ans, acc, wireV, mem, spent>>

Abort(l) ==
  /\ dst[l] \in {"filling", "verified"}
  /\ dst' = [dst EXCEPT ![l] = IF DeferRelease THEN "revoking" ELSE "failed"]
  /\ own' = [p \in Page |-> IF own[p] = l /\ ~DeferRelease THEN 0 ELSE own[p]]
  /\ UNCHANGED <<leadV, gen, hold, got, rec, nin, qep, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

(* A receipt of lease x arrives and is kept for lease l: the same lease, or,  *)
(* where incarnations are not compared, one of a former decode incarnation    *)
(* with the same number, or, where names are not, any with the same label.    *)
Believed(x, l, k, i) ==
  /\ x = l \/ (~DecodeInc /\ dof[x] < dof[l]) \/ ~ByName
  /\ OnlyGranted => i = ginc[l, k]
  /\ hold[l, k]

RecvComplete(c, x, l, k, i) ==
  /\ c \in {"complete", "misnamed"}
  /\ Arrives(<<c, x, k, i>> \in ans)
  /\ Believed(x, l, k, i)
  /\ rec' = rec \cup {<<IF CompleteNames THEN c ELSE "complete", l, k, i>>}
  /\ UNCHANGED <<leadV, pageV, dst, hold, got, nin, qep, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

RecvReceipt(c, x, l, k, i) ==
  /\ c \in {"ack", "failed", "gone"}
  /\ Arrives(<<c, x, k, i>> \in ans)
  /\ Believed(x, l, k, i)
  /\ rec' = rec \cup {<<c, l, k, i>>}
  /\ UNCHANGED <<leadV, pageV, dst, hold, got, nin, qep, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

(* A notice comes behind the writes of its channel: none of them is queued,   *)
(* under way or being placed any more.                                        *)
NoticeIn(l, k, c, i) ==
  /\ Arrives(<<l, k, c, i>> \in nsent)
  /\ <<l, k, c, i>> \notin nin
  /\ hold[l, k]
  /\ Behind(l, k, c, i)
  /\ nin' = nin \cup {<<l, k, c, i>>}
  /\ UNCHANGED <<leadV, pageV, dst, hold, got, rec, qep, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

Take(c, l, k, i) ==                           \* decode's half is done, too: the receipt counts
  /\ <<c, l, k, i>> \in rec
  /\ hold[l, k]
  /\ (IF c = "complete" THEN CompleteVisible ELSE TakeDrained) => DecodeHalf(c, l, k, i)
  /\ hold' = [hold EXCEPT ![l, k] = FALSE]
  /\ got' = [got EXCEPT ![l, k] = (c = "complete" /\ dst[l] = "filling")]
  /\ dst' = [dst EXCEPT ![l] = IF c # "complete" /\ dst[l] = "filling" THEN "revoking" ELSE dst[l]]
  /\ rec' = {<<d, x, r, j>> \in rec : ~(x = l /\ r = k)}
  /\ UNCHANGED <<leadV, pageV, nin, qep, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

GiveUp(l, k) ==                               \* only without the guard: silence ends a hold
  /\ ~FenceFirst
  /\ hold[l, k]
  /\ dst[l] = "revoking"
  /\ hold' = [hold EXCEPT ![l, k] = FALSE]
  /\ UNCHANGED <<leadV, pageV, dst, got, rec, nin, qep, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

AllGot(l) == IF AllParts THEN \A k \in Rank : owes[l, k] => got[l, k]
                         ELSE \E k \in Rank : got[l, k]
VerifyGood(l) == \A p \in Page : gpage[l, p] # 0 => ((DigestVerify => BytesOk(p, l)) /\ (TagBefore => TagOk(p, l)))

Verify(l) ==
  /\ dst[l] = "filling"
  /\ AllGot(l)
  /\ VerifyGood(l)
  /\ dst' = [dst EXCEPT ![l] = "verified"]
  /\ UNCHANGED <<leadV, pageV, hold, got, rec, nin, qep, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

Quarantine(l) ==                              \* the pages stay with l until a fence begun after now
  /\ dst' = [dst EXCEPT ![l] = "bad"]
  /\ qep' = [x \in Lease, k \in Rank |-> IF x = l THEN ep[k] ELSE qep[x, k]]

BadVerify(l) ==
  /\ dst[l] = "filling"
  /\ AllGot(l)
  /\ ~VerifyGood(l)
  /\ Quarantine(l)
  /\ UNCHANGED <<leadV, pageV, hold, got, rec, nin, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

Ready(l) ==
  /\ dst[l] = "verified"
  /\ dst' = [dst EXCEPT ![l] = "ready"]
  /\ UNCHANGED <<leadV, pageV, hold, got, rec, nin, qep, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

Fills(l, p, x) == (own[p] = l /\ x = l) \/ <<l, p, x>> \in shr    \* what the ledger of l expects in p

Read(t, l, p, x) ==                           \* one page of a step of transfer t
  /\ tof[l] = t
  /\ lead[t] = "run"
  /\ AllReady(t)
  /\ dst[l] = "ready"
  /\ Fills(l, p, x)
  /\ TagBefore => TagOk(p, x)
  /\ krn' = krn \cup {<<l, p, gen[p], x>>}
  /\ UNCHANGED <<leadV, pageV, leaseV, tok, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

(* A check of page p, filled by x, failed under l: the page is published no   *)
(* longer, and every lease that reads it fails, l for one.  Those that are    *)
(* filling only end; l keeps the page until the fences have been.             *)
Hit(y, l, p, x) == y = l \/ Fills(y, p, x)
Spoil(l, p, x) ==
  /\ dst' = [y \in Lease |-> IF ~Hit(y, l, p, x) THEN dst[y]
                             ELSE IF dst[y] = "filling" THEN "revoking"
                             ELSE IF dst[y] \in {"verified", "ready"} THEN "bad" ELSE dst[y]]
  /\ qep' = [y \in Lease, k \in Rank |-> IF Hit(y, l, p, x) THEN ep[k] ELSE qep[y, k]]
  /\ pubs' = {<<q, g, y>> \in pubs : ~(q = p /\ y = x)}

BadRead(l, p, x) ==                           \* the check before the step fails
  /\ dst[l] = "ready"
  /\ Fills(l, p, x)
  /\ TagBefore /\ ~TagOk(p, x)
  /\ Spoil(l, p, x)
  /\ UNCHANGED <<leadV, pageV, hold, got, rec, nin, readV, linkV, markV, shr, app, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

(* The kernel stops.  Its token leaves only if the tags still agree.          *)
ReadEnd(l, p, g, x) ==
  /\ <<l, p, g, x>> \in krn
  /\ krn' = krn \ {<<l, p, g, x>>}
  /\ IF TagAfter => TagOk(p, x)
     THEN /\ tok' = tok \cup {<<l, x, mem[p, k]>> : k \in {r \in Rank : Owed(x, r, p)}}
          /\ UNCHANGED <<dst, qep, pubs>>
     ELSE /\ UNCHANGED tok
          /\ Spoil(l, p, x)
  /\ UNCHANGED <<leadV, pageV, hold, got, rec, nin, linkV, markV, shr, app, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

Append(l, p) ==
  /\ Appending
  /\ dst[l] = "ready"
  /\ own[p] = l
  /\ p \notin Aux
  /\ MarkAppended(l, p, gen[p])
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

Publish(l, p) ==
  /\ Publishing
  /\ dst[l] = "ready"
  /\ own[p] = l
  /\ p \notin Aux
  /\ AddPublished(l, p, gen[p])
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

Unpublish(p, g, x) ==                         \* room is needed, or nobody asks for it any more
  /\ Withdraw(p, g, x)
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

Share(l, p, g, x) ==                          \* a prefix hit; the page may have no owner left
  /\ dst[l] = "filling"
  /\ TakeShare(l, p, g, x, gen[p])
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

NoKernel(l) == \A p \in Page : \A g \in Gen : \A x \in Lease : <<l, p, g, x>> \notin krn

Release(l) ==
  /\ dst[l] \in {"revoking", "ready"}
  /\ IF AllHolds THEN \A k \in Rank : ~hold[l, k]
                 ELSE \E k \in Rank : owes[l, k] /\ ~hold[l, k]
  /\ LocalHold => NoKernel(l)
  /\ own' = [p \in Page |-> IF own[p] = l THEN 0 ELSE own[p]]
  /\ shr' = {<<y, p, x>> \in shr : y # l}
  /\ dst' = [dst EXCEPT ![l] = IF dst[l] = "ready" THEN "done" ELSE "failed"]
  /\ UNCHANGED <<leadV, gen, hold, got, rec, nin, qep, readV, linkV, markV, pubs, app, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

QuarantineEnd(l) ==                           \* every link that was granted the pages, its own or shared, has been fenced since
  /\ dst[l] = "bad"
  /\ \A k \in Rank : owes[l, k] => (~hold[l, k] /\ qep[l, k] < ep[k] /\ ~fencing[k])
  /\ \A k \in Rank : \A p \in Page : \A x \in Lease : (<<l, p, x>> \in shr /\ owes[x, k]) => (qep[l, k] < ep[k] /\ ~fencing[k])
  /\ LocalHold => NoKernel(l)
  /\ own' = [p \in Page |-> IF own[p] = l THEN 0 ELSE own[p]]
  /\ shr' = {<<y, p, x>> \in shr : y # l}
  /\ dst' = [dst EXCEPT ![l] = "failed"]
  /\ UNCHANGED <<leadV, gen, hold, got, rec, nin, qep, readV, linkV, markV, pubs, app, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

-----------------------------------------------------------------------------
(* Decode rank: links.  A connect is a fence: Fence raises the epoch and asks *)
(* (Connect goes out), Accept is prefill's answer, Connect takes it.          *)

Fence(k) ==
  /\ ep[k] + 1 \in Epoch
  /\ ep' = [ep EXCEPT ![k] = IF FenceRaises THEN ep[k] + 1 ELSE ep[k]]
  /\ fencing' = [fencing EXCEPT ![k] = TRUE]
  /\ up' = [up EXCEPT ![k] = FALSE]
  /\ dst' = [l \in Lease |-> IF hold[l, k] /\ dst[l] = "filling" THEN "revoking" ELSE dst[l]]
  /\ UNCHANGED <<leadV, pageV, hold, got, rec, nin, qep, readV, linc, dinc, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

FenceEnd(k) ==
  /\ fencing[k]
  /\ FenceWaits => \A l \in Lease : \A p \in Page : \A c \in Chan : \A i \in Inc :
       (<<l, k, p, c, i>> \in placing \/ <<l, k, p, c, i>> \in unseen) => Current(l, k)
  /\ fencing' = [fencing EXCEPT ![k] = FALSE]
  /\ hold' = [l \in Lease, r \in Rank |-> hold[l, r] /\ ~(r = k /\ Older(l, k) /\ dst[l] = "revoking")]
  /\ UNCHANGED <<leadV, pageV, dst, got, rec, nin, qep, readV, ep, linc, up, dinc, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

Connect(k, i, d, e) ==
  /\ ~up[k]
  /\ Arrives(<<k, i, d, e>> \in acc)
  /\ NonceCheck => (d = dinc /\ e = ep[k])
  /\ linc' = [linc EXCEPT ![k] = i]
  /\ up' = [up EXCEPT ![k] = TRUE]
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, ep, fencing, dinc, markV, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

RaiseMark(k, m) ==                            \* at most the lowest lease whose hold on this link stands
  /\ Marking
  /\ dmark[k] < m
  /\ m <= nextL
  /\ \A l \in Lease : l < m => ~hold[l, k]
  /\ dmark' = [dmark EXCEPT ![k] = m]
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, nextL, shareV, planV, pinc, pfV, srcV, postV, ans, acc, wireV, memV, spent>>

(* The process ends, and with it whatever placed into its memory; a new one   *)
(* starts with new numbers.  What still flies is judged by the new one.       *)
(* (Without Asking, an open transfer with no lease stands for a later one.)   *)
DecodeCrash ==
  /\ dinc + 1 \in DInc
  /\ dinc' = dinc + 1
  /\ lead' = [t \in Transfer |->
       IF lead[t] \in {"submitted", "asking", "open", "run"} /\ (Asking \/ \E l \in Lease : tof[l] = t) THEN "failed" ELSE lead[t]]
  /\ cause' = [t \in Transfer |->
       IF lead[t] \in {"submitted", "asking", "open", "run"} /\ (Asking \/ \E l \in Lease : tof[l] = t) THEN "derived" ELSE cause[t]]
  /\ own' = [p \in Page |-> 0]
  /\ gen' = [p \in Page |-> 0]
  /\ dst' = [l \in Lease |-> IF Live(l) THEN "dead" ELSE dst[l]]
  /\ hold' = [l \in Lease, k \in Rank |-> FALSE]
  /\ rec' = {}
  /\ nin' = {}
  /\ krn' = {}
  /\ ep' = [k \in Rank |-> 0]
  /\ up' = [k \in Rank |-> FALSE]
  /\ fencing' = [k \in Rank |-> FALSE]
  /\ pubs' = {}
  /\ shr' = {}
  /\ app' = [p \in Page |-> FALSE]
  /\ placing' = {}
  /\ unseen' = {}
  /\ UNCHANGED <<root, succ, http, pask, got, qep, tok, linc, markV, planV, pinc, pfV, srcV, postV, ans, acc, queued, flying, pay, memV, spent>>

-----------------------------------------------------------------------------
(* Prefill rank k.                                                            *)

Hears(l, k) == (owes[l, k] \/ (~OneWriter /\ dst[l] # "new")) /\ (OnlyGranted => ginc[l, k] = pinc[k])
Fenced(l, k) == <<k, dof[l], gep[l, k]>> \in pfenced

(* Prefill's half of the drain: nothing queued, and a notice sent behind the  *)
(* writes on every channel that carried one.  A write reported failed counts  *)
(* like any other.                                                            *)
PrefillHalf(l, k) == \A p \in Page : \A c \in Chan :
  (<<l, k, p, c, pinc[k]>> \in sent /\ (RetryDrained \/ <<l, k, p, c, pinc[k]>> \notin lost)) =>
    (<<l, k, p, c, pinc[k]>> \notin queued /\ <<l, k, c, pinc[k]>> \in nsent)

Posted(l, k) == \A p \in Page : Owed(l, k, p) => \E c \in Chan : <<l, k, p, c, pinc[k]>> \in sent

Accept(k) ==                                  \* answers the connect that is out
  /\ ~up[k]
  /\ acc' = acc \cup {<<k, pinc[k], dinc, ep[k]>>}
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, ans, wireV, memV, spent>>

RecvMark(k, m) ==
  /\ pmark[k] < m
  /\ Arrives(m <= dmark[k])
  /\ pmark' = [pmark EXCEPT ![k] = m]
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pst, pview, pfenced, srcV, postV, ans, acc, wireV, memV, spent>>

OwnMark(k, m) ==                              \* prefill's memory is full
  /\ OwnMarking
  /\ pmark[k] < m
  /\ m <= nextL
  /\ pmark' = [pmark EXCEPT ![k] = m]
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pst, pview, pfenced, srcV, postV, ans, acc, wireV, memV, spent>>

Start(t, l, k, v) ==
  /\ tof[l] = t
  /\ pask[t]
  /\ Hears(l, k)
  /\ pst[l, k] = "none"
  /\ MarkStart => pmark[k] <= l
  /\ ~Fenced(l, k)
  /\ IF t \in Big THEN v = "short" ELSE v \in Views
  /\ pst' = [pst EXCEPT ![l, k] = "writing"]
  /\ pview' = [pview EXCEPT ![l, k] = v]
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pmark, pfenced, srcV, postV, ans, acc, wireV, memV, spent>>

TakeSource(l, k, q) ==                        \* a source page is handed out; the old bytes are still in it
  /\ pst[l, k] = "writing"
  /\ pview[l, k] # "short"
  /\ sown[k, q] = 0
  /\ sown' = [sown EXCEPT ![k, q] = l]
  /\ sst' = [sst EXCEPT ![k, q] = "raw"]
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, sdat, postV, ans, acc, wireV, memV, spent>>

Compute(l, k, q) ==
  /\ sown[k, q] = l
  /\ sst[k, q] = "raw"
  /\ sdat' = [sdat EXCEPT ![k, q] = IF pview[l, k] = "same" THEN l ELSE 0]
  /\ sst' = [sst EXCEPT ![k, q] = "computed"]
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, sown, postV, ans, acc, wireV, memV, spent>>

Seal(l, k, q) ==                              \* the stream's event: computation is finished
  /\ sown[k, q] = l
  /\ sst[k, q] = "computed"
  /\ sst' = [sst EXCEPT ![k, q] = "sealed"]
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, sown, sdat, postV, ans, acc, wireV, memV, spent>>

GiveBack(l, k, q) ==
  /\ sown[k, q] = l
  /\ SrcHold => \A x \in Lease : \A p \in Page : \A c \in Chan :
       ~(<<x, k, p, c, pinc[k]>> \in queued /\ src[x, k, p, c] = q)
  /\ sown' = [sown EXCEPT ![k, q] = 0]
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, sdat, sst, postV, ans, acc, wireV, memV, spent>>

Post(l, k, p, c, q) ==
  /\ pst[l, k] = "writing"
  /\ sown[k, q] = l
  /\ SealedOnly => sst[k, q] = "sealed"
  /\ Owed(l, k, p) \/ (~OneWriter /\ p \in Aux /\ gpage[l, p] # 0)
  /\ <<l, k, c, pinc[k]>> \notin nsent
  /\ <<l, k, p, c, pinc[k]>> \notin sent
  /\ \A d \in Chan : <<l, k, p, d, pinc[k]>> \in sent => (~RetryDrained /\ <<l, k, p, d, pinc[k]>> \in lost)
  /\ src' = [src EXCEPT ![l, k, p, c] = q]
  /\ sent' = sent \cup {<<l, k, p, c, pinc[k]>>}
  /\ queued' = queued \cup {<<l, k, p, c, pinc[k]>>}
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, lost, nsent, ans, acc, flying, placing, unseen, pay, memV, spent>>

Notice(l, k, c) ==                            \* behind everything of the lease on channel c
  /\ pst[l, k] \in {"writing", "closing"}
  /\ pst[l, k] = "writing" => Posted(l, k)
  /\ \E p \in Page : <<l, k, p, c, pinc[k]>> \in sent
  /\ <<l, k, c, pinc[k]>> \notin nsent
  /\ nsent' = nsent \cup {<<l, k, c, pinc[k]>>}
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, sent, lost, src, ans, acc, wireV, memV, spent>>

Complete(l, k) ==
  /\ pst[l, k] = "writing"
  /\ CoverAll => (pview[l, k] = "short" \/ Posted(l, k))
  /\ AckDrained => PrefillHalf(l, k)
  /\ ~Fenced(l, k)
  /\ pst' = [pst EXCEPT ![l, k] = "closed"]
  /\ ans' = ans \cup {<<IF pview[l, k] = "same" THEN "complete" ELSE "misnamed", l, k, pinc[k]>>}
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pview, pmark, pfenced, srcV, postV, acc, wireV, memV, spent>>

Break(l, k) ==                                \* prefill's own failure: stop posting
  /\ Breaking
  /\ pst[l, k] = "writing"
  /\ pst' = [pst EXCEPT ![l, k] = "closing"]
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pview, pmark, pfenced, srcV, postV, ans, acc, wireV, memV, spent>>

RecvAbort(l, k) ==                            \* stop posting; also for a lease not seen yet
  /\ Hears(l, k)
  /\ Aborted(l)
  /\ pst[l, k] \in {"none", "writing"}
  /\ pst[l, k] = "none" => pmark[k] <= l
  /\ pst' = [pst EXCEPT ![l, k] = "closing"]
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pview, pmark, pfenced, srcV, postV, ans, acc, wireV, memV, spent>>

AbortAck(l, k) ==
  /\ pst[l, k] = "closing"
  /\ Aborted(l)
  /\ AckDrained => PrefillHalf(l, k)
  /\ ~Fenced(l, k)
  /\ pst' = [pst EXCEPT ![l, k] = "closed"]
  /\ ans' = ans \cup {<<"ack", l, k, pinc[k]>>}
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pview, pmark, pfenced, srcV, postV, acc, wireV, memV, spent>>

Failed(l, k) ==
  /\ pst[l, k] = "closing"
  /\ AckDrained => PrefillHalf(l, k)
  /\ ~Fenced(l, k)
  /\ pst' = [pst EXCEPT ![l, k] = "closed"]
  /\ ans' = ans \cup {<<"failed", l, k, pinc[k]>>}
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pview, pmark, pfenced, srcV, postV, acc, wireV, memV, spent>>

Gone(l, k) ==                                 \* asked about a lease below the mark that it does not hold
  /\ Hears(l, k)
  /\ pst[l, k] = "none"
  /\ l < pmark[k]
  /\ ~Fenced(l, k)
  /\ ans' = ans \cup {<<"gone", l, k, pinc[k]>>}
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, postV, acc, wireV, memV, spent>>

Forget(l, k) ==
  /\ pst[l, k] = "closed"
  /\ MarkForget => l < pmark[k]
  /\ pst' = [pst EXCEPT ![l, k] = "none"]
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pview, pmark, pfenced, srcV, postV, ans, acc, wireV, memV, spent>>

(* Prefill's own fence: its sending streams have ended, nothing of that epoch *)
(* is read here any more; what flies may still land.  No receipt after it.    *)
PrefillFence(k, d, e) ==
  /\ PFencing
  /\ <<k, d, e>> \notin pfenced
  /\ d < dinc \/ (d = dinc /\ e <= ep[k])
  /\ pfenced' = pfenced \cup {<<k, d, e>>}
  /\ queued' = {<<l, r, p, c, i>> \in queued : ~(r = k /\ dof[l] = d /\ gep[l, r] = e)}
  /\ pst' = [l \in Lease, r \in Rank |->
       IF r = k /\ dof[l] = d /\ gep[l, r] = e /\ pst[l, r] \in {"writing", "closing"} THEN "closed" ELSE pst[l, r]]
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pview, pmark, srcV, postV, ans, acc, flying, placing, unseen, pay, memV, spent>>

PrefillCrash(k) ==                            \* and restart; what flies or is being placed stays in flight
  /\ pinc[k] + 1 \in Inc
  /\ pinc' = [pinc EXCEPT ![k] = pinc[k] + 1]
  /\ pst' = [l \in Lease, r \in Rank |-> IF r = k THEN "none" ELSE pst[l, r]]
  /\ pmark' = [pmark EXCEPT ![k] = 0]
  /\ pfenced' = {<<r, d, e>> \in pfenced : r # k}
  /\ sown' = [r \in Rank, q \in SPage |-> IF r = k THEN 0 ELSE sown[r, q]]
  /\ queued' = {<<l, r, p, c, i>> \in queued : r # k}
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pview, sdat, sst, postV, ans, acc, flying, placing, unseen, pay, memV, spent>>

-----------------------------------------------------------------------------
(* The fabric, and what the protocol has it compare: the epoch and the decode *)
(* incarnation.                                                               *)

Launch(l, k, p, c, i, q) ==                   \* the source is read, late
  /\ src[l, k, p, c] = q
  /\ ReadSource(l, k, p, c, i, sdat[k, q])
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, sent, src, nsent, ans, acc>>

Check(l, k, p, c, i) ==
  /\ PlaceChecks => gep[l, k] = ep[k]
  /\ DecodeInc => dof[l] = dinc
  /\ Place(l, k, p, c, i)
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, sent, src, nsent, ans, acc>>

Drop(l, k, p, c, i) ==                        \* an old epoch or incarnation
  /\ ~Current(l, k)
  /\ Discard(l, k, p, c, i)
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, sent, src, nsent, ans, acc>>

Lose(l, k, p, c, i) ==
  /\ Losing
  /\ i = pinc[k]
  /\ ReportLost(l, k, p, c, i)
  /\ pst' = [pst EXCEPT ![l, k] = IF RetryDrained /\ pst[l, k] = "writing" THEN "closing" ELSE pst[l, k]]
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pview, pmark, pfenced, srcV, sent, src, nsent, ans, acc>>

Copy(l, k, p, c, i) ==
  /\ BeginCopy(l, k, p, c, i)
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, sent, src, nsent, ans, acc>>

Visible(l, k, p, c, i) ==
  /\ MakeVisible(l, k, p, c, i)
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, sent, src, nsent, ans, acc>>

(* The plants.                                                                *)
Stray(p, k, x) ==
  /\ own[p] # x
  /\ LandAstray(p, k, x)
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, sent, src, nsent, ans, acc>>

Torn(l, k, p, c, i) ==
  /\ LandTorn(l, k, p, c, i)
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, sent, src, nsent, ans, acc>>

Flip(l, k, p, c, i) ==
  /\ FlipBytes(l, k, p, c, i)
  /\ UNCHANGED <<leadV, pageV, leaseV, readV, linkV, markV, shareV, planV, pinc, pfV, srcV, sent, src, nsent, ans, acc>>

-----------------------------------------------------------------------------
DecodeLeaderNext == \E t \in Transfer :
  \/ Submit(t) \/ Refuse(t) \/ Ask(t) \/ RecvAsked(t) \/ Run(t) \/ Success(t)
  \/ \E c \in {"derived", "original"} : Failure(t, c) \/ \E r \in Transfer : Recause(t, r, c)
  \/ \E r \in Transfer : Answer(t, r) \/ \E u \in Transfer : Retry(t, u, r)

PrefillLeaderNext == \E t \in Transfer : RecvAsk(t)

DecodeRankNext ==
  \/ \E t \in Transfer : \E n \in Tenant : \E a \in Adapter : \E f \in Prefix : \E l \in Lease : \E S \in SUBSET Page :
        \E K \in SUBSET Rank : Grant(t, n, a, f, l, S, K)
  \/ \E l \in Lease : Abort(l) \/ Verify(l) \/ BadVerify(l) \/ Ready(l) \/ Release(l) \/ QuarantineEnd(l)
  \/ \E c \in Kind : \E x, l \in Lease : \E k \in Rank : \E i \in Inc :
        RecvComplete(c, x, l, k, i) \/ RecvReceipt(c, x, l, k, i)
  \/ \E c \in Kind : \E l \in Lease : \E k \in Rank : \E i \in Inc : Take(c, l, k, i)
  \/ \E l \in Lease : \E k \in Rank : GiveUp(l, k) \/ \E c \in Chan : \E i \in Inc : NoticeIn(l, k, c, i)
  \/ \E t \in Transfer : \E l, x \in Lease : \E p \in Page : Read(t, l, p, x)
  \/ \E l, x \in Lease : \E p \in Page : BadRead(l, p, x) \/ \E g \in Gen : ReadEnd(l, p, g, x) \/ Share(l, p, g, x)
  \/ \E l \in Lease : \E p \in Page : Append(l, p) \/ Publish(l, p) \/ \E x \in Lease : Grow(l, x, p)
  \/ \E p \in Page : \E g \in Gen : \E x \in Lease : Unpublish(p, g, x)
  \/ \E k \in Rank : Fence(k) \/ FenceEnd(k) \/ \E m \in Nat : RaiseMark(k, m)
  \/ \E k \in Rank : \E i \in Inc : \E d \in DInc : \E e \in Epoch : Connect(k, i, d, e)
  \/ DecodeCrash

PrefillRankNext ==
  \/ \E k \in Rank : Accept(k) \/ PrefillCrash(k) \/ \E m \in Nat : RecvMark(k, m) \/ OwnMark(k, m)
  \/ \E k \in Rank : \E d \in DInc : \E e \in Epoch : PrefillFence(k, d, e)
  \/ \E t \in Transfer : \E l \in Lease : \E k \in Rank : \E v \in {"same", "short", "other"} : Start(t, l, k, v)
  \/ \E l \in Lease : \E k \in Rank : \E q \in SPage :
        \/ TakeSource(l, k, q) \/ Compute(l, k, q) \/ Seal(l, k, q) \/ GiveBack(l, k, q)
        \/ \E p \in Page : \E c \in Chan : Post(l, k, p, c, q)
  \/ \E l \in Lease : \E k \in Rank :
        \/ Complete(l, k) \/ Break(l, k) \/ RecvAbort(l, k) \/ AbortAck(l, k) \/ Failed(l, k) \/ Gone(l, k) \/ Forget(l, k)
        \/ \E c \in Chan : Notice(l, k, c)

FabricNext == \E l \in Lease : \E k \in Rank : \E p \in Page : \E c \in Chan : \E i \in Inc :
  \/ \E q \in SPage : Launch(l, k, p, c, i, q)
  \/ Check(l, k, p, c, i) \/ Drop(l, k, p, c, i) \/ Lose(l, k, p, c, i) \/ Copy(l, k, p, c, i) \/ Visible(l, k, p, c, i)

PlantNext ==
  \/ \E p \in Page : \E k \in Rank : \E x \in Lease0 : Stray(p, k, x)
  \/ \E l \in Lease : \E k \in Rank : \E p \in Page : \E c \in Chan : \E i \in Inc : Torn(l, k, p, c, i) \/ Flip(l, k, p, c, i)

Next == DecodeLeaderNext \/ PrefillLeaderNext \/ DecodeRankNext \/ PrefillRankNext \/ FabricNext \/ PlantNext

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* The properties, by number of the design page.  I1 is TypeOK.               *)

MayLand(l, k, p, c, i) ==                     \* no fence stands between it and the page
  Lands(l, k, p, c, i) \/ ((<<l, k, p, c, i>> \in queued \/ <<l, k, p, c, i>> \in flying) /\ Current(l, k))

(* I2, decode's writes and kernels, prefill's sources.                        *)
NoReuseWhileInFlight == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc :
  MayLand(l, k, p, c, i) => (own[p] = l /\ gen[p] = gpage[l, p])
NoReuseUnderKernel == \A l, x \in Lease : \A p \in Page : \A g \in Gen :
  <<l, p, g, x>> \in krn => ((own[p] = l \/ <<l, p, x>> \in shr) /\ gen[p] = g)
NoSourceReuse == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc : \A q \in SPage :
  (<<l, k, p, c, i>> \in queued /\ src[l, k, p, c] = q) => sown[k, q] = l

(* I3: what a kernel reads, and what a token was made of.                     *)
NoForeignRead == \A l, x \in Lease : \A p \in Page : \A g \in Gen : \A k \in Rank :
  (<<l, p, g, x>> \in krn /\ Owed(x, k, p)) => (mem[p, k] = x /\ Alike(l, x) /\ gpage[x, p] = g)
NoForeignAnswer == \A l, x \in Lease : \A m \in Lease0 : <<l, x, m>> \in tok => (m = x /\ Alike(l, x))

(* I3: the prefix that it may share: its own domain's, still in that generation. *)
SharesOwn == \A l, x \in Lease : \A p \in Page :
  <<l, p, x>> \in shr => (Alike(l, x) /\ gpage[x, p] = gen[p] /\ dof[x] = dinc)

(* I4 *)
Coverage == \A l \in Lease : \A k \in Rank : \A p \in Page :
  (dst[l] = "ready" /\ Owed(l, k, p)) => (got[l, k] /\ mem[p, k] = l /\ <<"complete", l, k, ginc[l, k]>> \in ans)

(* I4: what is read has a rank that owed it, or decode filled it.             *)
ReadsCovered == \A l, x \in Lease : \A p \in Page : \A g \in Gen :
  <<l, p, g, x>> \in krn => (app[p] \/ \E k \in Rank : Owed(x, k, p))

(* I5 *)
NoEarlyRead == \A l, x, y \in Lease : \A p \in Page : \A g \in Gen : \A k \in Rank : \A c \in Chan : \A i \in Inc :
  <<l, p, g, x>> \in krn => ~MayLand(y, k, p, c, i)

(* I6 *)
SourceStable == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc : \A q \in SPage :
  (<<l, k, p, c, i>> \in queued /\ src[l, k, p, c] = q) => (sown[k, q] = l /\ sst[k, q] = "sealed")

(* I6, seen from the fabric: what is under way is what was computed for it.   *)
SendsOwnBytes == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc :
  (pview[l, k] = "same" /\ <<l, k, p, c, i>> \in flying) => pay[l, k, p, c] = l

(* I7: while its fence has not returned, an older write may still be placed.  *)
Granted == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc :
  Lands(l, k, p, c, i) => (own[p] = l /\ gen[p] = gpage[l, p] /\ dof[l] = dinc /\ (gep[l, k] = ep[k] \/ fencing[k]))

(* I8 *)
RejectLeavesNothing == \A t \in Transfer : \A l \in Lease : lead[t] = "refused" => tof[l] # t

(* I12 *)
NoFalseSuccess == \A t \in Transfer : \A l \in Lease : \A k \in Rank :
  (lead[t] = "ok" /\ tof[l] = t /\ owes[l, k]) => (got[l, k] /\ <<"complete", l, k, ginc[l, k]>> \in ans)
NoFalseAnswer == \A t, r \in Transfer :
  (http[r] = "200" /\ root[t] = r /\ succ[t] = 0) => (lead[t] = "ok" /\ t \notin Big)
AnswerOfLast == \A t, r \in Transfer :
  (http[r] # "none" /\ root[t] = r /\ succ[t] = 0) => lead[t] \in {"ok", "failed", "refused"}

(* A request has one transfer at a time.                                      *)
OneAttempt == \A t \in Transfer : \A l \in Lease : (tof[l] = t /\ succ[t] # 0) => ~Live(l)

(* I13 *)
OneWriterEach == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc :
  (<<l, k, p, c, i>> \in sent /\ p \in Aux) => k = AuxWriter

(* I14, its part of states: both ends of an open link speak of one connect.   *)
LinkFresh == \A k \in Rank : up[k] => <<k, linc[k], dinc, ep[k]>> \in acc

(* I15 *)
TagsAgree == \A l, x \in Lease : \A p \in Page : \A g \in Gen : \A k \in Rank :
  (<<l, p, g, x>> \in krn /\ Owed(x, k, p)) => tagl[p, k] = x

(* I16 *)
FenceHolds == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc :
  (Lands(l, k, p, c, i) /\ ~fencing[k]) => Current(l, k)

(* I17: a page is free or with one live lease; own and sown are functions.    *)
Conservation == \A p \in Page : \A l \in Lease : own[p] = l => (Live(l) /\ gpage[l, p] = gen[p] /\ dof[l] = dinc)

(* I18 *)
TailSafe == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc :
  app[p] => ~MayLand(l, k, p, c, i)
NoSharedTail == \A l, x \in Lease : \A p \in Page : \A g \in Gen :
  (app[p] /\ gen[p] = g) => (<<p, g, x>> \notin pubs /\ <<l, p, x>> \notin shr)

(* Properties of steps (S).                                                   *)

(* I9: a hold that ends while no fence and no restart does, ends by a receipt;*)
(* then nothing is pending, and nothing is posted ever after.                 *)
AckMeansDrained == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc :
  /\ (hold[l, k] /\ ~hold'[l, k] /\ fencing' = fencing /\ dinc' = dinc) => ~Pending(l, k, p, c, i)
  /\ (owes[l, k] /\ ~hold[l, k] /\ Current(l, k) /\ <<l, k, p, c, i>> \notin sent) => <<l, k, p, c, i>> \notin sent'

(* I10 *)
HoldEndsByProof == \A l \in Lease : \A k \in Rank : (hold[l, k] /\ ~hold'[l, k]) =>
  \/ \E c \in Kind : <<c, l, k, ginc[l, k]>> \in rec
  \/ fencing[k] /\ ~fencing'[k] /\ gep[l, k] < ep[k] /\
       \A p \in Page : \A c \in Chan : \A i \in Inc : ~MayLand(l, k, p, c, i)
  \/ dinc' # dinc
PagesEndByProof == \A p \in Page : \A l \in Lease : (own[p] = l /\ own'[p] # l /\ dinc' = dinc) =>
  \A k \in Rank : ~hold[l, k]

(* I11 *)
FailedIsFinal == \A t \in Transfer :
  /\ lead[t] \in {"ok", "failed", "refused"} => lead'[t] = lead[t]
  /\ http[t] # "none" => http'[t] = http[t]

(* I12: the client's error is the first cause.                                *)
CauseSettles == \A t, r \in Transfer :
  (root[t] = r /\ (cause[t] = "original" \/ http[r] # "none")) => cause'[t] = cause[t]

(* I14, its part of steps: bytes of a page change by writes of its lease only.*)
Fresh == \A p \in Page : \A k \in Rank : \A l \in Lease :
  (own[p] = l /\ (mem'[p, k] # mem[p, k] \/ (tagl'[p, k] # tagl[p, k]))) =>
    \E c \in Chan : \E i \in Inc : Lands(l, k, p, c, i)

(* I15, at the start of a step.                                               *)
TagsAtStart == \A l, x \in Lease : \A p \in Page : \A g \in Gen :
  (<<l, p, g, x>> \in krn' /\ <<l, p, g, x>> \notin krn) => TagOk(p, x)

Steps == AckMeansDrained /\ HoldEndsByProof /\ PagesEndByProof /\ FailedIsFinal /\ CauseSettles /\ Fresh
StepsHold          == [][Steps]_vars
AckMeansDrainedS   == [][AckMeansDrained]_vars
ReleaseNeedsProofS == [][HoldEndsByProof /\ PagesEndByProof]_vars
FailedIsFinalS     == [][FailedIsFinal]_vars
CauseSettlesS      == [][CauseSettles]_vars
TagsAtStartS       == [][TagsAtStart]_vars
FreshS             == [][Fresh]_vars
=============================================================================
