------------------------------ MODULE Isolation ------------------------------
(* The promise, and nothing else: what a request may ever read, and what its  *)
(* client may be told.  Pages, epochs, fences and messages are not here; they *)
(* are how Transfer.tla keeps it, and TransferIsolation.tla says which of its *)
(* variables mean the words below.                                            *)
(*                                                                            *)
(* A client's request is tried, and after a failure perhaps tried again: its  *)
(* attempts.  An attempt makes claims on memory that it will read; sources    *)
(* owe bytes to a claim.  Steps of the computation read bytes, and of what    *)
(* they read, answers are made.  Each line below says of any one step what it *)
(* must not do; whatever no line forbids, may happen.                         *)
CONSTANTS
  Request, Attempt, Claim, Source,
  Nothing      \* no attempt, no claim; a member of none of these

VARIABLES
  root, next,  \* attempt -> its request; the attempt that follows it, or Nothing
  fate,        \* attempt -> "open", "good", "failed" or "refused"
  of, domain,  \* claim -> its attempt, Nothing before it is made; what its bytes mean: tenant, adapter, text
  owed, came,  \* <<claim, source>>: the source owes bytes; it has delivered all of them
  reads,       \* <<c, d>>: a step for claim c reads, now, bytes that were written for claim d (Nothing: for none)
  seen,        \* <<c, d>>: an answer was made of such bytes
  told, why    \* request -> "none", "200" or "error"; the cause of an error: "none", "derived" or "original"

vars == <<root, next, fate, of, domain, owed, came, reads, seen, told, why>>

Init ==
  /\ \A a \in Attempt : fate[a] = "open" /\ next[a] = Nothing
  /\ \A c \in Claim : of[c] = Nothing /\ <<c, Nothing>> \notin reads /\ <<c, Nothing>> \notin seen
  /\ \A c, d \in Claim : <<c, d>> \notin reads /\ <<c, d>> \notin seen
  /\ \A r \in Request : told[r] = "none"

(* Isolation.  One reads one's own bytes, or those of a prefix that one may   *)
(* share: same tenant, same adapter, same text; and only when all are there.  *)
Mine(c, d) == d = c \/ domain[d] = domain[c]
ReadsMine  == \A c, d \in Claim : <<c, d>> \in reads' => Mine(c, d)'
ReadsKnown == \A c \in Claim : <<c, Nothing>> \notin reads'
ReadsWhole == \A c, d \in Claim : \A s \in Source : (<<c, d>> \in reads' /\ <<d, s>> \in owed') => <<d, s>> \in came'
SeenMine   == \A c, d \in Claim : <<c, d>> \in seen' => Mine(c, d)'
SeenKnown  == \A c \in Claim : <<c, Nothing>> \notin seen'

(* Honest answers.  Good is what got every byte that anyone owed it; the last *)
(* attempt speaks for the request, and nothing is taken back.                 *)
Speaks(a, r) == root[a] = r /\ next[a] = Nothing
GoodIsWhole  == \A a \in Attempt : \A c \in Claim : \A s \in Source :
                  (fate'[a] = "good" /\ of'[c] = a /\ <<c, s>> \in owed') => <<c, s>> \in came'
GoodIsSome   == \A a \in Attempt : (fate'[a] = "good" /\ fate[a] # "good") => \E c \in Claim : of'[c] = a
RefusedNone  == \A a \in Attempt : \A c \in Claim : fate'[a] = "refused" => of'[c] # a
Told200      == \A r \in Request : (told'[r] = "200" /\ told[r] # "200") =>
                  \E a \in Attempt : Speaks(a, r)' /\ fate[a] = "good"
ToldError    == \A r \in Request : (told'[r] = "error" /\ told[r] # "error") =>
                  why[r] # "none" /\ \E a \in Attempt : Speaks(a, r)' /\ fate[a] \in {"failed", "refused"}
FateStays    == \A a \in Attempt : fate[a] # "open" => fate'[a] = fate[a]
ToldStays    == \A r \in Request : told[r] # "none" => told'[r] = told[r]
WhyStays     == \A r \in Request : (told[r] # "none" \/ why[r] = "original") => why'[r] = why[r]

(* What is written is written: nobody makes a claim fit the bytes that came,  *)
(* or adds an attempt to a request that was answered.                         *)
ClaimStays   == \A c \in Claim : of[c] # Nothing =>
                  (of'[c] = of[c] /\ domain'[c] = domain[c] /\ \A s \in Source : <<c, s>> \in owed' <=> <<c, s>> \in owed)
CameStays    == \A c \in Claim : \A s \in Source : <<c, s>> \in came => <<c, s>> \in came'
SeenStays    == \A c, d \in Claim : <<c, d>> \in seen => <<c, d>> \in seen'
NextIfFailed == \A a \in Attempt : next'[a] # next[a] => (fate[a] = "failed" /\ next[a] = Nothing)
RootIfNext   == \A a \in Attempt : \A c \in Claim : root'[a] # root[a] =>
                  (fate[a] = "open" /\ of[c] # a /\ \E b \in Attempt : next'[b] = a /\ root[b] = root'[a])
NoneAfter    == \A r \in Request : \A a \in Attempt :
                  (told[r] # "none" /\ root'[a] = r) => (root[a] = r /\ next'[a] = next[a])

Step ==
  /\ ReadsMine /\ ReadsKnown /\ ReadsWhole /\ SeenMine /\ SeenKnown
  /\ GoodIsWhole /\ GoodIsSome /\ RefusedNone /\ Told200 /\ ToldError /\ FateStays /\ ToldStays /\ WhyStays
  /\ ClaimStays /\ CameStays /\ SeenStays /\ NextIfFailed /\ RootIfNext /\ NoneAfter

Spec == Init /\ [][Step]_vars
=============================================================================
