--------------------------- MODULE TransferProof ---------------------------
EXTENDS Transfer
IndInv == NoForeignAnswer /\ Conservation
=============================================================================
