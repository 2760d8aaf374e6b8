------------------------------- MODULE Count ---------------------------------
(* A counter up to Top: the smallest specification that the runner is tried on. *)
EXTENDS Naturals
CONSTANT Top
VARIABLE n
Init  == n = 0
Up    == n < Top /\ n' = n + 1
Spec  == Init /\ [][Up]_n
Fair  == Spec /\ WF_n(Up)
Ends  == <>(n = Top + 1)
Below == n < 3
Small == n <= Top
Rises == [][n' < 3]_n
=============================================================================
