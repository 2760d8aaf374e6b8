----------------------------- MODULE MCIsolation -----------------------------
(* Isolation.tla by itself, for TLC: anything that one could do wrong is      *)
(* tried, one change at a time, and Step lets through what it allows.  So two *)
(* things show: good things are allowed (each Never.. below is false          *)
(* somewhere), and each line forbids something that no other line forbids     *)
(* (Without one line, that line is broken).                                   *)
EXTENDS Isolation, TLC
CONSTANTS Tenants, Fates, Causes, Without     \* Without: names of lines left out

Bytes == Claim \cup {Nothing}

Kept(name) == name \notin Without
StepWithout ==
  /\ (Kept("ReadsMine") => ReadsMine) /\ (Kept("ReadsKnown") => ReadsKnown) /\ (Kept("ReadsWhole") => ReadsWhole)
  /\ (Kept("SeenMine") => SeenMine) /\ (Kept("SeenKnown") => SeenKnown) /\ (Kept("GoodIsWhole") => GoodIsWhole)
  /\ (Kept("GoodIsSome") => GoodIsSome) /\ (Kept("RefusedNone") => RefusedNone) /\ (Kept("Told200") => Told200)
  /\ (Kept("ToldError") => ToldError) /\ (Kept("FateStays") => FateStays) /\ (Kept("ToldStays") => ToldStays)
  /\ (Kept("WhyStays") => WhyStays) /\ (Kept("ClaimStays") => ClaimStays) /\ (Kept("CameStays") => CameStays)
  /\ (Kept("SeenStays") => SeenStays) /\ (Kept("NextIfFailed") => NextIfFailed) /\ (Kept("RootIfNext") => RootIfNext)
  /\ (Kept("NoneAfter") => NoneAfter)

MCInit ==
  /\ root = [a \in Attempt |-> a]
  /\ next = [a \in Attempt |-> Nothing]
  /\ fate = [a \in Attempt |-> "open"]
  /\ of = [c \in Claim |-> Nothing]
  /\ domain = [c \in Claim |-> CHOOSE n \in Tenants : TRUE]
  /\ owed = {} /\ came = {} /\ reads = {} /\ seen = {}
  /\ told = [r \in Request |-> "none"]
  /\ why = [r \in Request |-> "none"]

ASSUME Request \subseteq Attempt              \* a request is named by its first attempt

(* What somebody might do, right or wrong.                                    *)
Makes    == \E c \in Claim : \E a \in Attempt \cup {Nothing} : \E n \in Tenants : \E S \in SUBSET Source :
              /\ of' = [of EXCEPT ![c] = a]
              /\ domain' = [domain EXCEPT ![c] = n]
              /\ owed' = {e \in owed : e[1] # c} \cup {<<c, s>> : s \in S}
              /\ UNCHANGED <<root, next, fate, came, reads, seen, told, why>>
Delivers == \E c \in Claim : \E s \in Source : \E W \in {came \cup {<<c, s>>}, came \ {<<c, s>>}} :
              /\ came' = W
              /\ UNCHANGED <<root, next, fate, of, domain, owed, reads, seen, told, why>>
Reads    == \E c \in Claim : \E d \in Bytes : \E R \in {reads \cup {<<c, d>>}, reads \ {<<c, d>>}} :
              /\ reads' = R
              /\ UNCHANGED <<root, next, fate, of, domain, owed, came, seen, told, why>>
Answers  == \E c \in Claim : \E d \in Bytes : \E R \in {seen \cup {<<c, d>>}, seen \ {<<c, d>>}} :
              /\ seen' = R
              /\ UNCHANGED <<root, next, fate, of, domain, owed, came, reads, told, why>>
Decides  == \E a \in Attempt : \E f \in Fates :
              /\ fate' = [fate EXCEPT ![a] = f]
              /\ UNCHANGED <<root, next, of, domain, owed, came, reads, seen, told, why>>
Retries  == \E a \in Attempt : \E b \in Attempt \cup {Nothing} : \E r \in Request : \E x \in BOOLEAN :
              /\ next' = [next EXCEPT ![a] = b]
              /\ root' = IF b \in Attempt /\ x THEN [root EXCEPT ![b] = r] ELSE root
              /\ UNCHANGED <<fate, of, domain, owed, came, reads, seen, told, why>>
Tells    == \E r \in Request : \E w \in {"none", "200", "error"} :
              /\ told' = [told EXCEPT ![r] = w]
              /\ UNCHANGED <<root, next, fate, of, domain, owed, came, reads, seen, why>>
Blames   == \E r \in Request : \E w \in Causes :
              /\ why' = [why EXCEPT ![r] = w]
              /\ UNCHANGED <<root, next, fate, of, domain, owed, came, reads, seen, told>>

Try    == Makes \/ Delivers \/ Reads \/ Answers \/ Decides \/ Retries \/ Tells \/ Blames
MCSpec == MCInit /\ [][Try /\ StepWithout]_vars

(* What the lines come to.                                                    *)
Domains   == \A c, d \in Claim : <<c, d>> \in seen => domain[c] = domain[d]
NoneBytes == \A c \in Claim : <<c, Nothing>> \notin seen
Last(a, r) == root[a] = r /\ next[a] = Nothing
Honest    == \A r \in Request : \A a, b \in Attempt :
               (told[r] = "200" /\ Last(a, r) /\ Last(b, r)) =>
                 /\ a = b /\ fate[a] = "good"
                 /\ \E c \in Claim : of[c] = a
                 /\ \A c \in Claim : \A s \in Source : (of[c] = a /\ <<c, s>> \in owed) => <<c, s>> \in came

(* Situations that are allowed, so reached: TLC must find each of these       *)
(* violated.                                                                  *)
NeverAnswered == \A r \in Request : \A c \in Claim : ~(told[r] = "200" /\ of[c] = r /\ <<c, c>> \in seen)
NeverShared   == \A c, d \in Claim : ~(c # d /\ of[c] # of[d] /\ of[d] # Nothing /\ <<c, d>> \in seen)     \* of a prefix of another request
NeverSecond   == \A r \in Request : \A a \in Attempt : ~(a # r /\ root[a] = r /\ told[r] = "200")          \* the second attempt answers
NeverError    == \A r \in Request : \A a \in Attempt : ~(a # r /\ root[a] = r /\ told[r] = "error" /\ why[r] = "derived")
NeverRefused  == \A r \in Request : ~(fate[r] = "refused" /\ told[r] = "error")

(* For the runs without a line.                                               *)
ReadsMineS == [][ReadsMine]_vars
ReadsKnownS == [][ReadsKnown]_vars
ReadsWholeS == [][ReadsWhole]_vars
SeenMineS == [][SeenMine]_vars
SeenKnownS == [][SeenKnown]_vars
GoodIsWholeS == [][GoodIsWhole]_vars
GoodIsSomeS == [][GoodIsSome]_vars
RefusedNoneS == [][RefusedNone]_vars
Told200S == [][Told200]_vars
ToldErrorS == [][ToldError]_vars
FateStaysS == [][FateStays]_vars
ToldStaysS == [][ToldStays]_vars
WhyStaysS == [][WhyStays]_vars
ClaimStaysS == [][ClaimStays]_vars
CameStaysS == [][CameStays]_vars
SeenStaysS == [][SeenStays]_vars
NextIfFailedS == [][NextIfFailed]_vars
RootIfNextS == [][RootIfNext]_vars
NoneAfterS == [][NoneAfter]_vars
IsolationSpec == Spec                         \* the whole of it, of the runs that leave nothing out
=============================================================================
