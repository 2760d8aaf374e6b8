/* What digest, gather, scatter and convert share: blocks to items, the chunks of a slice, and the end of an item.
 *
 * Block b works on slice b mod slices of item b / slices; its warps take the slice's chunks in turn. Each warp stores its chunks' values and
 * then counts them; the warp whose count completes the item hashes header and values (spec/tags-and-digests.md) and ends the item. So a
 * launch needs no second kernel. Counters are back at zero when the launch ends.
 *
 * Order. (1) A warp's values, and its bytes in the destination, are stored before its count: kvf_fence_device by every lane. (2) What the
 * completing warp reads after the count is not older: kvf_fence_device again. (3) A tag is stored after every byte that it vouches for
 * (protocol: tags are written after the bytes; invariant of spec/tags-and-digests.md): kvf_fence_system, since a reader may be another
 * process or device. With (1) that holds for the bytes of all warps. */
#ifndef KVF_ITEM_H
#define KVF_ITEM_H

#include "part.h"

enum kvf_where { KVF_NOWHERE, KVF_PAGES, KVF_STAGING };

/* Header and chunk values as one string of words. */
struct kvf_values {
  uint64_t label, tokens, used; /* the header's 24 bytes */
  uint64_t values;              /* address of the item's first value */
  KVF_FN_MEMBER uint64_t u64(uint32_t at) const {
    if (at >= 24) return kvf_load8_fresh(values + at - 24);
    return at == 0 ? label : at == 8 ? tokens : used;
  }
  KVF_FN_MEMBER kvf_u128 unit(uint32_t at) const { return {u64(at), u64(at + 8)}; }
  KVF_FN_MEMBER uint32_t u8(uint32_t) const { return 0; }  /* the string is never shorter than 24 bytes */
  KVF_FN_MEMBER uint32_t u32(uint32_t) const { return 0; }
};

#define KVF_DIGEST_LABEL 0x3144564bull /* "KVD1" */

KVF_FN kvf_item kvf_load_item(uint64_t a) {
  kvf_item i;
  i.flat = kvf_load8(a + offsetof(kvf_item, flat));
  i.src_page = kvf_load4(a + offsetof(kvf_item, src_page));
  i.src_cut = kvf_load4(a + offsetof(kvf_item, src_cut));
  i.dst_page = kvf_load4(a + offsetof(kvf_item, dst_page));
  i.dst_cut = kvf_load4(a + offsetof(kvf_item, dst_cut));
  i.component = kvf_load4(a + offsetof(kvf_item, component));
  i.token_lo = kvf_load4(a + offsetof(kvf_item, token_lo));
  i.token_hi = kvf_load4(a + offsetof(kvf_item, token_hi));
  i.used = kvf_load4(a + offsetof(kvf_item, used));
  i.first = kvf_load4(a + offsetof(kvf_item, first));
  i.slot = kvf_load4(a + offsetof(kvf_item, slot));
  i.want = kvf_load4(a + offsetof(kvf_item, want));
  return i;
}

template <kvf_where Place>
KVF_FN bool kvf_open(kvf_side &s, const kvf_view &v, const kvf_move_args &a, const kvf_item &i, uint32_t page, uint32_t cut) {
  if (Place == KVF_PAGES) return kvf_open_page(s, v, a.cuts, a.n_cuts, page, cut, i.used);
  if (Place == KVF_STAGING) kvf_open_flat(s, v, i.flat);
  return true;
}

/* Counts `done` more chunks of item `at`. True in every lane of the warp that completes it. */
KVF_FN bool kvf_completes(const kvf_move_args &a, uint32_t at, uint32_t done, uint32_t chunks) {
  kvf_fence_device(); /* (1) */
  kvf_sync_warp();
  uint64_t counter = a.counters + 4 * (uint64_t)at;
  uint32_t before = 0;
  if (kvf_lane() == 0) before = kvf_atomic_add(counter, done);
  if (kvf_shuffle32(before, 0) + done != chunks) return false;
  kvf_fence_device(); /* (2) */
  if (kvf_lane() == 0) kvf_store4(counter, 0);
  return true;
}

/* The tag of the item, if its digest and size are the wanted ones'. */
template <bool Tags>
KVF_FN uint32_t kvf_end_tag(const kvf_move_args &a, const kvf_item &i, uint64_t digest) {
  if (!Tags || i.slot == KVF_NONE) return KVF_ITEM_DONE;
  uint64_t want = a.wants + KVF_TAG_BYTES * (uint64_t)i.want;
  bool has_digest = (kvf_load8(want + 16) >> 16 & 1) != 0;
  if (kvf_load4(want + 48) != i.used || (has_digest && kvf_load8(want + 40) != digest)) return KVF_ITEM_DIFFERS;
  kvf_fence_system(); /* (3) */
  kvf_sync_warp();
  uint32_t k = 16 * kvf_lane();
  if (k < KVF_TAG_BYTES) kvf_store16(a.tags + KVF_TAG_BYTES * (uint64_t)i.slot + k, kvf_load16(want + k));
  return KVF_ITEM_DONE;
}

KVF_FN void kvf_store_result(const kvf_move_args &a, uint32_t at, uint64_t digest, uint32_t state) {
  uint64_t r = a.results + sizeof(kvf_result) * (uint64_t)at;
  kvf_store8(r, digest);
  kvf_store4(r + offsetof(kvf_result, state), state);
}

/* The body of a kernel; stage is KVF_WARPS*KVF_CHUNK bytes. */
template <kvf_where From, kvf_where To, bool Tags>
KVF_FN void kvf_move(const kvf_move_args &a, kvf_shared stage) {
  uint32_t at = kvf_block() / a.slices, slice = kvf_block() % a.slices;
  kvf_item i = kvf_load_item(a.items + sizeof(kvf_item) * (uint64_t)at);
  kvf_side from, to;
  bool good = kvf_open<From>(from, a.src, a, i, i.src_page, i.src_cut) && kvf_open<To>(to, a.dst, a, i, i.dst_page, i.dst_cut);
  if (Tags && i.slot != KVF_NONE) good = good && i.slot < a.n_tags && i.want < a.n_wants;
  if (!good) {
    if (slice == 0 && kvf_thread() == 0) kvf_store_result(a, at, 0, KVF_ITEM_REFUSED);
    return;
  }
  uint32_t chunks = (i.used + KVF_CHUNK - 1) / KVF_CHUNK, end = kvf_min((slice + 1) * a.slice_chunks, chunks), done = 0;
  kvf_staged b = {stage, KVF_CHUNK * kvf_warp()};
  kvf_values v = {KVF_DIGEST_LABEL | (uint64_t)i.component << 32, i.token_lo | (uint64_t)i.token_hi << 32, i.used, a.values + 8 * (uint64_t)i.first};
  for (uint32_t c = slice * a.slice_chunks + kvf_warp(); c < end; c += KVF_WARPS, done++) {
    uint64_t value = kvf_chunk<To != KVF_NOWHERE>(b, from, to, c * KVF_CHUNK, kvf_min(KVF_CHUNK, i.used - c * KVF_CHUNK));
    if (kvf_lane() == 0) kvf_store8(v.values + 8 * (uint64_t)c, value);
  }
  if (chunks == 0 ? kvf_block() % a.slices + kvf_warp() != 0 : done == 0) return;
  if (chunks != 0 && !kvf_completes(a, at, done, chunks)) return;
  uint64_t digest = kvf_hash(v, 24 + 8 * chunks);
  uint32_t state = kvf_end_tag<Tags>(a, i, digest);
  if (kvf_lane() == 0) kvf_store_result(a, at, digest, state);
}

#endif
