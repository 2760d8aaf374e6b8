(* What is proved of the heart of the push protocol.  Read it beside
   TLA/Heart.tla: same variables, same actions, one constructor each.

   Names (leases, pages, ranks, channels) are any types with decidable equality,
   finite or not; epochs, incarnations and generations are all of nat.
   A state gives each variable a value; s own is TLA's own, and
     s [own := f]       is own' = f and everything else UNCHANGED,
     x \in A, x \out A  is membership; A is a set, or a function to BOOLEAN,
     upd f x v, add A x, del A x  are EXCEPT, union and minus of one member,
     option Lease       is Lease0: None is 0. *)
Require Import Bool Arith.

Class Eq A := eqd : forall x y : A, {x = y} + {x <> y}.
#[export] Instance EqNat : Eq nat := Nat.eq_dec.
#[export] Instance EqBool : Eq bool := bool_dec.
#[export] Instance EqPair A B (_ : Eq A) (_ : Eq B) : Eq (A * B).
Proof. intros [a b] [x y]; destruct (eqd a x), (eqd b y); (left + right); congruence. Defined.

Definition upd {A B} {_ : Eq A} (f : A -> B) x v := fun y => if eqd y x then v else f y.
Notation add f x := (upd f x true).
Notation del f x := (upd f x false).
Notation "x \in f" := (f x = true) (at level 70, only parsing).
Notation "x \out f" := (f x = false) (at level 70, only parsing).

Inductive phase := new | filling | revoking | ready | failed | done | dead.
Inductive kind := complete | ack.
#[export] Instance EqPhase : Eq phase. Proof. unfold Eq; decide equality. Defined.
#[export] Instance EqKind : Eq kind. Proof. unfold Eq; decide equality. Defined.

Inductive action :=
| Grant | Abort | NoticeIn | Take | Ready | Read | ReadEnd | Release | Fence | FenceEnd | DecodeCrash
| Post | Notice | Complete | AbortAck | PrefillFence | PrefillCrash
| Launch | Check | Drop | Copy | Visible.

Inductive var :=
| own | gen | dst | hold | got | nin | krn | ep | fencing | dinc
| gpage | owes | gep | ginc | dof
| pinc | pfenced | sent | nsent | ans
| queued | flying | placing | unseen | pay | mem.
#[export] Instance EqVar : Eq var. Proof. unfold Eq; decide equality. Defined.

Section Heart.
Context {Lease Page Rank Chan : Type} {eqL : Eq Lease} {eqP : Eq Page} {eqR : Eq Rank} {eqC : Eq Chan}.
Variable Part : Rank * Page -> bool.

Definition ty (v : var) : Type :=
  match v with
  | own => Page -> option Lease
  | gen => Page -> nat
  | dst => Lease -> phase
  | hold | got | owes => Lease * Rank -> bool
  | nin | nsent => Lease * Rank * Chan -> bool
  | krn => Lease * Page -> bool
  | ep | pinc => Rank -> nat
  | fencing => Rank -> bool
  | dinc => nat
  | gpage => Lease * Page -> nat
  | gep | ginc => Lease * Rank -> nat
  | dof => Lease -> nat
  | pfenced => Rank * nat * nat -> bool
  | ans => kind * Lease * Rank -> bool
  | sent | queued | flying | placing | unseen => Lease * Rank * Page * Chan -> bool
  | pay => Lease * Rank * Page * Chan -> option Lease
  | mem => Page * Rank -> option Lease
  end.

Definition state := forall v, ty v.
Definition set (v : var) (x : ty v) (s : state) : state :=
  fun w => match eqd v w with left e => eq_rect v ty x w e | right _ => s w end.
Notation "s [ v := x ]" := (set v x s) (at level 8, left associativity, v at level 0, x at level 200).

Definition Init : state := fun v =>
  match v with
  | own => fun _ => None
  | dst => fun _ => new
  | gen => fun _ => 0
  | hold | got | owes => fun _ => false
  | nin | nsent => fun _ => false
  | krn => fun _ => false
  | ep | pinc => fun _ => 0
  | fencing => fun _ => false
  | dinc => 0
  | gpage => fun _ => 0
  | gep | ginc => fun _ => 0
  | dof => fun _ => 0
  | pfenced => fun _ => false
  | ans => fun _ => false
  | sent | queued | flying | placing | unseen => fun _ => false
  | pay => fun _ => None
  | mem => fun _ => None
  end.

Section Words.
Variable s : state.
Definition Owed l k p := (l, k) \in s owes /\ s gpage (l, p) <> 0 /\ (k, p) \in Part.
Definition Current l k := s gep (l, k) = s ep k /\ s dof l = s dinc.
Definition Live l := s dst l = filling \/ s dst l = revoking \/ s dst l = ready.
Definition Hears l k := (l, k) \in s owes /\ s ginc (l, k) = s pinc k.
Definition Fenced l k := (k, s dof l, s gep (l, k)) \in s pfenced.
Definition PrefillHalf l k := forall p c,
  (l, k, p, c) \in s sent -> (l, k, p, c) \out s queued /\ (l, k, c) \in s nsent.
Definition DecodeHalf l k :=
  (forall c, (l, k, c) \in s nsent -> (l, k, c) \in s nin) /\ forall p c, (l, k, p, c) \out s unseen.
Definition Lands l k p c := (l, k, p, c) \in s placing \/ (l, k, p, c) \in s unseen.
Definition MayLand l k p c :=
  Lands l k p c \/ ((l, k, p, c) \in s queued \/ (l, k, p, c) \in s flying) /\ Current l k.
End Words.

Inductive step (s : state) : action -> state -> Prop :=
(* decode *)
| step_Grant l (S : Page -> bool) (K : Rank -> bool) (I : Rank -> nat) :
    s dst l = new ->
    (forall p, p \in S -> s own p = None) ->
    (forall p, p \in S -> exists k, k \in K /\ (k, p) \in Part) ->
    (forall k, I k <= s pinc k) ->
    step s Grant (s
      [own := fun p => if S p then Some l else s own p]
      [gen := fun p => if S p then s gen p + 1 else s gen p]
      [gpage := fun '(x, p) => if eqd x l then (if S p then s gen p + 1 else s gpage (x, p)) else s gpage (x, p)]
      [owes := fun '(x, k) => if eqd x l then K k else s owes (x, k)]
      [hold := fun '(x, k) => if eqd x l then K k else s hold (x, k)]
      [gep := fun '(x, k) => if eqd x l then s ep k else s gep (x, k)]
      [ginc := fun '(x, k) => if eqd x l then I k else s ginc (x, k)]
      [dof := upd (s dof) l (s dinc)]
      [dst := upd (s dst) l filling])
| step_Abort l :
    s dst l = filling ->
    step s Abort (s [dst := upd (s dst) l revoking])
| step_NoticeIn l k c :
    (l, k, c) \in s nsent ->
    (l, k) \in s hold ->
    (forall p, (l, k, p, c) \out s queued /\ (l, k, p, c) \out s flying /\ (l, k, p, c) \out s placing) ->
    step s NoticeIn (s [nin := add (s nin) (l, k, c)])
| step_Take a l k :
    (a, l, k) \in s ans ->
    (l, k) \in s hold ->
    DecodeHalf s l k ->
    step s Take (s
      [hold := del (s hold) (l, k)]
      [got := upd (s got) (l, k) (if eqd a complete then (if eqd (s dst l) filling then true else false) else false)]
      [dst := upd (s dst) l (if eqd a ack then (if eqd (s dst l) filling then revoking else s dst l) else s dst l)])
| step_Ready l :
    s dst l = filling ->
    (forall k, (l, k) \in s owes -> (l, k) \in s got) ->
    step s Ready (s [dst := upd (s dst) l ready])
| step_Read l p :
    s dst l = ready ->
    s own p = Some l ->
    step s Read (s [krn := add (s krn) (l, p)])
| step_ReadEnd l p :
    (l, p) \in s krn ->
    step s ReadEnd (s [krn := del (s krn) (l, p)])
| step_Release l :
    s dst l = revoking \/ s dst l = ready ->
    (forall k, (l, k) \out s hold) ->
    (forall p, (l, p) \out s krn) ->
    step s Release (s
      [own := fun p => match s own p with Some x => if eqd x l then None else Some x | None => None end]
      [dst := upd (s dst) l (if eqd (s dst l) ready then done else failed)])
| step_Fence k :
    step s Fence (s
      [ep := upd (s ep) k (s ep k + 1)]
      [fencing := add (s fencing) k]
      [dst := fun l => if s hold (l, k) then (if eqd (s dst l) filling then revoking else s dst l) else s dst l])
| step_FenceEnd k :
    k \in s fencing ->
    (forall l p c, (l, k, p, c) \in s placing \/ (l, k, p, c) \in s unseen -> Current s l k) ->
    step s FenceEnd (s
      [fencing := del (s fencing) k]
      [hold := fun '(l, r) =>
         if eqd (r, s dst l, s gep (l, r) <? s ep r) (k, revoking, true) then false else s hold (l, r)])
| step_DecodeCrash :
    step s DecodeCrash (s
      [dinc := s dinc + 1]
      [own := fun _ => None]
      [gen := fun _ => 0]
      [dst := fun l => match s dst l with filling | revoking | ready => dead | d => d end]
      [hold := fun _ => false]
      [nin := fun _ => false]
      [krn := fun _ => false]
      [ep := fun _ => 0]
      [fencing := fun _ => false]
      [placing := fun _ => false]
      [unseen := fun _ => false])
(* prefill *)
| step_Post l k p c :
    Hears s l k ->
    Owed s l k p ->
    (forall a, (a, l, k) \out s ans) ->
    (l, k, c) \out s nsent ->
    (forall d, (l, k, p, d) \out s sent) ->
    step s Post (s [sent := add (s sent) (l, k, p, c)] [queued := add (s queued) (l, k, p, c)])
| step_Notice l k c :
    Hears s l k ->
    (exists p, (l, k, p, c) \in s sent) ->
    step s Notice (s [nsent := add (s nsent) (l, k, c)])
| step_Complete l k :
    Hears s l k ->
    ~ Fenced s l k ->
    (forall p, Owed s l k p -> exists c, (l, k, p, c) \in s sent) ->
    (forall p c, (l, k, p, c) \in s sent -> s pay (l, k, p, c) = Some l) ->
    PrefillHalf s l k ->
    step s Complete (s [ans := add (s ans) (complete, l, k)])
| step_AbortAck l k :
    Hears s l k ->
    ~ Fenced s l k ->
    PrefillHalf s l k ->
    step s AbortAck (s [ans := add (s ans) (ack, l, k)])
| step_PrefillFence k d e :
    d < s dinc \/ (d = s dinc /\ e <= s ep k) ->
    step s PrefillFence (s
      [pfenced := add (s pfenced) (k, d, e)]
      [queued := fun '(l, r, p, c) =>
         if eqd (r, s dof l, s gep (l, r)) (k, d, e) then false else s queued (l, r, p, c)])
| step_PrefillCrash k :
    step s PrefillCrash (s
      [pinc := upd (s pinc) k (s pinc k + 1)]
      [pfenced := fun '(r, d, e) => if eqd r k then false else s pfenced (r, d, e)]
      [queued := fun '(l, r, p, c) => if eqd r k then false else s queued (l, r, p, c)])
(* the fabric *)
| step_Launch l k p c (b : option Lease) :
    (l, k, p, c) \in s queued ->
    step s Launch (s
      [queued := del (s queued) (l, k, p, c)] [flying := add (s flying) (l, k, p, c)] [pay := upd (s pay) (l, k, p, c) b])
| step_Check l k p c :
    (l, k, p, c) \in s flying ->
    Current s l k ->
    step s Check (s [flying := del (s flying) (l, k, p, c)] [placing := add (s placing) (l, k, p, c)])
| step_Drop l k p c :
    (l, k, p, c) \in s flying ->
    ~ Current s l k ->
    step s Drop (s [flying := del (s flying) (l, k, p, c)])
| step_Copy l k p c :
    (l, k, p, c) \in s placing ->
    step s Copy (s
      [placing := del (s placing) (l, k, p, c)] [unseen := add (s unseen) (l, k, p, c)] [mem := upd (s mem) (p, k) None])
| step_Visible l k p c :
    (l, k, p, c) \in s unseen ->
    step s Visible (s [unseen := del (s unseen) (l, k, p, c)] [mem := upd (s mem) (p, k) (s pay (l, k, p, c))]).

Inductive reachable : state -> Prop :=
| reachable_Init : reachable Init
| reachable_step s a t : reachable s -> step s a t -> reachable t.

(* The promise, as in Heart.tla. *)
Section Promise.
Variable s : state.

(* While a kernel of l may read p, p is l's, in the generation granted to l; some rank
   owes a part of it; each owed part holds bytes that were computed for l. *)
Definition NoForeignRead := forall l p, (l, p) \in s krn ->
  s own p = Some l /\ s gen p = s gpage (l, p) /\ (exists k, Owed s l k p) /\
  forall k, Owed s l k p -> s mem (p, k) = Some l.

(* A page that a write may still reach is in the hands that the write is for. *)
Definition NoReuseWhileInFlight := forall l k p c, MayLand s l k p c -> s own p = Some l /\ s gen p = s gpage (l, p).

(* Nothing may land where a kernel reads. *)
Definition NoEarlyRead := forall l x k p c, (l, p) \in s krn -> ~ MayLand s x k p c.

(* Once a fence has returned, nothing of an older epoch is being placed. *)
Definition FenceHolds := forall l k p c, Lands s l k p c -> k \out s fencing -> Current s l k.
End Promise.
End Heart.

Arguments state : clear implicits.

(* The theorem: however many pages, leases, ranks and channels there are, and whatever
   was late, lost, repeated, aborted, fenced or restarted, however often. *)
Definition Headline : Prop :=
  forall (Lease Page Rank Chan : Type) (eqL : Eq Lease) (eqP : Eq Page) (eqR : Eq Rank) (eqC : Eq Chan)
         (Part : Rank * Page -> bool) (s : state Lease Page Rank Chan),
    reachable Part s ->
    NoForeignRead Part s /\ NoReuseWhileInFlight s /\ NoEarlyRead s /\ FenceHolds s.
