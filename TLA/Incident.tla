------------------------------ MODULE Incident -------------------------------
(* The fault that was disclosed on 2026-10-26, one step after another.        *)
(*                                                                            *)
(* A page serves request 1 of tenant n1 and is given back.  Request 2 of      *)
(* tenant n2 can never fit.  Nobody refuses it; inside prefill it becomes a   *)
(* placeholder of one token, for which a KV is made that nobody waits for;    *)
(* that is reported as complete; decode believes it, reads what stands in its *)
(* page, and the client gets a 200 made of tenant n1's bytes.                 *)
(*                                                                            *)
(* The script is Transfer's own actions in this order and no other.  With     *)
(* Admit and CompleteNames off it runs to its end and leaks; with either one  *)
(* on it stops where that guard stands, for good.                             *)
EXTENDS MCTransfer

VARIABLES step, now           \* of the script; what has just happened

CONSTANTS n1, n2, a1, f1, p1, k1, c1

At(n, what, A) == step = n /\ A /\ step' = n + 1 /\ now' = what

Request1 ==
  \/ At(0, "request 1 of tenant n1 arrives", Submit(1))
  \/ At(1, "decode asks prefill for it", Ask(1))
  \/ At(2, "prefill accepts", RecvAsk(1))
  \/ At(3, "decode hears that", RecvAsked(1))
  \/ At(4, "its page is granted", Grant(1, n1, a1, f1, 1, {p1}, {k1}))
  \/ At(5, "prefill starts", Start(1, 1, k1, "same"))
  \/ At(6, "prefill takes a source page", TakeSource(1, k1, 1))
  \/ At(7, "its KV is computed", Compute(1, k1, 1))
  \/ At(8, "and sealed", Seal(1, k1, 1))
  \/ At(9, "its write is posted", Post(1, k1, p1, c1, 1))
  \/ At(10, "the source is read", Launch(1, k1, p1, c1, 0, 1))
  \/ At(11, "the write is checked", Check(1, k1, p1, c1, 0))
  \/ At(12, "it is copied", Copy(1, k1, p1, c1, 0))
  \/ At(13, "it is visible", Visible(1, k1, p1, c1, 0))
  \/ At(14, "a notice follows it", Notice(1, k1, c1))
  \/ At(15, "prefill says complete", Complete(1, k1))
  \/ At(16, "the notice is in", NoticeIn(1, k1, c1, 0))
  \/ At(17, "complete is in", RecvComplete("complete", 1, 1, k1, 0))
  \/ At(18, "and taken", Take("complete", 1, k1, 0))
  \/ At(19, "the page is verified", Verify(1))
  \/ At(20, "the lease is ready", Ready(1))
  \/ At(21, "request 1 runs", Run(1))
  \/ At(22, "decode reads the page", Read(1, 1, p1, 1))
  \/ At(23, "a token of its own bytes", ReadEnd(1, p1, 1, 1))
  \/ At(24, "request 1 has succeeded", Success(1))
  \/ At(25, "200 for request 1", Answer(1, 1))
  \/ At(26, "its page is free; its bytes are still there", Release(1))

Request2 ==
  \/ At(27, "request 2 of tenant n2 arrives, longer than the pool", Submit(2))
  \/ At(28, "nobody refuses it: decode asks prefill", Ask(2))
  \/ At(29, "prefill accepts", RecvAsk(2))
  \/ At(30, "decode hears that", RecvAsked(2))
  \/ At(31, "the same page is granted", Grant(2, n2, a1, f1, 2, {p1}, {k1}))
  \/ At(32, "prefill rejects it inside and goes on with a placeholder of one token", Start(2, 2, k1, "short"))
  \/ At(33, "prefill says complete", Complete(2, k1))
  \/ At(34, "complete is in: one token, another prompt", RecvComplete("misnamed", 2, 2, k1, 0))
  \/ At(35, "nobody compares: it is believed", Take("complete", 2, k1, 0))
  \/ At(36, "nobody looks at the page: verified", Verify(2))
  \/ At(37, "the lease is ready", Ready(2))
  \/ At(38, "request 2 runs", Run(2))
  \/ At(39, "decode reads what stands in the page", Read(2, 2, p1, 2))
  \/ At(40, "a token of tenant n1's bytes", ReadEnd(2, p1, 2, 2))
  \/ At(41, "request 2 has succeeded", Success(2))
  \/ At(42, "200 for request 2", Answer(2, 2))

(* Where the guards stand: the refusal in place of the ask, and the end of a  *)
(* lease whose Complete names another prompt.                                 *)
Stay(n, what, A) == step = n /\ A /\ UNCHANGED step /\ now' = what
Stopped ==
  \/ Admit /\ Stay(28, "it can never fit: refused", Refuse(2))
  \/ Admit /\ Stay(28, "400 for request 2", Answer(2, 2))
  \/ CompleteNames /\ Stay(35, "another prompt's Complete ends the lease", Take("misnamed", 2, k1, 0))
  \/ CompleteNames /\ Stay(35, "its page is free", Release(2))
  \/ CompleteNames /\ Stay(35, "the transfer has failed", Failure(2, "original"))
  \/ CompleteNames /\ Stay(35, "an error for request 2", Answer(2, 2))

IncidentInit == Init /\ step = 0 /\ now = "nothing yet"
IncidentSpec == IncidentInit /\ [][Request1 \/ Request2 \/ Stopped]_<<vars, step, now>>

(* The leak: a 200 for request 2, made of bytes of request 1.                 *)
NoLeak == ~(http[2] = "200" /\ <<2, 2, 1>> \in tok)

(* What the client gets instead; false where reached.                         *)
NeverRefusedInTime == ~(step = 28 /\ http[2] = "error" /\ lead[2] = "refused" /\ \A l \in Lease : tof[l] # 2)
NeverFailedInTime  == ~(step = 35 /\ http[2] = "error" /\ lead[2] = "failed" /\ dst[2] = "failed" /\ own[p1] = 0)
=============================================================================
