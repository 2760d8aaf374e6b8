------------------------- MODULE MCTransferIsolation -------------------------
(* Transfer.tla with bounds for TLC, and that it keeps the promise: as a      *)
(* whole (Promised), and each line of Isolation by itself, so that a run with *)
(* a guard off says which line breaks.                                        *)
EXTENDS MCTransfer, TransferIsolation

KeepsReadsMine    == [][Promise!ReadsMine]_vars
KeepsReadsKnown   == [][Promise!ReadsKnown]_vars
KeepsReadsWhole   == [][Promise!ReadsWhole]_vars
KeepsSeenMine     == [][Promise!SeenMine]_vars
KeepsSeenKnown    == [][Promise!SeenKnown]_vars
KeepsGoodIsWhole  == [][Promise!GoodIsWhole]_vars
KeepsGoodIsSome   == [][Promise!GoodIsSome]_vars
KeepsRefusedNone  == [][Promise!RefusedNone]_vars
KeepsTold200      == [][Promise!Told200]_vars
KeepsToldError    == [][Promise!ToldError]_vars
KeepsFateStays    == [][Promise!FateStays]_vars
KeepsToldStays    == [][Promise!ToldStays]_vars
KeepsWhyStays     == [][Promise!WhyStays]_vars
KeepsClaimStays   == [][Promise!ClaimStays]_vars
KeepsCameStays    == [][Promise!CameStays]_vars
KeepsSeenStays    == [][Promise!SeenStays]_vars
KeepsNextIfFailed == [][Promise!NextIfFailed]_vars
KeepsRootIfNext   == [][Promise!RootIfNext]_vars
KeepsNoneAfter    == [][Promise!NoneAfter]_vars
=============================================================================
