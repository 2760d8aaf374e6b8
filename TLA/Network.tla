------------------------------- MODULE Network -------------------------------
(* Messages between the leaders and ranks of both sides.                      *)
(*                                                                            *)
(* What the network may do: lose, delay, repeat, reorder, cut off for ever.   *)
(* A message is its id; its fields are write-once functions of that id; and   *)
(* "sent" is never taken back.  So all of that is there without a variable:   *)
(* what was sent may arrive at any moment, any number of times, or never.     *)
(*      Ask(t)       is sent  once lead[t] has passed "submitted"             *)
(*      Asked(t)     is sent  iff  pask[t]                                    *)
(*      Grant(l,k)   is sent  iff  owes[l,k]                                  *)
(*      Abort(l,k)   is sent  iff  owes[l,k] and l was revoked                *)
(*      Mark(k,m)    is sent  for every m up to dmark[k]                      *)
(*      receipts, notices and answers to connects are the sets below.         *)
(*                                                                            *)
(* What the network must not do is the guarantee: make messages up.  (Links   *)
(* are TLS with both ends' names checked; an end that lies is not the         *)
(* network's.)                                                                *)
EXTENDS Ids

CONSTANT
  Authentic                   \* guarantee: what arrives was sent

ASSUME Authentic \in BOOLEAN

VARIABLES
  ans,        \* receipts sent: <<kind, lease, rank, incarnation>>
  nsent,      \* notices sent: <<lease, rank, channel, incarnation>>
  acc         \* answers to connects: <<rank, incarnation, decode incarnation, epoch>>

NetworkType ==
  /\ ans     \in SUBSET (Kind \X Lease \X Rank \X Inc)
  /\ nsent   \in SUBSET (Lease \X Rank \X Chan \X Inc)
  /\ acc     \in SUBSET (Rank \X Inc \X DInc \X Epoch)

NetworkInit ==
  /\ ans = {}
  /\ nsent = {}
  /\ acc = {<<k, 0, 0, 0>> : k \in Rank}

Arrives(sent) == Authentic => sent
=============================================================================
