-------------------------------- MODULE Pull ---------------------------------
(* The pull direction (shared memory): the receiver copies from a read-only   *)
(* mapping of the source pool.  A sibling of Transfer.tla, which has what the *)
(* two directions share: asking, grants, verdicts, generations, marks, reads. *)
(*                                                                            *)
(* What is abstracted, and why that is sound                                  *)
(*  - One prefill rank, one decode node; each lease has one source page and   *)
(*    one destination page, one part.  Holds of different links are kept      *)
(*    apart in Transfer.tla already.                                          *)
(*  - A copy is three steps: it begins, the bytes are taken, and it is checked*)
(*    and its tag written.  Between any two of them anything may happen, so a *)
(*    reader that sleeps needs no step of its own.                            *)
(*  - Bytes are the lease that they were computed for, 0 for all others.      *)
(*  - Messages are monotone facts: Offer(l) is in the soup iff l in offered;  *)
(*    Read(l) iff l in said.  They may be lost, late and repeated.            *)
(*  - The source tag is one word beside the page: the lease, 0 for void.      *)
EXTENDS Naturals

CONSTANTS Page              \* destination pages

CONSTANTS                   \* what the surroundings may do
  Restarts                  \* the prefill process ends and a new one starts

(* Guards of this direction.                                                  *)
CONSTANTS
  ReaderHold,               \* prefill's hold ends by Read, by decode's mark, or by the end of the reader's process
  SourceCheck,              \* the source tag is compared after the copy
  EpochCheck,               \* ... and so is the epoch
  CopyHold,                 \* decode's hold is its own copy: no release while one runs
  ReadLast,                 \* Read is said when the last copy of the lease has stopped
  SealedOnly,               \* only sealed pages are offered
  VoidTags,                 \* a source page's tag is voided at hand-out
  FenceFails,               \* a fence fails every lease that its link still owes
  FenceWaits                \* ... and then waits for the copies of older epochs

Lease == Nat \ {0}
SPage == Nat \ {0}
Epoch == Nat
Inc   == Nat
Lease0 == Lease \cup {0}

ASSUME Restarts \in BOOLEAN
ASSUME {ReaderHold, SourceCheck, EpochCheck, CopyHold, ReadLast, SealedOnly, VoidTags, FenceFails, FenceWaits} \subseteq BOOLEAN

VARIABLES
  \* decode rank
  own,        \* destination page -> lease, 0: free
  dpage,      \* the grant: <<lease, page>>, written once
  dep,        \* lease -> epoch of its grant, written once
  dst,        \* lease -> state
  copying,    \* copies begun: <<lease, page>>
  taken,      \* copies whose bytes are in the page, not checked yet
  read,       \* leases that a step reads
  ep,         \* epoch of the link
  fencing,    \* a fence has begun and not returned
  nextL,      \* next lease number
  mark,       \* decode's mark: all leases below it have ended here
  said,       \* leases for which Read was said
  \* prefill rank
  pinc,       \* incarnation
  pof,        \* lease -> incarnation that works on it
  pst,        \* lease -> state
  spage,      \* lease -> its source page, written once for each incarnation (0: none)
  sown,       \* source page -> owner, 0: free
  sst,        \* source page -> "raw" or "sealed"
  sdat, stag, \* source page -> bytes, tag
  offered,    \* leases offered
  \* the destination pool
  mem, tagl   \* page -> bytes, tag

decodeV == <<own, dpage, dep, dst, read, nextL, mark, said>>
copyV   == <<copying, taken>>
linkV   == <<ep, fencing>>
prefV   == <<pinc, pof, pst, spage, offered>>
srcV    == <<sown, sst, sdat, stag>>
memV    == <<mem, tagl>>
vars    == <<decodeV, copyV, linkV, prefV, srcV, memV>>

TypeOK ==
  /\ own     \in [Page -> Lease0]
  /\ dpage   \in SUBSET (Lease \X Page)
  /\ dep     \in [Lease -> Epoch]
  /\ dst     \in [Lease -> {"new", "filling", "revoking", "ready", "failed", "done"}]
  /\ copying \in SUBSET (Lease \X Page)
  /\ taken   \in SUBSET (Lease \X Page)
  /\ read    \in SUBSET Lease
  /\ ep      \in Epoch
  /\ fencing \in BOOLEAN
  /\ nextL   \in Nat
  /\ mark    \in Nat
  /\ said    \in SUBSET Lease
  /\ pinc    \in Inc
  /\ pof     \in [Lease -> Inc]
  /\ pst     \in [Lease -> {"none", "working", "offered", "over"}]
  /\ spage   \in [Lease -> SPage \cup {0}]
  /\ sown    \in [SPage -> Lease0]
  /\ sst     \in [SPage -> {"raw", "sealed"}]
  /\ sdat    \in [SPage -> Lease0]
  /\ stag    \in [SPage -> Lease0]
  /\ offered \in SUBSET Lease
  /\ mem     \in [Page -> Lease0]
  /\ tagl    \in [Page -> Lease0]

Init ==
  /\ own = [p \in Page |-> 0]
  /\ dpage = {}
  /\ dep = [l \in Lease |-> 0]
  /\ dst = [l \in Lease |-> "new"]
  /\ copying = {}
  /\ taken = {}
  /\ read = {}
  /\ ep = 0
  /\ fencing = FALSE
  /\ nextL = 1
  /\ mark = 0
  /\ said = {}
  /\ pinc = 0
  /\ pof = [l \in Lease |-> 0]
  /\ pst = [l \in Lease |-> "none"]
  /\ spage = [l \in Lease |-> 0]
  /\ sown = [q \in SPage |-> 0]
  /\ sst = [q \in SPage |-> "raw"]
  /\ sdat = [q \in SPage |-> 0]
  /\ stag = [q \in SPage |-> 0]
  /\ offered = {}
  /\ mem = [p \in Page |-> 0]
  /\ tagl = [p \in Page |-> 0]

-----------------------------------------------------------------------------
(* Decode rank.                                                               *)

Grant(l, p) ==
  /\ l = nextL
  /\ l + 1 \in Nat
  /\ own[p] = 0
  /\ own' = [own EXCEPT ![p] = l]
  /\ dpage' = dpage \cup {<<l, p>>}
  /\ dep' = [dep EXCEPT ![l] = ep]
  /\ dst' = [dst EXCEPT ![l] = "filling"]
  /\ tagl' = [tagl EXCEPT ![p] = 0]
  /\ nextL' = l + 1
  /\ UNCHANGED <<read, mark, said, copyV, linkV, prefV, srcV, mem>>

Abort(l) ==                                   \* its own copies are all that decode waits for
  /\ dst[l] = "filling"
  /\ dst' = [dst EXCEPT ![l] = "revoking"]
  /\ UNCHANGED <<own, dpage, dep, read, nextL, mark, said, copyV, linkV, prefV, srcV, memV>>

PullBegin(l, p) ==                            \* the job is queued: the offer is believed until it is checked
  /\ l \in offered
  /\ <<l, p>> \in dpage
  /\ dst[l] = "filling"
  /\ dep[l] = ep
  /\ <<l, p>> \notin copying /\ <<l, p>> \notin taken
  /\ copying' = copying \cup {<<l, p>>}
  /\ UNCHANGED <<decodeV, taken, linkV, prefV, srcV, memV>>

PullCopy(l, p, q) ==                          \* the bytes are taken, whatever they are by now
  /\ <<l, p>> \in copying
  /\ spage[l] = q
  /\ copying' = copying \ {<<l, p>>}
  /\ taken' = taken \cup {<<l, p>>}
  /\ mem' = [mem EXCEPT ![p] = sdat[q]]
  /\ UNCHANGED <<decodeV, linkV, prefV, srcV, tagl>>

(* The copy ends: source tag and epoch are compared with the manifest and the *)
(* link.  Only then the destination tag is written and the lease is ready.    *)
Good(l, q) == (SourceCheck => stag[q] = l) /\ (EpochCheck => dep[l] = ep)

PullCheck(l, p, q) ==
  /\ <<l, p>> \in taken
  /\ spage[l] = q
  /\ taken' = taken \ {<<l, p>>}
  /\ IF Good(l, q)
     THEN /\ tagl' = [tagl EXCEPT ![p] = l]
          /\ dst' = [dst EXCEPT ![l] = IF dst[l] = "filling" THEN "ready" ELSE dst[l]]
     ELSE /\ UNCHANGED tagl
          /\ dst' = [dst EXCEPT ![l] = IF dst[l] = "filling" THEN "revoking" ELSE dst[l]]
  /\ UNCHANGED <<own, dpage, dep, read, nextL, mark, said, copying, linkV, prefV, srcV, mem>>

NoCopy(l) == \A p \in Page : <<l, p>> \notin copying /\ <<l, p>> \notin taken

SaidRead(l) ==                                \* and never a copy again
  /\ dst[l] \in {"revoking", "ready", "failed", "done"}
  /\ l \notin said
  /\ ReadLast => NoCopy(l)
  /\ said' = said \cup {l}
  /\ UNCHANGED <<own, dpage, dep, dst, read, nextL, mark, copyV, linkV, prefV, srcV, memV>>

RaiseMark(m) ==
  /\ mark < m
  /\ m <= nextL
  /\ \A l \in Lease : l < m => (dst[l] # "filling" /\ NoCopy(l))
  /\ mark' = m
  /\ UNCHANGED <<own, dpage, dep, dst, read, nextL, said, copyV, linkV, prefV, srcV, memV>>

Read(l) ==
  /\ dst[l] = "ready"
  /\ read' = read \cup {l}
  /\ UNCHANGED <<own, dpage, dep, dst, nextL, mark, said, copyV, linkV, prefV, srcV, memV>>

ReadEnd(l) ==
  /\ l \in read
  /\ read' = read \ {l}
  /\ UNCHANGED <<own, dpage, dep, dst, nextL, mark, said, copyV, linkV, prefV, srcV, memV>>

Release(l) ==
  /\ dst[l] \in {"revoking", "ready"}
  /\ l \notin read
  /\ CopyHold => NoCopy(l)
  /\ own' = [p \in Page |-> IF own[p] = l THEN 0 ELSE own[p]]
  /\ dst' = [dst EXCEPT ![l] = IF dst[l] = "ready" THEN "done" ELSE "failed"]
  /\ UNCHANGED <<dpage, dep, read, nextL, mark, said, copyV, linkV, prefV, srcV, memV>>

Fence ==                                      \* also the connect to a new prefill incarnation
  /\ ep + 1 \in Epoch
  /\ ep' = ep + 1
  /\ fencing' = TRUE
  /\ dst' = [l \in Lease |-> IF FenceFails /\ dst[l] = "filling" THEN "revoking" ELSE dst[l]]
  /\ UNCHANGED <<own, dpage, dep, read, nextL, mark, said, copyV, prefV, srcV, memV>>

FenceEnd ==
  /\ fencing
  /\ FenceWaits => \A l \in Lease : \A p \in Page :
       (<<l, p>> \in copying \/ <<l, p>> \in taken) => dep[l] = ep
  /\ fencing' = FALSE
  /\ UNCHANGED <<decodeV, copyV, ep, prefV, srcV, memV>>

-----------------------------------------------------------------------------
(* Prefill rank.                                                              *)

TakeSource(l, q) ==                           \* a page handed out: the old bytes are still in it
  /\ dst[l] # "new"
  /\ pst[l] = "none"
  /\ mark <= l
  /\ spage[l] = 0
  /\ sown[q] = 0
  /\ sown' = [sown EXCEPT ![q] = l]
  /\ sst' = [sst EXCEPT ![q] = "raw"]
  /\ stag' = [stag EXCEPT ![q] = IF VoidTags THEN 0 ELSE stag[q]]
  /\ spage' = [spage EXCEPT ![l] = q]
  /\ pst' = [pst EXCEPT ![l] = "working"]
  /\ pof' = [pof EXCEPT ![l] = pinc]
  /\ UNCHANGED <<decodeV, copyV, linkV, pinc, offered, sdat, memV>>

Compute(l, q) ==                              \* bytes come before the seal and its tag
  /\ sown[q] = l
  /\ pst[l] = "working"
  /\ sst[q] = "raw"
  /\ sdat' = [sdat EXCEPT ![q] = l]
  /\ UNCHANGED <<decodeV, copyV, linkV, prefV, sown, sst, stag, memV>>

Seal(l, q) ==
  /\ sown[q] = l
  /\ pst[l] = "working"
  /\ sst[q] = "raw"
  /\ sdat[q] = l
  /\ sst' = [sst EXCEPT ![q] = "sealed"]
  /\ stag' = [stag EXCEPT ![q] = l]
  /\ UNCHANGED <<decodeV, copyV, linkV, prefV, sown, sdat, memV>>

Offer(l, q) ==                                \* readable from now on; it ends no hold
  /\ pst[l] = "working"
  /\ sown[q] = l
  /\ SealedOnly => sst[q] = "sealed"
  /\ pst' = [pst EXCEPT ![l] = "offered"]
  /\ offered' = offered \cup {l}
  /\ UNCHANGED <<decodeV, copyV, linkV, pinc, pof, spage, srcV, memV>>

GiveBack(l, q) ==
  /\ sown[q] = l
  /\ l \in offered => (~ReaderHold \/ l \in said \/ l < mark)
  /\ sown' = [sown EXCEPT ![q] = 0]
  /\ pst' = [pst EXCEPT ![l] = "over"]
  /\ UNCHANGED <<decodeV, copyV, linkV, pinc, pof, spage, offered, sst, sdat, stag, memV>>

(* The process ends: a reader's mapping keeps the old memory as it was, which *)
(* nobody writes again; the new process has pages of its own.  In this module *)
(* a source page is a page of one incarnation, so the old ones just stay.     *)
PrefillCrash ==
  /\ Restarts
  /\ pinc + 1 \in Inc
  /\ pinc' = pinc + 1
  /\ pst' = [l \in Lease |-> IF pst[l] \in {"working", "offered"} THEN "over" ELSE pst[l]]
  /\ UNCHANGED <<decodeV, copyV, linkV, pof, spage, offered, srcV, memV>>

-----------------------------------------------------------------------------
DecodeNext ==
  \/ \E l \in Lease : Abort(l) \/ SaidRead(l) \/ Read(l) \/ ReadEnd(l) \/ Release(l)
  \/ \E l \in Lease : \E p \in Page : Grant(l, p) \/ PullBegin(l, p) \/ \E q \in SPage : PullCopy(l, p, q) \/ PullCheck(l, p, q)
  \/ Fence \/ FenceEnd \/ \E m \in Nat : RaiseMark(m)

PrefillNext ==
  \/ \E l \in Lease : \E q \in SPage : TakeSource(l, q) \/ Compute(l, q) \/ Seal(l, q) \/ Offer(l, q) \/ GiveBack(l, q)
  \/ PrefillCrash

Next == DecodeNext \/ PrefillNext

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* The properties, by number of the design page.                              *)

Running(l, p) == <<l, p>> \in copying \/ <<l, p>> \in taken

(* I2: a destination page under a copy stays with its lease.                  *)
NoReuseWhileInFlight == \A l \in Lease : \A p \in Page : Running(l, p) => own[p] = l

(* I3 *)
NoForeignRead == \A l \in Lease : \A p \in Page : (l \in read /\ <<l, p>> \in dpage) => mem[p] = l

(* I4 *)
Coverage == \A l \in Lease : \A p \in Page : (dst[l] = "ready" /\ <<l, p>> \in dpage) => (mem[p] = l /\ own[p] = l)

(* I5 *)
NoEarlyRead == \A l, x \in Lease : \A p \in Page : (l \in read /\ <<l, p>> \in dpage) => ~Running(x, p)

(* I6: what a running copy reads is sealed and still its lease's.             *)
SourceStable == \A l \in Lease : \A p \in Page : \A q \in SPage :
  (<<l, p>> \in copying /\ spage[l] = q) => (sown[q] = l /\ sst[q] = "sealed")

(* I7: a copy lands only inside its lease's grant, of an epoch that no fence has revoked. *)
Granted == \A l \in Lease : \A p \in Page : Running(l, p) => (<<l, p>> \in dpage /\ (dep[l] = ep \/ fencing))

(* I15 *)
TagsAgree == \A l \in Lease : \A p \in Page : (l \in read /\ <<l, p>> \in dpage) => tagl[p] = l

(* I16 *)
FenceHolds == \A l \in Lease : \A p \in Page : (Running(l, p) /\ ~fencing) => dep[l] = ep

(* I17 *)
Conservation == \A p \in Page : \A l \in Lease : own[p] = l => dst[l] \in {"filling", "revoking", "ready"}

(* I14, steps: a lease becomes ready in the epoch of its grant only.          *)
Fresh == \A l \in Lease : (dst[l] # "ready" /\ dst'[l] = "ready") => dep[l] = ep
FreshS == [][Fresh]_vars

(* I9 and I10, steps: a hold on an offered source page ends by Read or mark,  *)
(* and then no copy of it runs.                                               *)
SourceEndsByProof == \A l \in Lease : \A q \in SPage :
  (sown[q] = l /\ sown'[q] # l /\ l \in offered) => NoCopy(l)
SourceEndsByProofS == [][SourceEndsByProof]_vars

StepsHold == FreshS /\ SourceEndsByProofS
=============================================================================
