(* The relation of Statement.v as a program, for finitely many names and bounded numbers: successors are
   built from the constructors themselves (emit), so each is a step, and each step is there
   (sound, complete).  The graph is computed and printed by Graph.v and compared with TLC's. *)
From Heart Require Import Statement.
Require Import Bool Arith Lia List PArith NArith FMapPositive.
Import ListNotations.

Class Fin A := { all : list A; all_in : forall x, In x all }.
Arguments all A {_}.
#[export] Instance FinUnit : Fin unit.
Proof. refine {| all := [tt]; all_in := _ |}; abstract (intros []; simpl; auto). Defined.
#[export] Instance FinBool : Fin bool.
Proof. refine {| all := [false; true]; all_in := _ |}; abstract (intros []; simpl; auto). Defined.
#[export] Instance FinKind : Fin kind.
Proof. refine {| all := [complete; ack]; all_in := _ |}; abstract (intros []; simpl; auto). Defined.
#[export] Instance FinPair A B (a : Fin A) (b : Fin B) : Fin (A * B).
Proof. refine {| all := list_prod (all A) (all B); all_in := _ |}; abstract (intros [x y]; apply in_prod; apply all_in). Defined.
#[export] Instance FinOption A (a : Fin A) : Fin (option A).
Proof. refine {| all := None :: map Some (all A); all_in := _ |}; abstract (intros [x|]; [right; apply in_map, all_in|now left]). Defined.
#[export] Instance EqUnit : Eq unit. Proof. intros [] []; now left. Defined.
#[export] Instance EqOption A (_ : Eq A) : Eq (option A). Proof. unfold Eq in *; decide equality. Defined.

(* Propositions that a program can test. *)
Class Dec (P : Prop) := { decide : unit -> bool; dec_ok : decide tt = true <-> P }.    (* tested only when needed *)
Definition dec P {d : Dec P} := decide tt.
Lemma dec_true P {d : Dec P} : dec P = true <-> P.
Proof. apply dec_ok. Qed.
Arguments dec_true {P d}.
#[export] Instance DecEq A (_ : Eq A) (x y : A) : Dec (x = y).
Proof. refine {| decide := fun _ => if eqd x y then true else false; dec_ok := _ |}; abstract (destruct (eqd x y); split; congruence). Defined.
#[export] Instance DecLe (x y : nat) : Dec (x <= y).
Proof. refine {| decide := fun _ => x <=? y; dec_ok := _ |}; abstract (apply Nat.leb_le). Defined.
#[export] Instance DecLt (x y : nat) : Dec (x < y).
Proof. refine {| decide := fun _ => x <? y; dec_ok := _ |}; abstract (apply Nat.ltb_lt). Defined.
#[export] Instance DecAnd P Q (p : Dec P) (q : Dec Q) : Dec (P /\ Q).
Proof. refine {| decide := fun _ => if dec P then dec Q else false; dec_ok := _ |}; abstract (unfold dec; destruct p as [f ?], q as [g ?]; simpl; destruct (f tt), (g tt); intuition congruence). Defined.
#[export] Instance DecOr P Q (p : Dec P) (q : Dec Q) : Dec (P \/ Q).
Proof. refine {| decide := fun _ => if dec P then true else dec Q; dec_ok := _ |}; abstract (unfold dec; destruct p as [f ?], q as [g ?]; simpl; destruct (f tt), (g tt); intuition congruence). Defined.
#[export] Instance DecImp P Q (p : Dec P) (q : Dec Q) : Dec (P -> Q).
Proof. refine {| decide := fun _ => if dec P then dec Q else true; dec_ok := _ |}; abstract (unfold dec; destruct p as [f ?], q as [g ?]; simpl; destruct (f tt), (g tt); intuition congruence). Defined.
#[export] Instance DecNot P (p : Dec P) : Dec (~ P).
Proof. refine {| decide := fun _ => negb (dec P); dec_ok := _ |}; abstract (unfold dec; destruct p as [f ?]; simpl; destruct (f tt); intuition (simpl in *; congruence)). Defined.
#[export] Instance DecAll A (P : A -> Prop) (_ : Fin A) (p : forall x, Dec (P x)) : Dec (forall x, P x).
Proof. refine {| decide := fun _ => forallb (fun x => dec (P x)) (all A); dec_ok := _ |}; abstract (rewrite forallb_forall; split; intros H x; [apply dec_ok, H, all_in|intros _; apply dec_ok, H]). Defined.
#[export] Instance DecEx A (P : A -> Prop) (_ : Fin A) (p : forall x, Dec (P x)) : Dec (exists x, P x).
Proof. refine {| decide := fun _ => existsb (fun x => dec (P x)) (all A); dec_ok := _ |}; abstract (rewrite existsb_exists; split; intros [x H]; exists x; [apply dec_ok, H|split; [apply all_in|apply dec_ok, H]]). Defined.

Definition each {A B} (l : list A) (f : A -> list B) := flat_map f l.

(* All functions on a finite type, as far as they can be told apart. *)
Fixpoint functions {A B} {_ : Eq A} (dom : list A) (vals : list B) (d : B) : list (A -> B) :=
  match dom with
  | [] => [fun _ => d]
  | a :: r => each vals (fun v => map (fun f => upd f a v) (functions r vals d))
  end.
Lemma functions_all A B (_ : Eq A) (dom : list A) (vals : list B) d (g : A -> B) :
  (forall x, In (g x) vals) -> exists f, In f (functions dom vals d) /\ forall x, In x dom -> f x = g x.
Proof.
  intros V; induction dom as [|a r [f [F E]]]; [exists (fun _ => d); simpl; tauto|].
  exists (upd f a (g a)); split.
  - apply in_flat_map; exists (g a); split; [apply V|]; apply in_map_iff; eauto.
  - intros x D; unfold upd; destruct (eqd x a); [now subst|]; destruct D; [now subst|auto].
Qed.

Definition memo {A B} {_ : Eq A} (dom : list A) (d : B) (f : A -> B) : A -> B :=
  (fun t => fun x => (fix get t := match t with [] => d | (y, v) :: r => if eqd x y then v else get r end) t)
    (map (fun x => (x, f x)) dom).
Lemma memo_ok A B (_ : Eq A) (dom : list A) (d : B) f x : In x dom -> memo dom d f x = f x.
Proof.
  unfold memo; induction dom as [|y r]; simpl; [tauto|]; intro D.
  destruct (eqd x y); [now subst|]; apply IHr; destruct D; congruence.
Qed.

Definition upto n := seq 0 (S n).

Section Instance_.
Context {Lease Page Rank Chan : Type} {eqL : Eq Lease} {eqP : Eq Page} {eqR : Eq Rank} {eqC : Eq Chan}
        {finL : Fin Lease} {finP : Fin Page} {finR : Fin Rank} {finC : Fin Chan}.
Variables (Part : Rank * Page -> bool) (NE NI ND : nat).    (* bounds as in MCHeart.tla *)
Notation state := (state Lease Page Rank Chan).
Notation step := (step Part).

(* In bounds: what TLC's Epoch, Inc and DInc say. *)
Definition small (s : state) := (forall k, s ep k <= NE) /\ (forall k, s pinc k <= NI) /\ s dinc <= ND.
Definition inside (s : state) := small s /\ forall k d e, s pfenced (k, d, e) = true -> d <= ND /\ e <= NE.
Instance DecSmall s : Dec (small s).
Proof. unfold small; apply _. Defined.

Section Next.
Variable s : state.
Instance DecOwed l k p : Dec (Owed Part s l k p). Proof. unfold Owed; apply _. Defined.
Instance DecCurrent l k : Dec (Current s l k). Proof. unfold Current; apply _. Defined.
Instance DecHears l k : Dec (Hears s l k). Proof. unfold Hears; apply _. Defined.
Instance DecFenced l k : Dec (Fenced s l k). Proof. unfold Fenced; apply _. Defined.
Instance DecPrefillHalf l k : Dec (PrefillHalf s l k). Proof. unfold PrefillHalf; apply _. Defined.
Instance DecDecodeHalf l k : Dec (DecodeHalf s l k). Proof. unfold DecodeHalf; apply _. Defined.

Definition emit {P a t} {_ : Dec P} (_ : P -> step s a t) : list state := if dec P then [t] else [].
Notation emit2 c := (emit (fun h => c (proj1 h) (proj2 h))).
Notation emit3 c := (emit2 (fun x h => c x (proj1 h) (proj2 h))).
Notation emit4 c := (emit3 (fun x y h => c x y (proj1 h) (proj2 h))).
Notation emit5 c := (emit4 (fun x y z h => c x y z (proj1 h) (proj2 h))).

Definition next (a : action) : list state :=
  let leases := each (all Lease) in
  let ranks := each (all Rank) in
  let pages := each (all Page) in
  let chans := each (all Chan) in
  match a with
  | Grant =>
      leases (fun l => if dec (s dst l = new) then
      each (functions (all Page) (all bool) false) (fun S => each (functions (all Rank) (all bool) false) (fun K =>
      each (functions (all Rank) (upto NI) 0) (fun I => emit4 (step_Grant Part s l S K I)))) else [])
  | Abort => leases (fun l => emit (step_Abort Part s l))
  | NoticeIn => leases (fun l => ranks (fun k => chans (fun c => emit3 (step_NoticeIn Part s l k c))))
  | Take => each (all kind) (fun a => leases (fun l => ranks (fun k => emit3 (step_Take Part s a l k))))
  | Ready => leases (fun l => emit2 (step_Ready Part s l))
  | Read => leases (fun l => pages (fun p => emit2 (step_Read Part s l p)))
  | ReadEnd => leases (fun l => pages (fun p => emit (step_ReadEnd Part s l p)))
  | Release => leases (fun l => emit3 (step_Release Part s l))
  | Fence => ranks (fun k => emit (fun _ : 0 = 0 => step_Fence Part s k))
  | FenceEnd => ranks (fun k => emit2 (step_FenceEnd Part s k))
  | DecodeCrash => emit (fun _ : 0 = 0 => step_DecodeCrash Part s)
  | Post => leases (fun l => ranks (fun k => pages (fun p => chans (fun c => emit5 (step_Post Part s l k p c)))))
  | Notice => leases (fun l => ranks (fun k => chans (fun c => emit2 (step_Notice Part s l k c))))
  | Complete => leases (fun l => ranks (fun k => emit5 (step_Complete Part s l k)))
  | AbortAck => leases (fun l => ranks (fun k => emit3 (step_AbortAck Part s l k)))
  | PrefillFence => ranks (fun k => each (upto ND) (fun d => each (upto NE) (fun e => emit (step_PrefillFence Part s k d e))))
  | PrefillCrash => ranks (fun k => emit (fun _ : 0 = 0 => step_PrefillCrash Part s k))
  | Launch => leases (fun l => ranks (fun k => pages (fun p => chans (fun c =>
      each (all (option Lease)) (fun b => emit (step_Launch Part s l k p c b))))))
  | Check => leases (fun l => ranks (fun k => pages (fun p => chans (fun c => emit2 (step_Check Part s l k p c)))))
  | Drop => leases (fun l => ranks (fun k => pages (fun p => chans (fun c => emit2 (step_Drop Part s l k p c)))))
  | Copy => leases (fun l => ranks (fun k => pages (fun p => chans (fun c => emit (step_Copy Part s l k p c)))))
  | Visible => leases (fun l => ranks (fun k => pages (fun p => chans (fun c => emit (step_Visible Part s l k p c)))))
  end.

Lemma emit_sound P a t (_ : Dec P) (c : P -> step s a t) u : In u (emit c) -> step s a u.
Proof.
  unfold emit; destruct (dec P) eqn:D; simpl; [|tauto]; intros [<-|[]]; apply c, dec_true, D.
Qed.
Lemma emit_complete P a t (d : Dec P) (c : P -> step s a t) : P -> In t (emit c).
Proof. intro H; unfold emit; apply dec_true in H; rewrite H; now left. Qed.

Theorem sound a t : In t (next a) -> step s a t.
Proof.
  destruct a; unfold next, each; cbv beta iota zeta; intro H.
  all: repeat match goal with
    | H : In _ (flat_map _ _) |- _ => apply in_flat_map in H as (? & _ & H)
    | H : In _ (if dec ?P then _ else []) |- _ => destruct (dec P); [|destruct H]
    end.
  all: now apply emit_sound in H.
Qed.
End Next.

(* Equal at every argument. *)
Definition same (s t : state) : Prop := forall v,
  match v return ty v -> ty v -> Prop with
  | dinc => eq
  | own | gen => fun f g => forall x, f x = g x
  | dst | dof => fun f g => forall x, f x = g x
  | hold | got | owes => fun f g => forall x, f x = g x
  | gep | ginc => fun f g => forall x, f x = g x
  | nin | nsent => fun f g => forall x, f x = g x
  | krn => fun f g => forall x, f x = g x
  | ep | pinc => fun f g => forall x, f x = g x
  | fencing => fun f g => forall x, f x = g x
  | gpage => fun f g => forall x, f x = g x
  | pfenced => fun f g => forall x, f x = g x
  | ans => fun f g => forall x, f x = g x
  | sent | queued | flying | placing | unseen => fun f g => forall x, f x = g x
  | pay => fun f g => forall x, f x = g x
  | mem => fun f g => forall x, f x = g x
  end (s v) (t v).
Lemma same_refl s : same s s.
Proof. intros []; reflexivity. Qed.

Theorem complete_ s a t : small s -> inside t -> step s a t -> exists u, In u (next s a) /\ same t u.
Proof.
  intros (_ & B & _) T St; destruct St; unfold next, each; cbv beta iota zeta.
  1: { destruct (functions_all _ _ _ (all Page) (all bool) false S) as (S' & S1 & S2); [intro; apply all_in|].
    destruct (functions_all _ _ _ (all Rank) (all bool) false K) as (K' & K1 & K2); [intro; apply all_in|].
    destruct (functions_all _ _ _ (all Rank) (upto NI) 0 I) as (I' & I1 & I2).
    { intro k; apply in_seq; specialize (B k); specialize (H2 k); lia. }
    assert (ES : forall p, S' p = S p) by (intro; apply S2, all_in).
    assert (EK : forall k, K' k = K k) by (intro; apply K2, all_in).
    assert (EI : forall k, I' k = I k) by (intro; apply I2, all_in).
    eexists; split.
    + apply in_flat_map; exists l; split; [apply all_in|].
      rewrite (proj2 dec_true H).
      apply in_flat_map; exists S'; split; [exact S1|].
      apply in_flat_map; exists K'; split; [exact K1|].
      apply in_flat_map; exists I'; split; [exact I1|].
      apply emit_complete; repeat split; trivial; intros x; rewrite ?ES, ?EI; auto.
      intro X; destruct (H1 _ X) as (k & X1 & X2); exists k; now rewrite EK.
    + intros []; cbn; try reflexivity; try intros [x y]; try intro x; rewrite ?ES, ?EK, ?EI; trivial. }
  all: eexists; split; [|apply same_refl].
  all: repeat (apply in_flat_map; eexists; split; [apply all_in|]).
  all: try (apply emit_complete; repeat match goal with |- _ /\ _ => split end; eassumption || reflexivity).
  assert (U : upd (s pfenced) (k, d, e) true (k, d, e) = true) by (unfold upd; now destruct (eqd (k, d, e) (k, d, e))).
  apply (proj2 T) in U.
  apply in_flat_map; exists d; split; [apply in_seq; lia|].
  apply in_flat_map; exists e; split; [apply in_seq; lia|]; now apply emit_complete.
Qed.

(* A state with its functions as tables: what is computed goes on from there. *)
Definition norm (s : state) : state :=
  let o := memo (all _) None (s own) in let g := memo (all _) 0 (s gen) in let d := memo (all _) new (s dst) in
  let h := memo (all _) false (s hold) in let t := memo (all _) false (s got) in let n := memo (all _) false (s nin) in
  let kr := memo (all _) false (s krn) in let e := memo (all _) 0 (s ep) in let f := memo (all _) false (s fencing) in
  let di := s dinc in let gp := memo (all _) 0 (s gpage) in let ow := memo (all _) false (s owes) in
  let ge := memo (all _) 0 (s gep) in let gi := memo (all _) 0 (s ginc) in let df := memo (all _) 0 (s dof) in
  let pi := memo (all _) 0 (s pinc) in let se := memo (all _) false (s sent) in let ns := memo (all _) false (s nsent) in
  let pf := memo (list_prod (list_prod (all _) (upto ND)) (upto NE)) false (s pfenced) in
  let an := memo (all _) false (s ans) in let q := memo (all _) false (s queued) in let fl := memo (all _) false (s flying) in
  let pl := memo (all _) false (s placing) in let un := memo (all _) false (s unseen) in
  let pa := memo (all _) None (s pay) in let m := memo (all _) None (s mem) in
  fun v => match v with
  | own => o | gen => g | dst => d | hold => h | got => t | nin => n | krn => kr | ep => e | fencing => f | dinc => di
  | gpage => gp | owes => ow | gep => ge | ginc => gi | dof => df | pinc => pi | pfenced => pf | sent => se | nsent => ns
  | ans => an | queued => q | flying => fl | placing => pl | unseen => un | pay => pa | mem => m
  end.

Theorem norm_same s : inside s -> same s (norm s).
Proof.
  intros (_ & F) []; cbn -[memo all upto]; try reflexivity; intro x; symmetry; try apply memo_ok, all_in.
  destruct x as [[k d] e]; destruct (s pfenced (k, d, e)) eqn:P.
  - rewrite memo_ok; trivial; apply F in P; apply in_prod; [apply in_prod; [apply all_in|]|]; apply in_seq; lia.
  - unfold memo; induction (list_prod _ _) as [|y r]; simpl; trivial; destruct (eqd _ _); congruence.
Qed.

(* A state as a number: a one, then variable by variable its values, three bits each, booleans one. *)
Definition bit (b : bool) := [b].
Definition num (n : nat) := [Nat.testbit n 2; Nat.testbit n 1; Nat.testbit n 0].
Fixpoint index {A} {_ : Eq A} (x : A) l := match l with [] => 0 | y :: r => if eqd x y then 0 else S (index x r) end.
Definition name {A} {_ : Eq A} {_ : Fin A} (x : A) := num (index x (all A)).
Definition table {A B} {_ : Fin A} (put : B -> list bool) (f : A -> B) := each (all A) (fun x => put (f x)).
Definition phases := [new; filling; revoking; ready; failed; done; dead].

Definition code (s : state) : positive :=
  fold_left (fun acc (b : bool) => if b then xI acc else xO acc) (
    table name (s own) ++ table num (s gen) ++ table (fun d => num (index d phases)) (s dst) ++ table bit (s hold) ++
    table bit (s got) ++ table bit (s nin) ++ table bit (s krn) ++ table num (s ep) ++ table bit (s fencing) ++ num (s dinc) ++
    table num (s gpage) ++ table bit (s owes) ++ table num (s gep) ++ table num (s ginc) ++ table num (s dof) ++
    table num (s pinc) ++
    each (list_prod (list_prod (all _) (upto ND)) (upto NE)) (fun x => bit (s pfenced x)) ++
    table bit (s sent) ++ table bit (s nsent) ++ table bit (s ans) ++ table bit (s queued) ++ table bit (s flying) ++
    table bit (s placing) ++ table bit (s unseen) ++ table name (s pay) ++ table name (s mem)) xH.

Definition actions := [Grant; Abort; NoticeIn; Take; Ready; Read; ReadEnd; Release; Fence; FenceEnd; DecodeCrash;
  Post; Notice; Complete; AbortAck; PrefillFence; PrefillCrash; Launch; Check; Drop; Copy; Visible].

Definition successors (s : state) : list (N * state) :=
  each (combine (map N.of_nat (seq 0 22)) actions) (fun '(i, a) =>
    map (pair i) (filter (fun t => dec (small t)) (next s a))).

(* Breadth first.  Of each state: its number, then of each edge 32 * the place of its end + the action. *)
Definition visit '(i, t) '(seen, todo, n, out) : PositiveMap.t N * list state * N * list N :=
  let c := code t in
  match PositiveMap.find c seen with
  | Some j => (seen, todo, n, (32 * j + i)%N :: out)
  | None => (PositiveMap.add c n seen, norm t :: todo, (n + 1)%N, (32 * n + i)%N :: out)
  end.

Fixpoint explore (fuel : nat) (front : list state) (seen : PositiveMap.t N) (n : N) : list (list N) :=
  match fuel with
  | 0 => []
  | S fuel =>
      let '(seen, todo, n, out) := fold_left (fun '(seen, todo, n, out) s =>
        let '(seen, todo, n, mine) := fold_right visit (seen, todo, n, []) (successors s) in
        (seen, todo, n, (Npos (code s) :: mine) :: out)) front (seen, [], n, []) in
      match todo with [] => rev out | _ => rev out ++ explore fuel (rev todo) seen n end
  end.
Definition graph : list (list N) :=
  explore 1000 [norm Init] (PositiveMap.add (code Init) 0%N (PositiveMap.empty N)) 1%N.
End Instance_.
