-------------------------------- MODULE Fabric -------------------------------
(* One-sided writes.  A write is <<lease, rank, page, channel, incarnation>>; *)
(* the generation and epoch in its header are those of its grant.  It is read *)
(* at its source late, lands late, in any order beside others, and is visible *)
(* later still:                                                               *)
(*                                                                            *)
(*   queued --ReadSource--> flying --Place--> placing --BeginCopy--> unseen   *)
(*                            |                                        |      *)
(*                            Discard                              MakeVisible*)
(*                                                                            *)
(* The fabric checks nothing but what Transfer hands it (the fence): never    *)
(* lease, generation or page.  Bytes are the lease that they were computed    *)
(* for, 0 for all others (a foreign prompt, garbage, bytes under way).        *)
(* Position in a page is not tracked: the parts of a page are its slots, one  *)
(* for each rank.                                                             *)
(*                                                                            *)
(* A write may be reported as failed at its source; that says nothing: it may *)
(* still be read, fly and land.                                               *)
EXTENDS Ids

CONSTANTS                     \* guarantees
  InOrder,                    \* a notice comes behind the writes of its channel
  FlushSeen                   \* a flush makes all that was placed visible

(* Broken guarantees, for which detection is there; at most one in a run.     *)
CONSTANTS
  PlantStray,                 \* a write lands in a page that is not its own, tag and all
  PlantTorn,                  \* a write lands as a tag without its bytes
  PlantFlip                   \* bytes change under way

ASSUME {InOrder, FlushSeen, PlantStray, PlantTorn, PlantFlip} \subseteq BOOLEAN

VARIABLES
  queued,     \* posted, source not read: pending at both ends
  flying,     \* source read, on its way
  placing,    \* checked, not copied
  unseen,     \* being copied, not visible
  lost,       \* reported as failed
  pay,        \* write (without incarnation) -> whose bytes it carries
  mem, tagl,  \* page, slot of rank -> bytes, lease in the tag (0: void)
  spent       \* a plant has happened

wireV == <<queued, flying, placing, unseen, pay>>
memV  == <<mem, tagl>>

FabricType ==
  /\ queued  \in SUBSET Write
  /\ flying  \in SUBSET Write
  /\ placing \in SUBSET Write
  /\ unseen  \in SUBSET Write
  /\ lost    \in SUBSET Write
  /\ pay     \in [Lease \X Rank \X Page \X Chan -> Lease0]
  /\ mem     \in [Page \X Rank -> Lease0]
  /\ tagl    \in [Page \X Rank -> Lease0]
  /\ spent   \in BOOLEAN

FabricInit ==
  /\ queued = {}
  /\ flying = {}
  /\ placing = {}
  /\ unseen = {}
  /\ lost = {}
  /\ pay = [l \in Lease, k \in Rank, p \in Page, c \in Chan |-> 0]
  /\ mem = [p \in Page, k \in Rank |-> 0]
  /\ tagl = [p \in Page, k \in Rank |-> 0]
  /\ spent = FALSE

(* What a notice on a channel waits for, and what a flush waits for.          *)
Behind(l, k, c, i) == InOrder =>
  \A p \in Page : <<l, k, p, c, i>> \notin queued /\ <<l, k, p, c, i>> \notin flying /\ <<l, k, p, c, i>> \notin placing
Flushed(l, k) == FlushSeen => \A p \in Page : \A c \in Chan : \A i \in Inc : <<l, k, p, c, i>> \notin unseen

(* Where a write is pending at the destination.                               *)
Pending(l, k, p, c, i) ==
  <<l, k, p, c, i>> \in queued \/ <<l, k, p, c, i>> \in flying \/ <<l, k, p, c, i>> \in placing \/ <<l, k, p, c, i>> \in unseen
Lands(l, k, p, c, i) == <<l, k, p, c, i>> \in placing \/ <<l, k, p, c, i>> \in unseen

-----------------------------------------------------------------------------
(* The steps, as far as the fabric's own variables go.                        *)

ReadSource(l, k, p, c, i, b) ==               \* the source is read: b is what stands there now
  /\ <<l, k, p, c, i>> \in queued
  /\ queued' = queued \ {<<l, k, p, c, i>>}
  /\ flying' = flying \cup {<<l, k, p, c, i>>}
  /\ pay' = [pay EXCEPT ![l, k, p, c] = b]
  /\ UNCHANGED <<placing, unseen, lost, memV, spent>>

Place(l, k, p, c, i) ==                       \* the placer has compared; it copies later
  /\ <<l, k, p, c, i>> \in flying
  /\ flying' = flying \ {<<l, k, p, c, i>>}
  /\ placing' = placing \cup {<<l, k, p, c, i>>}
  /\ UNCHANGED <<queued, unseen, pay, lost, memV, spent>>

Discard(l, k, p, c, i) ==                     \* dropped; the writer is not told
  /\ <<l, k, p, c, i>> \in flying
  /\ flying' = flying \ {<<l, k, p, c, i>>}
  /\ UNCHANGED <<queued, placing, unseen, pay, lost, memV, spent>>

ReportLost(l, k, p, c, i) ==                  \* reported as failed at its source; that ends nothing
  /\ <<l, k, p, c, i>> \in queued \/ <<l, k, p, c, i>> \in flying
  /\ <<l, k, p, c, i>> \notin lost
  /\ lost' = lost \cup {<<l, k, p, c, i>>}
  /\ UNCHANGED <<wireV, memV, spent>>

BeginCopy(l, k, p, c, i) ==                   \* bytes are under way: what is in the page now is nobody's
  /\ <<l, k, p, c, i>> \in placing
  /\ placing' = placing \ {<<l, k, p, c, i>>}
  /\ unseen' = unseen \cup {<<l, k, p, c, i>>}
  /\ mem' = [mem EXCEPT ![p, k] = 0]
  /\ UNCHANGED <<queued, flying, pay, tagl, lost, spent>>

MakeVisible(l, k, p, c, i) ==                 \* all bytes and then the tag are visible to every reader
  /\ <<l, k, p, c, i>> \in unseen
  /\ unseen' = unseen \ {<<l, k, p, c, i>>}
  /\ mem' = [mem EXCEPT ![p, k] = pay[l, k, p, c]]
  /\ tagl' = [tagl EXCEPT ![p, k] = l]
  /\ UNCHANGED <<queued, flying, placing, pay, lost, spent>>

(* The plants.                                                                *)
LandAstray(p, k, x) ==                        \* somebody else's write lands here, tag and all
  /\ PlantStray
  /\ ~spent
  /\ mem' = [mem EXCEPT ![p, k] = x]
  /\ tagl' = [tagl EXCEPT ![p, k] = x]
  /\ spent' = TRUE
  /\ UNCHANGED <<wireV, lost>>

LandTorn(l, k, p, c, i) ==                    \* the tag is there, the bytes are not
  /\ PlantTorn
  /\ ~spent
  /\ <<l, k, p, c, i>> \in unseen
  /\ unseen' = unseen \ {<<l, k, p, c, i>>}
  /\ tagl' = [tagl EXCEPT ![p, k] = l]
  /\ spent' = TRUE
  /\ UNCHANGED <<queued, flying, placing, pay, mem, lost>>

FlipBytes(l, k, p, c, i) ==
  /\ PlantFlip
  /\ ~spent
  /\ <<l, k, p, c, i>> \in flying
  /\ pay' = [pay EXCEPT ![l, k, p, c] = 0]
  /\ spent' = TRUE
  /\ UNCHANGED <<queued, flying, placing, unseen, memV, lost>>
=============================================================================
