--------------------------------- MODULE Ids ---------------------------------
(* The words that Network, Fabric, Sharing and Transfer have in common.  Sets *)
(* of numbers are unbounded; a configuration bounds them for TLC.             *)
EXTENDS Naturals

CONSTANTS
  Page, Rank, Chan            \* decode pages; prefill ranks = links; channels of a link

Lease    == Nat \ {0}
Epoch    == Nat
Inc      == Nat               \* of prefill ranks
DInc     == Nat               \* of the decode node
Gen      == Nat
Transfer == Nat \ {0}
SPage    == Nat \ {0}         \* source pages of a prefill rank

Lease0 == Lease \cup {0}
Write  == Lease \X Rank \X Page \X Chan \X Inc
Kind   == {"complete", "misnamed", "ack", "failed", "gone"}   \* "misnamed": a Complete for other parts or another prompt
=============================================================================
