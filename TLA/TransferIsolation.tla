-------------------------- MODULE TransferIsolation --------------------------
(* Transfer keeps the promise of Isolation: what each of its words means in   *)
(* the protocol.  TLC checks it in bounds (Promised), and it is proved for    *)
(* any size: each line of Isolation, for each action, is an obligation        *)
(* (proofs/README.md).                                                        *)
EXTENDS Transfer

Promise == INSTANCE Isolation WITH
  Request <- Transfer,                        \* a request is named by its first transfer
  Attempt <- Transfer,
  Claim   <- Lease,
  Source  <- Rank,
  Nothing <- 0,
  root    <- root,
  next    <- succ,
  fate    <- [t \in Transfer |->
               IF lead[t] = "ok" THEN "good" ELSE IF lead[t] \in {"failed", "refused"} THEN lead[t] ELSE "open"],
  of      <- tof,
  domain  <- [l \in Lease |-> <<ten[l], ada[l], pre[l]>>],
  owed    <- {<<l, k>> \in Lease \X Rank : owes[l, k]},
  \* decode took it as complete, and the incarnation that was granted did say so
  came    <- {<<l, k>> \in Lease \X Rank : got[l, k] /\ <<"complete", l, k, ginc[l, k]>> \in ans},
  \* the bytes that lie in a page while a kernel runs on it; of a page that decode filled by itself, none that came
  reads   <- {<<l, m>> \in Lease \X Lease0 : \E x \in Lease : \E p \in Page : \E g \in Gen : \E k \in Rank :
               <<l, p, g, x>> \in krn /\ Owed(x, k, p) /\ mem[p, k] = m},
  seen    <- {<<l, m>> \in Lease \X Lease0 : \E x \in Lease : <<l, x, m>> \in tok},
  told    <- http,
  why     <- cause                            \* the first transfer's

Promised == Promise!Spec
=============================================================================
