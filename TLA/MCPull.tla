------------------------------- MODULE MCPull --------------------------------
(* Pull.tla with bounds for TLC.                                              *)
EXTENDS Pull, TLC
CONSTANTS NL, NE, NI, NQ     \* leases, epochs, prefill restarts, source pages
MCLease == 1..NL
MCEpoch == 0..NE
MCInc   == 0..NI
MCNat   == 0..(NL + 1)
MCSPage == 1..NQ
Sym == Permutations(Page)
=============================================================================
