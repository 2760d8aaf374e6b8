----------------------------- MODULE MCTransfer ------------------------------
(* Transfer.tla with bounds for TLC.  The bounds replace the number sets, so  *)
(* that the state graph is exact: no state is cut off by a constraint.        *)
EXTENDS Live, TransferIsolation, TLC
CONSTANTS NL, NE, NI, ND, NT, NQ   \* leases, epochs, prefill and decode restarts, transfers, source pages
MCLease    == 1..NL
MCEpoch    == 0..NE
MCInc      == 0..NI
MCDInc     == 0..ND
MCGen      == 0..NL
MCNat      == 0..(NL + 1)
MCTransfer == 1..NT
MCSPage    == 1..NQ
Sym == Permutations(Page) \cup Permutations(Rank) \cup Permutations(Chan)
SymPC == Permutations(Page) \cup Permutations(Chan)      \* where the ranks are not alike

(* Situations that must be reached: each of these is false somewhere, so that *)
(* TLC must find it violated.                                                 *)
NeverAnswered  == \A t \in Transfer : ~(http[t] = "200" /\ tok # {})
NeverRefused   == \A t \in Transfer : ~(lead[t] = "refused" /\ http[t] = "error")
NeverStale     == \A l, x \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc :
                    ~(<<l, k, p, c, i>> \in flying /\ own[p] = x /\ x # l)              \* an old write outlives its page's hand-out
NeverSlow      == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc :
                    ~(fencing[k] /\ Lands(l, k, p, c, i) /\ gep[l, k] < ep[k])            \* a fence waits for a placer
NeverLostLands == \A l \in Lease : \A k \in Rank : \A p \in Page : \A c \in Chan : \A i \in Inc :
                    ~(<<l, k, p, c, i>> \in lost /\ mem[p, k] = l)                       \* a write reported failed lands
NeverWaits     == \A l \in Lease : \A k \in Rank : \A i \in Inc :
                    ~(<<"ack", l, k, i>> \in rec /\ ~DecodeHalf("ack", l, k, i))          \* a receipt waits for decode's half
NeverGone      == \A l \in Lease : \A k \in Rank : \A i \in Inc :
                    ~(<<"gone", l, k, i>> \in ans /\ dst[l] = "failed")                  \* Gone ends a hold
NeverSecond    == \A l \in Lease : \A k \in Rank : ~(got[l, k] /\ ginc[l, k] = 1)        \* a restarted prefill completes
NeverNewPool   == \A l \in Lease : ~(dst[l] = "ready" /\ dof[l] = 1)                     \* a restarted decode is served
NeverRetried   == \A t, r \in Transfer : ~(root[t] = r /\ t # r /\ http[r] = "200")            \* the second attempt answers
NeverRecaused  == \A t, r \in Transfer : ~(root[t] = r /\ http[r] = "error" /\ cause[t] = "derived")  \* an error of a derived cause is told
NeverComponents == \A l \in Lease : \A p, q \in Page :
                    ~(dst[l] = "ready" /\ p \in State /\ q \notin State \cup Aux /\ own[p] = l /\ own[q] = l)   \* a lease of two components is ready
NeverSpoiled   == \A l, x \in Lease : ~(l # x /\ dst[l] = "bad" /\ dst[x] \in {"bad", "revoking"} /\ tof[l] # tof[x])  \* one bad page fails two requests
NeverShared    == \A l, x \in Lease : \A p \in Page : ~(<<l, p, x>> \in shr /\ dst[l] = "ready" /\ own[p] = 0)
NeverFound     == \A l \in Lease : dst[l] # "bad"                                        \* damage is found
NeverCured     == \A l \in Lease : \A k \in Rank : ~(dst[l] = "failed" /\ spent /\ got[l, k] /\ ep[k] > gep[l, k])
=============================================================================
