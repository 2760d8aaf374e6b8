(* The proof of Statement.Headline: what is inductive, and that it is. *)
From Heart Require Import Statement.
Require Import Bool Arith Lia.

Section Proof.
Context {Lease Page Rank Chan : Type} {eqL : Eq Lease} {eqP : Eq Page} {eqR : Eq Rank} {eqC : Eq Chan}.
Variable Part : Rank * Page -> bool.
Notation state := (state Lease Page Rank Chan).
Implicit Types (s t : state) (l x : Lease) (p : Page) (k : Rank) (c d : Chan).

Definition UnderWay (s : state) l k p c :=
  s flying (l, k, p, c) = true \/ s placing (l, k, p, c) = true \/ s unseen (l, k, p, c) = true.

(* The same conjuncts as in TLA/TransferProof.tla, where Heart has the variables. *)
Record Inv (s : state) : Prop := {
  OwnLive : forall l p, s own p = Some l -> Live s l /\ s gpage (l, p) = s gen p /\ s gen p <> 0;
  KeepsPages : forall l p, Live s l -> s gpage (l, p) <> 0 -> s own p = Some l;
  Covered : forall l p, s gpage (l, p) <> 0 -> exists k, Owed Part s l k p;
  LiveNow : forall l, Live s l -> s dof l = s dinc;
  DofBound : forall l, s dof l <= s dinc;
  FreshOwes : forall l k, s dst l = new -> s owes (l, k) = false;
  FreshPages : forall l p, s dst l = new -> s gpage (l, p) = 0;
  HoldKeeps : forall l k, s hold (l, k) = true ->
    s owes (l, k) = true /\ (s dst l = filling \/ s dst l = revoking);
  FillEpoch : forall l k, s dst l = filling -> s hold (l, k) = true -> s gep (l, k) = s ep k;
  GrantEpoch : forall l k, s owes (l, k) = true -> s dof l = s dinc -> s gep (l, k) <= s ep k;
  GrantInc : forall l k, s owes (l, k) = true -> s ginc (l, k) <= s pinc k;
  SentOwed : forall l k p c, s sent (l, k, p, c) = true -> Owed Part s l k p;
  OneChannel : forall l k p c d, s sent (l, k, p, c) = true -> s sent (l, k, p, d) = true -> c = d;
  QueuedSent : forall l k p c, s queued (l, k, p, c) = true ->
    s sent (l, k, p, c) = true /\ s ginc (l, k) = s pinc k;
  UnderWaySent : forall l k p c, UnderWay s l k p c -> s sent (l, k, p, c) = true;
  AnswerOwes : forall a l k, s ans (a, l, k) = true -> s owes (l, k) = true;
  AnswerHalf : forall a l k p c, s ans (a, l, k) = true -> s sent (l, k, p, c) = true ->
    s queued (l, k, p, c) = false /\ s nsent (l, k, c) = true;
  CompletePosted : forall l k p, s ans (complete, l, k) = true -> Owed Part s l k p ->
    exists c, s sent (l, k, p, c) = true;
  CompletePay : forall l k p c, s ans (complete, l, k) = true -> s sent (l, k, p, c) = true ->
    s pay (l, k, p, c) = Some l;
  NoticeSent : forall l k c, s nin (l, k, c) = true -> s nsent (l, k, c) = true;
  NoticeBehind : forall l k p c, s nin (l, k, c) = true ->
    s queued (l, k, p, c) = true \/ s flying (l, k, p, c) = true \/ s placing (l, k, p, c) = true -> False;
  HoldEnds : forall l k, s owes (l, k) = true -> s hold (l, k) = false -> Current s l k ->
    exists a, s ans (a, l, k) = true;
  MayLandHeld : forall l k p c, MayLand s l k p c -> s hold (l, k) = true;
  LandsFenced : forall l k p c, Lands s l k p c -> s fencing k = false -> Current s l k;
  SentLanded : forall l k p c, s sent (l, k, p, c) = true -> s queued (l, k, p, c) = false ->
    s flying (l, k, p, c) = false -> s placing (l, k, p, c) = false -> s unseen (l, k, p, c) = false ->
    s gep (l, k) = s ep k -> s dof l = s dinc -> s ginc (l, k) = s pinc k ->
    s pfenced (k, s dof l, s gep (l, k)) = false -> s own p = Some l -> s mem (p, k) = s pay (l, k, p, c);
  CompleteLanded : forall l k p c, s ans (complete, l, k) = true -> s sent (l, k, p, c) = true ->
    s flying (l, k, p, c) = false -> s placing (l, k, p, c) = false -> s unseen (l, k, p, c) = false ->
    s gep (l, k) = s ep k -> s dof l = s dinc -> s own p = Some l -> s mem (p, k) = Some l;
  GotLanded : forall l k p, s got (l, k) = true -> Owed Part s l k p -> s own p = Some l ->
    s mem (p, k) = Some l;
  GotEnded : forall l k, s got (l, k) = true -> s owes (l, k) = true /\ s hold (l, k) = false;
  ReadyGot : forall l k, s dst l = ready -> s owes (l, k) = true -> s got (l, k) = true;
  KernelReady : forall l p, s krn (l, p) = true -> s dst l = ready /\ s own p = Some l
}.

(* What a state of Inv promises. *)
Lemma promise s : Inv s ->
  NoForeignRead Part s /\ NoReuseWhileInFlight s /\ NoEarlyRead s /\ FenceHolds s.
Proof.
  intro I.
  assert (Reuse : NoReuseWhileInFlight s).
  { intros l k p c M.
    assert (S : s sent (l, k, p, c) = true).
    { destruct M as [[M|M]|[[M|M] _]]; [..|now apply (QueuedSent _ I)|];
        apply (UnderWaySent _ I); unfold UnderWay; auto. }
    apply (MayLandHeld _ I), (HoldKeeps _ I) in M; destruct (SentOwed _ I _ _ _ _ S) as (_ & G & _).
    assert (O : s own p = Some l) by (apply (KeepsPages _ I); [unfold Live|]; tauto).
    apply (OwnLive _ I) in O as O'; intuition congruence. }
  split; [|split; [exact Reuse|split]].
  - intros l p K; apply (KernelReady _ I) in K as [R O]; destruct (OwnLive _ I _ _ O) as (L & G & N).
    repeat split; try congruence; [apply (Covered _ I); congruence|].
    intros k W; apply (GotLanded _ I); trivial; apply (ReadyGot _ I); [|apply W]; trivial.
  - intros l x k p c K M; apply (KernelReady _ I) in K as [R O]; apply Reuse in M as U.
    apply (MayLandHeld _ I), (HoldKeeps _ I) in M; destruct U as [U _].
    assert (x = l) by congruence; subst; destruct M as [_ [M|M]]; congruence.
  - intros l k p c; apply (LandsFenced _ I).
Qed.

#[local] Arguments Nat.ltb : simpl never.
#[local] Arguments Nat.eqb : simpl never.
#[local] Arguments Nat.add : simpl never.
Ltac words := unfold MayLand, Live, Owed, Hears, Current, Fenced, PrefillHalf, DecodeHalf, Lands, UnderWay in *.

Lemma init_inv : Inv Init.
Proof. split; words; cbn; intros; try solve [intuition (congruence || lia)]. Qed.

Lemma filling_live s l : s dst l = filling -> Live s l. Proof. unfold Live; tauto. Qed.
Lemma revoking_live s l : s dst l = revoking -> Live s l. Proof. unfold Live; tauto. Qed.
Lemma ready_live s l : s dst l = ready -> Live s l. Proof. unfold Live; tauto. Qed.
Lemma hold_live s l k : Inv s -> s hold (l, k) = true -> Live s l.
Proof. intros I H; apply (HoldKeeps _ I) in H; unfold Live; tauto. Qed.

(* Split on every test of the new state, and use what it says. *)
Ltac cases := repeat (match goal with
  | H : _ /\ _ |- _ => destruct H
  | H : exists _, _ |- _ => destruct H
  | H : (_, _) = (_, _) |- _ => injection H as H
  | H : _ && _ = true |- _ => apply andb_prop in H
  | H : (_ <? _) = true |- _ => apply Nat.ltb_lt in H
  | H : (_ =? _) = true |- _ => apply Nat.eqb_eq in H
  | H : Some _ = Some _ |- _ => injection H as H
  | H : ?a = ?a |- _ => clear H
  | H : ?a <> ?a |- _ => now destruct H
  | H : context [eqd ?a ?b] |- _ => destruct (eqd a b)
  | H : context [match ?b with _ => _ end] |- _ => destruct b eqn:?
  | |- context [eqd ?a ?b] => destruct (eqd a b)
  | |- context [match ?b with _ => _ end] => destruct b eqn:?
  end; subst; try discriminate; cbn [andb negb] in * ).

Lemma not_ended s l k : Inv s -> s owes (l, k) = true -> Current s l k ->
  (forall a, s ans (a, l, k) = false) -> s hold (l, k) = true.
Proof.
  intros I O C F; destruct (s hold (l, k)) eqn:H; trivial.
  destruct (HoldEnds _ I _ _ O H C) as [a A]; rewrite F in A; discriminate.
Qed.

Ltac learn key L := lazymatch goal with _ : key |- _ => fail | _ => pose proof L end.
Ltac ands := repeat match goal with H : _ /\ _ |- _ => destruct H end.

Ltac live I s l L := first
  [ learn (s dof l = s dinc) (LiveNow s I l L)
  | match goal with G : s gpage (l, ?p) <> 0 |- _ => learn (s own p = Some l) (KeepsPages s I l p L G) end ].

(* What the invariant says of what is known, one hop at a time. *)
Ltac chain I := words; repeat (match goal with
  | H : ?s own ?p = Some ?l |- _ => learn (s gpage (l, p) = s gen p) (OwnLive s I l p H)
  | H : ?s queued (?l, ?k, ?p, ?c) = true |- _ => learn (s ginc (l, k) = s pinc k) (QueuedSent s I l k p c H)
  | H : ?s flying (?l, ?k, ?p, ?c) = true |- _ => learn (s sent (l, k, p, c) = true) (UnderWaySent s I l k p c (or_introl H))
  | H : ?s placing (?l, ?k, ?p, ?c) = true |- _ =>
      learn (s sent (l, k, p, c) = true) (UnderWaySent s I l k p c (or_intror (or_introl H)))
  | H : ?s unseen (?l, ?k, ?p, ?c) = true |- _ =>
      learn (s sent (l, k, p, c) = true) (UnderWaySent s I l k p c (or_intror (or_intror H)))
  | H : ?s placing (?l, ?k, ?p, ?c) = true |- _ => learn (s hold (l, k) = true) (MayLandHeld s I l k p c (or_introl (or_introl H)))
  | H : ?s unseen (?l, ?k, ?p, ?c) = true |- _ => learn (s hold (l, k) = true) (MayLandHeld s I l k p c (or_introl (or_intror H)))
  | H : ?s queued (?l, ?k, ?p, ?c) = true, E : ?s gep (?l, ?k) = ?s ep ?k, D : ?s dof ?l = ?s dinc |- _ =>
      learn (s hold (l, k) = true) (MayLandHeld s I l k p c (or_intror (conj (or_introl H) (conj E D))))
  | H : ?s flying (?l, ?k, ?p, ?c) = true, E : ?s gep (?l, ?k) = ?s ep ?k, D : ?s dof ?l = ?s dinc |- _ =>
      learn (s hold (l, k) = true) (MayLandHeld s I l k p c (or_intror (conj (or_intror H) (conj E D))))
  | H : ?s sent (?l, ?k, ?p, ?c) = true |- _ => learn (s gpage (l, p) <> 0) (SentOwed s I l k p c H)
  | H : ?s sent (?l, ?k, ?p, ?c) = true, K : ?s sent (?l, ?k, ?p, ?d) = true |- _ =>
      assert_fails (unify c d); pose proof (OneChannel s I l k p c d H K); subst
  | H : ?s own ?p = Some ?l, K : ?s own ?p = Some ?x |- _ => assert_fails (unify l x); assert (l = x) by congruence; subst
  | H : ?a <> ?a |- _ => now destruct H
  | H : ?s hold (?l, ?k) = true |- _ => learn (s owes (l, k) = true) (proj1 (HoldKeeps s I l k H))
  | H : ?s hold (?l, ?k) = true |- _ => learn (s dst l = filling \/ s dst l = revoking) (proj2 (HoldKeeps s I l k H))
  | H : ?s owes (?l, ?k) = true |- _ => learn (s ginc (l, k) <= s pinc k) (GrantInc s I l k H)
  | H : ?s owes (?l, ?k) = true, D : ?s dof ?l = ?s dinc |- _ => learn (s gep (l, k) <= s ep k) (GrantEpoch s I l k H D)
  | H : ?s hold (?l, ?k) = true |- _ => live I s l (hold_live s l k I H)
  | H : ?s dst ?l = filling |- _ => live I s l (filling_live s l H)
  | H : ?s dst ?l = revoking |- _ => live I s l (revoking_live s l H)
  | H : ?s dst ?l = ready |- _ => live I s l (ready_live s l H)
  | H : ?s dst ?l = filling, K : ?s hold (?l, ?k) = true |- _ => learn (s gep (l, k) = s ep k) (FillEpoch s I l k H K)
  | H : ?s ans (?a, ?l, ?k) = true |- _ => learn (s owes (l, k) = true) (AnswerOwes s I a l k H)
  | H : ?s ans (?a, ?l, ?k) = true, K : ?s sent (?l, ?k, ?p, ?c) = true |- _ =>
      learn (s nsent (l, k, c) = true) (AnswerHalf s I a l k p c H K)
  | H : ?s got (?l, ?k) = true |- _ => learn (s hold (l, k) = false) (GotEnded s I l k H)
  | F : forall _, _ = false, H : _ = true |- _ => now rewrite F in H
  | F : forall _ _, _ = false, H : _ = true |- _ => now rewrite F in H
  | F : forall k, ?s owes (?l, k) = true -> ?s got (?l, k) = true, H : ?s owes (?l, ?k) = true |- _ =>
      learn (s got (l, k) = true) (F k H)
  | F : forall p c, ?s sent (?l, ?k, p, c) = true -> _ /\ _, H : ?s sent (?l, ?k, ?p, ?c) = true |- _ =>
      learn (s nsent (l, k, c) = true) (F p c H)
  | F : forall c, ?s nsent (?l, ?k, c) = true -> _, H : ?s nsent (?l, ?k, ?c) = true |- _ =>
      learn (s nin (l, k, c) = true) (F c H)
  | F : forall l p c, ?s placing (l, ?k, p, c) = true \/ _ -> _, H : ?s placing (?l, ?k, ?p, ?c) = true |- _ =>
      learn (s gep (l, k) = s ep k) (F l p c (or_introl H))
  | F : forall l p c, _ \/ ?s unseen (l, ?k, p, c) = true -> _, H : ?s unseen (?l, ?k, ?p, ?c) = true |- _ =>
      learn (s gep (l, k) = s ep k) (F l p c (or_intror H))
  | F : forall a, ?s ans (a, ?l, ?k) = false, H : ?s owes (?l, ?k) = true, E : ?s gep (?l, ?k) = ?s ep ?k, D : ?s dof ?l = ?s dinc |- _ =>
      learn (s hold (l, k) = true) (not_ended s l k I H (conj E D) F)
  | H : ?s nin (?l, ?k, ?c) = true |- _ => learn (s nsent (l, k, c) = true) (NoticeSent s I l k c H)
  | H : ?s nin (?l, ?k, ?c) = true, W : ?s queued (?l, ?k, ?p, ?c) = true |- _ => destruct (NoticeBehind s I l k p c H); tauto
  | H : ?s nin (?l, ?k, ?c) = true, W : ?s flying (?l, ?k, ?p, ?c) = true |- _ => destruct (NoticeBehind s I l k p c H); tauto
  | H : ?s nin (?l, ?k, ?c) = true, W : ?s placing (?l, ?k, ?p, ?c) = true |- _ => destruct (NoticeBehind s I l k p c H); tauto
  | H : ?s dof ?l = ?s dinc + 1 |- _ => pose proof (DofBound s I l); lia
  | H : ?S ?p = true, F : forall p, ?S p = true -> ?s own p = None |- _ => learn (s own p = None) (F p H)
  | H : ?s krn (?l, ?p) = true |- _ => learn (s own p = Some l) (KernelReady s I l p H)
  | H : ?s dst ?l = new, K : ?s owes (?l, ?k) = true |- _ => now rewrite (FreshOwes s I l k H) in K
  | H : ?s dst ?l = new, K : ?s gpage (?l, ?p) <> 0 |- _ => now destruct K; apply (FreshPages s I l p H)
  end; words; ands).

Ltac ors := repeat match goal with H : _ \/ _ |- _ => destruct H end.
Ltac finish C I :=
  ors; ands; chain I; try congruence;
  try solve [eapply (C _ I);
    first [eassumption | congruence | repeat split; (eassumption || congruence) | left; eassumption | right; eassumption]];
  repeat split; cases; chain I; try (ors; ands; chain I; solve [congruence | lia | tauto | eauto]).

(* The shape of each lemma below: most actions leave a conjunct alone. *)
Ltac start C := let I := fresh "I" in let St := fresh "St" in
  intros I St; destruct St; words; cbn; unfold upd; intros;
  try solve [apply C; trivial | eapply C; eassumption];
  ands; cases; try solve [apply C; trivial | eapply C; eassumption | congruence | lia].
Ltac old L := pose proof L; words; intuition (congruence || lia).

Lemma step_inv s a t : Inv s -> step Part s a t -> Inv t.
Proof.
  intros I St; split; revert I St.
  - start OwnLive; finish OwnLive I.
  - start KeepsPages; finish KeepsPages I.
  - start Covered; finish Covered I.
    destruct (H1 p) as (k & A & B); eauto.
  - start LiveNow; finish LiveNow I.
  - start DofBound; old (DofBound _ I l).
  - start FreshOwes; finish FreshOwes I.
  - start FreshPages; finish FreshPages I.
  - start HoldKeeps; finish HoldKeeps I.
  - start FillEpoch; finish FillEpoch I.
  - start GrantEpoch; finish GrantEpoch I.
  - start GrantInc; finish GrantInc I.
  - start SentOwed; finish SentOwed I.
  - start OneChannel; finish OneChannel I.
  - start QueuedSent; finish QueuedSent I.
  - start UnderWaySent; finish UnderWaySent I.
  - start AnswerOwes; finish AnswerOwes I.
  - start AnswerHalf; finish AnswerHalf I.
  - start CompletePosted; finish CompletePosted I.
    destruct (CompletePosted _ I l0 k0 p0) as [x X]; words; trivial; [tauto|]; exists x; now cases.
  - start CompletePay; finish CompletePay I; auto.
  - start NoticeSent; finish NoticeSent I.
  - start NoticeBehind; finish NoticeBehind I.
    all: destruct (H1 p) as (? & ? & ?); congruence.
  - start HoldEnds; finish HoldEnds I; eauto.
    all: match goal with O : ?s owes (?l, ?k) = true |- _ => destruct (HoldEnds _ I l k) as [b B]; words; try tauto; exists b; now cases end.
  - start MayLandHeld; finish MayLandHeld I.
  - start LandsFenced; finish LandsFenced I.
  - start SentLanded; finish SentLanded I.
  - start CompleteLanded; finish CompleteLanded I.
    all: try solve [eapply (CompletePay _ I); eauto].
    rewrite <- (H2 p c); trivial; apply (SentLanded _ I); trivial; now apply not_true_is_false.
  - start GotLanded; finish GotLanded I.
    destruct (CompletePosted _ I l k p) as [d D]; words; trivial; [tauto|].
    apply (CompleteLanded _ I l k p d); trivial; apply not_true_is_false; intro; chain I; congruence.
  - start GotEnded; finish GotEnded I.
  - start ReadyGot; finish ReadyGot I.
  - start KernelReady; finish KernelReady I.
Qed.

End Proof.

Theorem heart : Headline.
Proof.
  intros Lease Page Rank Chan eqL eqP eqR eqC Part s R; apply promise.
  induction R; [apply init_inv|eapply step_inv; eauto].
Qed.
