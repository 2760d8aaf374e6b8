------------------------------- MODULE MCHeart -------------------------------
(* Heart.tla with bounds for TLC: exact, no state is cut off.                 *)
EXTENDS Heart, TLC
CONSTANTS NL, NE, NI, ND     \* leases, epochs, prefill and decode restarts
MCLease == 1..NL
MCEpoch == 0..NE
MCInc   == 0..NI
MCDInc  == 0..ND
MCGen   == 0..NL
MCPart  == Rank \X Page
=============================================================================
