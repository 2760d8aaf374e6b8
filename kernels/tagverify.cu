/* kvf_tagverify: every tag of a decode step's block table against what the ledger expects there: one launch, before the step and again after
 * it. The page is taken from the block table that the step itself uses, so a wrong table is found as surely as a wrong page: the expected
 * tag belongs to the place in the table.
 *
 * Grid      blocks = capacity / KVF_VERIFY_ENTRIES, rounded up, of KVF_THREADS; four lanes check one entry, 16 bytes each.
 * Reads     count; wants [capacity]; table [table_len]; tags [pages, tag_slots, 64], 16-byte aligned.
 * Writes    flag; report; blocks and state are scratch that the next launch finds ready. Offenders are those with the lowest entries.
 * Aliasing  nothing overlaps. Launches that share state, blocks, flag or report are ordered by their stream.
 * Order     each block leaves its offenders and totals, kvf_fence_device, then counts itself; the block that completes the count sees all
 *           of them after a fence of its own, and alone stores verdict and report: no flag before every entry was checked. Flag and the
 *           report's step come last, behind kvf_fence_system (the report is the host's). Tags are read past the caches; whatever makes a
 *           transfer's bytes visible (protocol, Drain) has ended before the launch.
 * Capture   all that changes from step to step (count, wants, table) is read from memory: a captured launch serves every step. */
#include "xxh3.h"

/* States of an entry in shared memory beside KVF_TAG_*. */
#define KVF_TAG_UNCHECKED KVF_TAG_STATES

/* 64 bytes that a lane holds as words; only whole words are asked for. */
struct kvf_slot {
  uint64_t w[8];
  KVF_FN_MEMBER uint64_t u64(uint32_t at) const { return w[at / 8]; }
  KVF_FN_MEMBER uint32_t u32(uint32_t) const { return 0; }
  KVF_FN_MEMBER uint32_t u8(uint32_t) const { return 0; }
};

/* What differs has which state: by the eight words of the slot, spread over the four lanes of its group. */
KVF_FN uint32_t kvf_differing(kvf_u128 tag) {
  kvf_slot s;
  uint32_t group = kvf_lane() & ~3u;
  uint64_t any = 0;
  KVF_UNROLL
  for (uint32_t k = 0; k < 4; k++) {
    s.w[2 * k] = kvf_shuffle64(tag.lo, group + k);
    s.w[2 * k + 1] = kvf_shuffle64(tag.hi, group + k);
    any |= s.w[2 * k] | s.w[2 * k + 1];
  }
  if (any == 0) return KVF_TAG_VOID;
  uint64_t h = 56 * KVF_P64_1 + kvf_mix(s, 0, 0) + kvf_mix(s, 40, 16) + kvf_mix(s, 16, 32) + kvf_mix(s, 24, 48);
  return kvf_avalanche(h) == s.w[7] ? KVF_TAG_FOREIGN : KVF_TAG_TORN;
}

/* One entry by four lanes, all lanes of the warp at once; live: the entry is to be checked. */
KVF_FN uint32_t kvf_check(const kvf_verify_args &a, uint32_t entry, bool live, uint32_t &page, uint32_t &slot) {
  uint32_t quarter = 16 * (kvf_lane() % 4);
  kvf_u128 want = {0, 0}, tag = {0, 0};
  bool outside = false;
  page = KVF_NONE;
  slot = 0;
  if (live) {
    uint64_t w = a.wants + sizeof(kvf_want) * (uint64_t)entry;
    kvf_u128 where = kvf_load16(w + offsetof(kvf_want, at));
    slot = (uint32_t)(where.lo >> 32);
    live = (uint32_t)where.hi != 0;
    if (live && (uint32_t)where.lo < a.table_len) page = kvf_load4_fresh(a.table + 4 * (where.lo & 0xffffffffu));
    outside = page >= a.pages || slot >= a.tag_slots;
    if (live && !outside) {
      want = kvf_load16(w + quarter);
      tag = kvf_load16_fresh(a.tags + KVF_TAG_BYTES * ((uint64_t)page * a.tag_slots + slot) + quarter);
    }
  }
  uint32_t differs = want.lo != tag.lo || want.hi != tag.hi;
  differs |= kvf_shuffle_xor32(differs, 1);
  differs |= kvf_shuffle_xor32(differs, 2);
  uint32_t state = KVF_TAG_GOOD;
  if (kvf_ballot(differs != 0) != 0) { /* rare: the whole warp looks closer */
    uint32_t other = kvf_differing(tag);
    if (differs != 0) state = other;
  }
  if (outside) state = KVF_TAG_OUTSIDE;
  return live ? state : (uint32_t)KVF_TAG_UNCHECKED;
}

/* The block's entries: their states and pages into shared memory. */
KVF_FN void kvf_check_block(const kvf_verify_args &a, kvf_shared states, kvf_shared pages, kvf_shared slots) {
  uint32_t count = kvf_load4_fresh(a.count);
  if (count > a.capacity) count = 0; /* the last block says so */
  KVF_UNROLL
  for (uint32_t k = 0; k < 4; k++) {
    uint32_t local = k * (KVF_VERIFY_ENTRIES / 4) + kvf_thread() / 4, entry = kvf_block() * KVF_VERIFY_ENTRIES + local, page, slot;
    uint32_t state = kvf_check(a, entry, entry < count, page, slot);
    if (kvf_lane() % 4 == 0) {
      kvf_shared_store4(states, 4 * local, state);
      kvf_shared_store4(pages, 4 * local, page);
      kvf_shared_store4(slots, 4 * local, slot);
    }
  }
}

KVF_FN void kvf_store_offender(uint64_t list, uint32_t at, uint64_t entry_page, uint64_t slot_state) {
  kvf_store8(list + sizeof(kvf_offender) * (uint64_t)at, entry_page);
  kvf_store8(list + sizeof(kvf_offender) * (uint64_t)at + 8, slot_state);
}

/* By the block's first warp: totals and first offenders of the block. */
KVF_FN void kvf_sum_block(const kvf_verify_args &a, kvf_shared states, kvf_shared pages, kvf_shared slots) {
  uint64_t record = a.blocks + sizeof(kvf_verify_block) * (uint64_t)kvf_block();
  uint32_t totals[KVF_TAG_STATES] = {0, 0, 0, 0, 0}, kept = 0;
  for (uint32_t local = kvf_lane(); local < KVF_VERIFY_ENTRIES; local += KVF_WARP) {
    uint32_t state = kvf_shared_load4(states, 4 * local);
    bool bad = state != KVF_TAG_GOOD && state != KVF_TAG_UNCHECKED;
    KVF_UNROLL
    for (uint32_t s = 0; s < KVF_TAG_STATES; s++) totals[s] += kvf_bits64(kvf_ballot(state == s));
    uint64_t all = kvf_ballot(bad);
    uint32_t place = kept + kvf_bits64(all & ((1ull << kvf_lane()) - 1));
    if (bad && place < KVF_OFFENDERS) {
      uint32_t entry = kvf_block() * KVF_VERIFY_ENTRIES + local;
      kvf_store_offender(record + offsetof(kvf_verify_block, offenders), place, entry | (uint64_t)kvf_shared_load4(pages, 4 * local) << 32,
                         kvf_shared_load4(slots, 4 * local) | (uint64_t)state << 32);
    }
    kept = kvf_min(KVF_OFFENDERS, kept + kvf_bits64(all));
  }
  if (kvf_lane() == 0) {
    kvf_store4(record, kept);
    KVF_UNROLL
    for (uint32_t s = 0; s < KVF_TAG_STATES; s++) {
      if (totals[s] != 0) kvf_atomic_add(a.state + offsetof(kvf_verify_state, states) + 4 * s, totals[s]);
    }
  }
}

/* By the last block's first warp: the offenders of all blocks, in order of entries, into the report. Returns how many. */
KVF_FN uint32_t kvf_collect(const kvf_verify_args &a) {
  uint32_t kept = 0;
  for (uint32_t first = 0; first < kvf_blocks() && kept < KVF_OFFENDERS; first += KVF_WARP) {
    uint32_t own = 0;
    if (first + kvf_lane() < kvf_blocks()) own = kvf_load4_fresh(a.blocks + sizeof(kvf_verify_block) * (uint64_t)(first + kvf_lane()));
    for (uint64_t left = kvf_ballot(own != 0); left != 0 && kept < KVF_OFFENDERS; left &= left - 1) {
      uint32_t k = kvf_lowest64(left), n = kvf_min(kvf_shuffle32(own, k), KVF_OFFENDERS - kept), lane = kvf_lane();
      uint64_t list = a.blocks + sizeof(kvf_verify_block) * (uint64_t)(first + k) + offsetof(kvf_verify_block, offenders) + sizeof(kvf_offender) * lane;
      if (lane < n) kvf_store_offender(a.report + offsetof(kvf_report, offenders), kept + lane, kvf_load8_fresh(list), kvf_load8_fresh(list + 8));
      kept += n;
    }
  }
  return kept;
}

/* By the last block's first warp: totals out of the state and back to zero, report, flag. */
KVF_FN void kvf_verdict(const kvf_verify_args &a) {
  uint32_t lane = kvf_lane(), mine = 0, count = kvf_load4_fresh(a.count);
  if (lane < KVF_TAG_STATES) {
    uint64_t total = a.state + offsetof(kvf_verify_state, states) + 4 * lane;
    mine = kvf_load4_fresh(total);
    kvf_store4(total, 0);
    if (count > a.capacity && lane == KVF_TAG_OUTSIDE) mine = count;
    kvf_store4(a.report + offsetof(kvf_report, states) + 4 * lane, mine);
  }
  uint32_t checked = 0;
  KVF_UNROLL
  for (uint32_t s = 0; s < KVF_TAG_STATES; s++) checked += kvf_shuffle32(mine, s);
  uint32_t bad = checked - kvf_shuffle32(mine, KVF_TAG_GOOD), kept = bad == 0 ? 0 : kvf_collect(a);
  uint64_t step = kvf_load8_fresh(a.state) + 1;
  kvf_sync_warp(); /* every lane has read the step */
  if (lane == 0) {
    kvf_store8(a.state, step);
    kvf_store4(a.state + offsetof(kvf_verify_state, done), 0);
    kvf_store4(a.report + offsetof(kvf_report, checked), checked);
    kvf_store4(a.report + offsetof(kvf_report, bad), bad);
    kvf_store4(a.report + offsetof(kvf_report, kept), kept);
  }
  kvf_fence_system();
  kvf_sync_warp();
  if (lane == 0) {
    kvf_store4(a.flag, bad == 0 ? KVF_FLAG_GOOD : KVF_FLAG_BAD);
    kvf_store8(a.report + offsetof(kvf_report, step), step);
  }
}

KVF_KERNEL(kvf_tagverify, kvf_verify_args) {
  KVF_SHARED(states, 4 * KVF_VERIFY_ENTRIES);
  KVF_SHARED(pages, 4 * KVF_VERIFY_ENTRIES);
  KVF_SHARED(slots, 4 * KVF_VERIFY_ENTRIES);
  kvf_check_block(a, states, pages, slots);
  kvf_sync_block();
  if (kvf_warp() != 0) return;
  kvf_sum_block(a, states, pages, slots);
  kvf_fence_device();
  kvf_sync_warp();
  uint32_t before = 0;
  if (kvf_lane() == 0) before = kvf_atomic_add(a.state + offsetof(kvf_verify_state, done), 1);
  if (kvf_shuffle32(before, 0) + 1 != kvf_blocks()) return;
  kvf_fence_device();
  kvf_verdict(a);
}
