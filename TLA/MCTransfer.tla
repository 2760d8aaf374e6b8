----------------------------- MODULE MCTransfer ------------------------------
(* Transfer.tla with bounds for TLC.  The bounds replace the number sets, so  *)
(* that the state graph is exact: no state is cut off by a constraint.        *)
EXTENDS Transfer, TLC
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

Small == NL <= 1          \* used by no property; keeps the constants in view
=============================================================================
