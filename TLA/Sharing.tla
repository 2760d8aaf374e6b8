------------------------------- MODULE Sharing -------------------------------
(* Prefix pages that several leases read.  A full, verified page that prefill *)
(* filled may be published: sealed for good, known by what it holds.  Other   *)
(* leases take shares of it, also when its filler is long gone; the share is  *)
(* a hold, and the page is not handed out while it stands.                    *)
(*                                                                            *)
(* Who may share: a lease of the same tenant, the same adapter, and the same  *)
(* tokens from the first one on (the content id is over all three, beside the *)
(* model's revision, which is equal at a node).  And only the generation that *)
(* was published: a page handed out since is another page.                    *)
(*                                                                            *)
(* Copy on append: a page that is published or shared is never appended to,   *)
(* and a page that was appended to is never published.  Who wants to go on in *)
(* a shared page takes a page of its own (Grow) and copies; the copy is a     *)
(* local kernel like any other (Read, ReadEnd).                               *)
EXTENDS Ids

CONSTANTS
  Tenant, NoTenant,           \* No.. is a member of its set: the default of the type
  Adapter, NoAdapter,
  Prefix, NoPrefix            \* what the tokens up to the end of the page are

CONSTANTS                     \* guards
  SameTenant,                 \* share only inside a tenant
  SameAdapter,                \* ... and an adapter
  SameContent,                \* ... and only the same tokens
  GenCheck,                   \* a published page is known by its generation, too
  CopyFirst                   \* never append to a published page, nor publish an appended one

ASSUME NoTenant \in Tenant /\ NoAdapter \in Adapter /\ NoPrefix \in Prefix
ASSUME {SameTenant, SameAdapter, SameContent, GenCheck, CopyFirst} \subseteq BOOLEAN

VARIABLES
  ten, ada, pre,  \* lease -> tenant, adapter, prefix; written once, by its grant
  pubs,           \* published: <<page, generation, filler>>
  shr,            \* shares: <<lease, page, filler>>
  app             \* page -> decode appended to it, or filled it by itself

shareV == <<pubs, shr, app>>

SharingType ==
  /\ ten     \in [Lease -> Tenant]
  /\ ada     \in [Lease -> Adapter]
  /\ pre     \in [Lease -> Prefix]
  /\ pubs    \in SUBSET (Page \X Gen \X Lease)
  /\ shr     \in SUBSET (Lease \X Page \X Lease)
  /\ app     \in [Page -> BOOLEAN]

SharingInit ==
  /\ ten = [l \in Lease |-> NoTenant]
  /\ ada = [l \in Lease |-> NoAdapter]
  /\ pre = [l \in Lease |-> NoPrefix]
  /\ pubs = {}
  /\ shr = {}
  /\ app = [p \in Page |-> FALSE]

Alike(l, x) == ten[x] = ten[l] /\ ada[x] = ada[l] /\ pre[x] = pre[l]     \* l may read what was filled for x

Free(p) == \A l, x \in Lease : <<l, p, x>> \notin shr                    \* no share stands in the way of a hand-out

-----------------------------------------------------------------------------
(* The steps, as far as the variables of this module go; g is the page's      *)
(* present generation.                                                        *)

MarkAppended(l, p, g) ==
  /\ CopyFirst => (<<p, g, l>> \notin pubs /\ Free(p))      \* evicted is not enough: shares go on
  /\ app' = [app EXCEPT ![p] = TRUE]
  /\ UNCHANGED <<pubs, shr>>

AddPublished(l, p, g) ==
  /\ CopyFirst => ~app[p]
  /\ pubs' = pubs \cup {<<p, g, l>>}
  /\ UNCHANGED <<shr, app>>

Withdraw(p, g, x) ==                          \* evicted; shares that stand go on
  /\ <<p, g, x>> \in pubs
  /\ pubs' = pubs \ {<<p, g, x>>}
  /\ UNCHANGED <<shr, app>>

TakeShare(l, p, g, x, now) ==                 \* now: the page's present generation
  /\ x # l
  /\ <<p, g, x>> \in pubs
  /\ GenCheck => now = g
  /\ SameTenant => ten[x] = ten[l]
  /\ SameAdapter => ada[x] = ada[l]
  /\ SameContent => pre[x] = pre[l]
  /\ shr' = shr \cup {<<l, p, x>>}
  /\ UNCHANGED <<pubs, app>>
=============================================================================
