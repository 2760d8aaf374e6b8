---------------------------- MODULE TransferHeart ----------------------------
(* Transfer refines Heart: each step of the whole protocol is a step of its   *)
(* heart, or changes nothing that the heart sees.  Holds with every           *)
(* prevention guard on, without plants, sharing and growth; TLC checks it in  *)
(* the configurations named in manifest.json (proofs/coq/README.md).          *)
(*                                                                            *)
(* A write and its incarnation: only the granted incarnation posts, so the    *)
(* heart leaves it out.  A receipt that is not Complete is an "ack".          *)
(* "verified" is "filling" with all parts taken.                              *)
EXTENDS MCTransfer

NoInc4(W) == {<<w[1], w[2], w[3], w[4]>> : w \in W}
NoInc3(W) == {<<w[1], w[2], w[3]>> : w \in W}

H == INSTANCE Heart WITH
  Part    <- {<<k, p>> \in Rank \X Page : Has(k, p)},
  dst     <- [l \in Lease |-> IF dst[l] = "verified" THEN "filling" ELSE dst[l]],
  krn     <- {<<w[1], w[2]>> : w \in krn},
  nin     <- NoInc3(nin),
  nsent   <- NoInc3(nsent),
  ans     <- {<<IF w[1] = "complete" THEN "complete" ELSE "ack", w[2], w[3]>> : w \in ans},
  sent    <- NoInc4(sent),
  queued  <- NoInc4(queued),
  flying  <- NoInc4(flying),
  placing <- NoInc4(placing),
  unseen  <- NoInc4(unseen)

HeartSpec == H!Spec
=============================================================================
