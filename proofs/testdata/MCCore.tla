---- MODULE MCCore ----
EXTENDS Core, TLC
CONSTANTS NL, NE, NI
MCLease == 1..NL
MCEpoch == 0..NE
MCInc == 0..NI
MCGen == 0..NL
MCNat == 0..(NL+1)
====
