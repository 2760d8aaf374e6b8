----------------------------- MODULE VerbsFence ------------------------------
(* The fence of decode's end over RDMA verbs, step by step: what Transfer has *)
(* as one step that begins and one that ends.  One lease of one link in one   *)
(* epoch, a queue pair on each rail, one write and its notice on each.        *)
(*                                                                            *)
(* What is assumed of the adapter and its library has names, A1 to A9, each a *)
(* constant; spec/verbs-fence.md says where each is tested.  What the engine  *)
(* does has names, too.  All on: nothing is found.  Each one off: something   *)
(* lands in a page that is another's.                                         *)
(*                                                                            *)
(* Abstracted: bytes, page numbers, sequence numbers (a queue pair on a used  *)
(* number may take an old packet), the source's end (its own fence is the     *)
(* same steps for reads), repeats within a connection (a write that is        *)
(* acknowledged twice lands once).                                            *)
(*                                                                            *)
(*   write:   none --Write--> flying --TakeIn--> placing --Land--> seen       *)
(*   rail:    no --Ask--> asked --See--> known --Marked--> marked --Free-->   *)
(*            freed --FlushRead--> read; all rails read: Fenced               *)

CONSTANTS
  Rail,
  Down,                       \* rails whose port goes down: no flush read goes out there
  Windows,                    \* a key for each lease; else one for the pool, in all epochs
  Rogue                       \* the peer writes again after it has said that it is done

(* Assumptions.                                                               *)
CONSTANTS
  A1,                         \* a queue pair in error takes no packet
  A2,                         \* a query says ERROR only when the move to error is over
  A3,                         \* a flushed marker is behind all receives and requests posted before it
  A4,                         \* a window that was invalidated with success, or freed, lets nothing in, and what it let in is over
  A5,                         \* a flush read comes back behind all that its adapter was placing
  A6,                         \* a notice completes behind the writes before it on its queue pair, which are visible then
  A7,                         \* the number of a queue pair that stands, in error too, is no other's
  A8,                         \* when the peer has said that its end is shut, no packet of it is under way
  A9                          \* a completion that the engine has seen is behind all that its adapter was placing

(* Guards: what the engine does.                                              *)
CONSTANTS
  ErrorFirst,                 \* the queue pair is put in error; else the fence ends the stream only
  SeeError,                   \* and is seen there
  AwaitMarker,                \* the marker is awaited
  OwnMarker,                  \* of each rail, not of any
  ReadFlush,                  \* the flush read is done
  KeepNumber,                 \* without windows the queue pair is kept until the peer's end is shut
  RevokeFirst,                \* windows are taken back before their pages are handed out
  VerifyLast,                 \* and before a lease is verified, which is when it is ready to be read
  SuccessOnly,                \* a flushed invalidate is no proof
  EachNotice                  \* each rail that carried a write has its notice, not one for all

ASSUME {Windows, Rogue, A1, A2, A3, A4, A5, A6, A7, A8, A9, ErrorFirst, SeeError, AwaitMarker,
        OwnMarker, ReadFlush, KeepNumber, RevokeFirst, VerifyLast, SuccessOnly, EachNotice} \subseteq BOOLEAN
ASSUME Down \subseteq Rail

VARIABLES
  wr,         \* the write of each rail
  nt,         \* its notice
  qp,         \* decode's queue pair: "rts", "moving" to error, "error", "gone"
  number,     \* its number: "mine", "free", "other" (of a later queue pair)
  rq,         \* a receive or request of it: "posted", "busy", "over"
  mk,         \* its marker: "posted", "flushed"
  key,        \* its window: "bound", "free"
  inv,        \* its invalidate: "none", "done", "flushed"
  step,       \* of the fence on each rail
  fenced,     \* said
  peer,       \* "writes", "done" (all receipts sent), "shut"
  ready,      \* the lease was verified
  out         \* the pages were handed out

vars == <<wr, nt, qp, number, rq, mk, key, inv, step, fenced, peer, ready, out>>

TypeOK ==
  /\ wr     \in [Rail -> {"none", "flying", "placing", "seen", "dead"}]
  /\ nt     \in [Rail -> {"none", "flying", "in"}]
  /\ qp     \in [Rail -> {"rts", "moving", "error", "gone"}]
  /\ number \in [Rail -> {"mine", "free", "other"}]
  /\ rq     \in [Rail -> {"posted", "busy", "over"}]
  /\ mk     \in [Rail -> {"posted", "flushed"}]
  /\ key    \in [Rail -> {"bound", "free"}]
  /\ inv    \in [Rail -> {"none", "done", "flushed"}]
  /\ step   \in [Rail -> {"no", "asked", "known", "marked", "freed", "read"}]
  /\ fenced \in BOOLEAN
  /\ peer   \in {"writes", "done", "shut"}
  /\ ready  \in BOOLEAN
  /\ out    \in BOOLEAN

Init ==
  /\ wr = [r \in Rail |-> "none"]
  /\ nt = [r \in Rail |-> "none"]
  /\ qp = [r \in Rail |-> "rts"]
  /\ number = [r \in Rail |-> "mine"]
  /\ rq = [r \in Rail |-> "posted"]
  /\ mk = [r \in Rail |-> "posted"]
  /\ key = [r \in Rail |-> "bound"]
  /\ inv = [r \in Rail |-> "none"]
  /\ step = [r \in Rail |-> "no"]
  /\ fenced = FALSE
  /\ peer = "writes"
  /\ ready = FALSE
  /\ out = FALSE

-----------------------------------------------------------------------------
(* The peer.                                                                  *)

Write(r) ==
  /\ \/ peer = "writes" /\ wr[r] = "none"
     \/ Rogue /\ peer = "done" /\ wr[r] # "flying" /\ wr[r] # "placing"
  /\ wr' = [wr EXCEPT ![r] = "flying"]
  /\ UNCHANGED <<nt, qp, number, rq, mk, key, inv, step, fenced, peer, ready, out>>

SendNotice(r) ==
  /\ peer = "writes"
  /\ wr[r] # "none"
  /\ nt[r] = "none"
  /\ nt' = [nt EXCEPT ![r] = "flying"]
  /\ UNCHANGED <<wr, qp, number, rq, mk, key, inv, step, fenced, peer, ready, out>>

SayDone ==                                    \* a receipt: it lists the rails that carried a write
  /\ peer = "writes"
  /\ \A r \in Rail : wr[r] # "none" => nt[r] # "none"
  /\ peer' = "done"
  /\ UNCHANGED <<wr, nt, qp, number, rq, mk, key, inv, step, fenced, ready, out>>

Shut ==                                       \* its queue pairs are in error and destroyed
  /\ peer # "shut"
  /\ peer' = "shut"
  /\ wr' = IF A8 THEN [r \in Rail |-> IF wr[r] = "flying" THEN "dead" ELSE wr[r]] ELSE wr
  /\ nt' = IF A8 THEN [r \in Rail |-> IF nt[r] = "flying" THEN "none" ELSE nt[r]] ELSE nt
  /\ UNCHANGED <<qp, number, rq, mk, key, inv, step, fenced, ready, out>>

-----------------------------------------------------------------------------
(* The adapter.                                                               *)

Opens(r) == Windows => (key[r] = "bound" \/ ~A4)
Takes(r) == \/ qp[r] \in {"rts", "moving"}
            \/ qp[r] = "error" /\ ~A1
            \/ number[r] = "other"

TakeIn(r) ==                                  \* a packet is accepted; its bytes are on their way to memory
  /\ wr[r] = "flying"
  /\ Takes(r)
  /\ Opens(r)
  /\ wr' = [wr EXCEPT ![r] = "placing"]
  /\ UNCHANGED <<nt, qp, number, rq, mk, key, inv, step, fenced, peer, ready, out>>

Breaks(r) ==                                  \* a packet without a right breaks the connection
  /\ wr[r] = "flying"
  /\ qp[r] = "rts"
  /\ ~Opens(r)
  /\ wr' = [wr EXCEPT ![r] = "dead"]
  /\ qp' = [qp EXCEPT ![r] = "moving"]
  /\ UNCHANGED <<nt, number, rq, mk, key, inv, step, fenced, peer, ready, out>>

Land(r) ==
  /\ wr[r] = "placing"
  /\ wr' = [wr EXCEPT ![r] = "seen"]
  /\ UNCHANGED <<nt, qp, number, rq, mk, key, inv, step, fenced, peer, ready, out>>

NoticeIn(r) ==                                \* into a receive; it is over when the engine is told
  /\ nt[r] = "flying"
  /\ qp[r] \in {"rts", "moving"}
  /\ rq[r] = "posted"
  /\ A6 => wr[r] = "seen"
  /\ nt' = [nt EXCEPT ![r] = "in"]
  /\ rq' = [rq EXCEPT ![r] = "busy"]
  /\ UNCHANGED <<wr, qp, number, mk, key, inv, step, fenced, peer, ready, out>>

RequestOver(r) ==
  /\ \/ rq[r] = "busy"
     \/ rq[r] = "posted" /\ qp[r] \in {"moving", "error"}
  /\ rq' = [rq EXCEPT ![r] = "over"]
  /\ UNCHANGED <<wr, nt, qp, number, mk, key, inv, step, fenced, peer, ready, out>>

Fails(r) ==                                   \* retries are spent: no more is known
  /\ qp[r] = "rts"
  /\ qp' = [qp EXCEPT ![r] = "moving"]
  /\ UNCHANGED <<wr, nt, number, rq, mk, key, inv, step, fenced, peer, ready, out>>

Moved(r) ==
  /\ qp[r] = "moving"
  /\ qp' = [qp EXCEPT ![r] = "error"]
  /\ UNCHANGED <<wr, nt, number, rq, mk, key, inv, step, fenced, peer, ready, out>>

FlushMarker(r) ==
  /\ mk[r] = "posted"
  /\ qp[r] \in {"moving", "error"}
  /\ A3 => rq[r] = "over"
  /\ mk' = [mk EXCEPT ![r] = "flushed"]
  /\ UNCHANGED <<wr, nt, qp, number, rq, key, inv, step, fenced, peer, ready, out>>

GiveNumber(r) ==                              \* another queue pair is made
  /\ \/ number[r] = "free"
     \/ ~A7 /\ number[r] = "mine"
  /\ number' = [number EXCEPT ![r] = "other"]
  /\ UNCHANGED <<wr, nt, qp, rq, mk, key, inv, step, fenced, peer, ready, out>>

-----------------------------------------------------------------------------
(* The engine: the end of a lease.                                            *)

Drained == peer = "done" /\
  LET used == {r \in Rail : nt[r] # "none"} IN
  IF EachNotice THEN \A r \in used : nt[r] = "in" ELSE used # {} => \E r \in used : nt[r] = "in"

Invalidate(r) ==                              \* flushed where the queue pair has failed
  /\ Windows
  /\ inv[r] = "none"
  /\ step[r] = "no"
  /\ \/ /\ qp[r] = "rts"
        /\ A4 => wr[r] # "placing"
        /\ key' = [key EXCEPT ![r] = "free"]
        /\ inv' = [inv EXCEPT ![r] = "done"]
     \/ /\ qp[r] \in {"moving", "error"}
        /\ inv' = [inv EXCEPT ![r] = "flushed"]
        /\ UNCHANGED key
  /\ UNCHANGED <<wr, nt, qp, number, rq, mk, step, fenced, peer, ready, out>>

Back(r) == inv[r] = "done" \/ (~SuccessOnly /\ inv[r] = "flushed")

Verify ==
  /\ ~ready
  /\ ~out
  /\ Drained
  /\ (Windows /\ VerifyLast) => (fenced \/ \A r \in Rail : Back(r))
  /\ ready' = TRUE
  /\ UNCHANGED <<wr, nt, qp, number, rq, mk, key, inv, step, fenced, peer, out>>

HandOut ==
  /\ ~out
  /\ \/ fenced
     \/ Drained /\ ((Windows /\ RevokeFirst) => \A r \in Rail : Back(r))
  /\ out' = TRUE
  /\ UNCHANGED <<wr, nt, qp, number, rq, mk, key, inv, step, fenced, peer, ready>>

-----------------------------------------------------------------------------
(* The engine: the fence.                                                     *)

Ask(r) ==
  /\ step[r] = "no"
  /\ step' = [step EXCEPT ![r] = "asked"]
  /\ qp' = IF ErrorFirst /\ qp[r] = "rts" THEN [qp EXCEPT ![r] = "moving"] ELSE qp
  /\ UNCHANGED <<wr, nt, number, rq, mk, key, inv, fenced, peer, ready, out>>

See(r) ==
  /\ step[r] = "asked"
  /\ (ErrorFirst /\ SeeError) => (qp[r] = "error" \/ (~A2 /\ qp[r] = "moving"))
  /\ step' = [step EXCEPT ![r] = "known"]
  /\ UNCHANGED <<wr, nt, qp, number, rq, mk, key, inv, fenced, peer, ready, out>>

Marked(r) ==
  /\ step[r] = "known"
  /\ (ErrorFirst /\ AwaitMarker) => \E x \in Rail : (OwnMarker => x = r) /\ mk[x] = "flushed"
  /\ step' = [step EXCEPT ![r] = "marked"]
  /\ UNCHANGED <<wr, nt, qp, number, rq, mk, key, inv, fenced, peer, ready, out>>

Destroy(r) == qp' = [qp EXCEPT ![r] = "gone"] /\ number' = [number EXCEPT ![r] = IF @ = "mine" THEN "free" ELSE @]

Free(r) ==                                    \* windows go with the queue pair; a pool's key cannot
  /\ step[r] = "marked"
  /\ step' = [step EXCEPT ![r] = "freed"]
  /\ IF Windows \/ ~KeepNumber THEN Destroy(r) ELSE UNCHANGED <<qp, number, ready>>
  /\ key' = IF Windows THEN [key EXCEPT ![r] = "free"] ELSE key
  /\ UNCHANGED <<wr, nt, rq, mk, inv, fenced, peer, ready, out>>

FlushRead(r) ==                               \* where no read goes out, the completions seen stand for it
  /\ step[r] = "freed"
  /\ IF r \in Down THEN (ErrorFirst /\ AwaitMarker /\ A9) => wr[r] # "placing" ELSE (ReadFlush /\ A5) => wr[r] # "placing"
  /\ step' = [step EXCEPT ![r] = "read"]
  /\ UNCHANGED <<wr, nt, qp, number, rq, mk, key, inv, fenced, peer, ready, out>>

Fenced ==
  /\ ~fenced
  /\ \A r \in Rail : step[r] = "read"
  /\ fenced' = TRUE
  /\ UNCHANGED <<wr, nt, qp, number, rq, mk, key, inv, step, peer, ready, out>>

FreeKept(r) ==                                \* the peer's end is shut
  /\ fenced
  /\ peer = "shut"
  /\ qp[r] # "gone"
  /\ Destroy(r)
  /\ UNCHANGED <<wr, nt, rq, mk, key, inv, step, fenced, peer, ready, out>>

Next ==
  \/ SayDone \/ Shut \/ Verify \/ HandOut \/ Fenced
  \/ \E r \in Rail :
       \/ Write(r) \/ SendNotice(r) \/ TakeIn(r) \/ Breaks(r) \/ Land(r) \/ NoticeIn(r) \/ RequestOver(r)
       \/ Fails(r) \/ Moved(r) \/ FlushMarker(r) \/ GiveNumber(r) \/ Invalidate(r)
       \/ Ask(r) \/ See(r) \/ Marked(r) \/ Free(r) \/ FlushRead(r) \/ FreeKept(r)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
FenceHolds == fenced => \A r \in Rail : wr[r] # "placing" /\ rq[r] # "busy"      \* I16: in progress or beginning
NoReuseWhileInFlight == out => \A r \in Rail : wr[r] # "placing"                 \* I2: also by the end of a lease
NoEarlyRead == (Drained /\ ~fenced) => \A r \in Rail : wr[r] \notin {"flying", "placing"}       \* I5

NothingBehindReady == (ready /\ Windows) => \A r \in Rail : wr[r] # "placing"    \* from ready on no remote write lands

(* Situations that are reached: TLC must find each of these violated.         *)
NeverFenced == ~fenced
NeverLateLanding == ~(\E r \in Rail : qp[r] = "error" /\ wr[r] = "placing")      \* it lands after the local error
NeverFreed == ~(fenced /\ out /\ \E r \in Rail : number[r] = "other" /\ nt[r] = "in")
NeverFlushedInvalidate == ~(\E r \in Rail : inv[r] = "flushed" /\ wr[r] = "placing")
NeverStopped == ~(Rogue /\ out /\ \E r \in Rail : wr[r] = "dead" /\ inv[r] = "done" /\ peer = "done")
=============================================================================
