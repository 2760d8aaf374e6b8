/* Parts of pages: where byte q of the canonical string lies, and one chunk of it read, stored elsewhere and hashed by one warp.
 *
 * A chunk that is whole, with 16-byte units on both sides, goes through registers. Any other (the last one of a part, odd sizes, odd
 * strides) goes through KVF_CHUNK bytes of shared memory that belong to the warp, byte by byte where a side has no 16-byte units. */
#ifndef KVF_PART_H
#define KVF_PART_H

#include "xxh3.h"

/* One side of a move. single: the whole string lies in one run at `page`. wide: every 16 bytes of the string that begin at a multiple
 * of 16 lie together, at a multiple of 16. */
struct kvf_side {
  kvf_cut cut;
  uint64_t page;   /* address of the page, or of the run */
  uint64_t layers; /* with KVF_CUT_LAYERED: address of the bases from cut.layer on; page is then an offset */
  bool single, wide;
};

KVF_FN uint32_t kvf_quotient(const kvf_div &v, uint32_t n) { return v.m == 0 ? n : kvf_mul_high32(n, v.m) >> v.s; }

/* The address of byte q. */
KVF_FN uint64_t kvf_locate(const kvf_side &s, uint32_t q) {
  if (s.single) return s.page + q;
  uint32_t r = kvf_quotient(s.cut.run, q);
  uint64_t at = s.page + (q - r * s.cut.run.d);
  KVF_UNROLL
  for (uint32_t k = 0; k < 3; k++) {
    uint32_t next = kvf_quotient(s.cut.n[k], r);
    at += (r - next * s.cut.n[k].d) * s.cut.stride[k];
    r = next;
  }
  return s.layers != 0 ? at + kvf_load8(s.layers + 8 * (uint64_t)r) : at + r * s.cut.stride[3];
}

KVF_FN kvf_div kvf_load_div(uint64_t a) { return {kvf_load4(a), kvf_load4(a + 4), kvf_load4(a + 8)}; }

/* A side in pages. False: the page, the cut or its size is not what the item says. */
KVF_FN bool kvf_open_page(kvf_side &s, const kvf_view &v, uint64_t cuts, uint32_t n_cuts, uint32_t page, uint32_t cut, uint32_t used) {
  if (page >= v.pages || cut >= n_cuts) return false;
  uint64_t a = cuts + sizeof(kvf_cut) * (uint64_t)cut;
  s.cut.offset = kvf_load8(a);
  KVF_UNROLL
  for (uint32_t k = 0; k < 4; k++) s.cut.stride[k] = kvf_load8(a + offsetof(kvf_cut, stride) + 8 * k);
  s.cut.run = kvf_load_div(a + offsetof(kvf_cut, run));
  KVF_UNROLL
  for (uint32_t k = 0; k < 3; k++) s.cut.n[k] = kvf_load_div(a + offsetof(kvf_cut, n) + sizeof(kvf_div) * k);
  s.cut.used = kvf_load4(a + offsetof(kvf_cut, used));
  s.cut.flags = kvf_load4(a + offsetof(kvf_cut, flags));
  s.cut.layer = kvf_load4(a + offsetof(kvf_cut, layer));
  bool layered = (s.cut.flags & KVF_CUT_LAYERED) != 0;
  if (s.cut.used != used || layered != (v.layers != 0)) return false;
  s.page = v.base + page * v.stride + s.cut.offset;
  s.layers = layered ? v.layers + 8 * (uint64_t)s.cut.layer : 0;
  s.single = !layered && s.cut.run.d == used;
  s.wide = (s.cut.flags & KVF_CUT_ALIGNED) != 0 && (v.flags & KVF_VIEW_ALIGNED) != 0;
  return true;
}

/* A side in staging: `used` bytes from offset `flat` on. */
KVF_FN void kvf_open_flat(kvf_side &s, const kvf_view &v, uint64_t flat) {
  s.page = v.base + flat;
  s.layers = 0;
  s.single = true;
  s.wide = (v.flags & KVF_VIEW_ALIGNED) != 0 && flat % 16 == 0;
}

/* The bytes of a chunk in shared memory; at is below 2^12. Words are read whole, so the buffer is, too. */
struct kvf_staged {
  kvf_shared p;
  uint32_t base; /* of this warp's buffer */
  KVF_FN_MEMBER uint32_t u8(uint32_t at) const { return kvf_shared_load1(p, base + at); }
  KVF_FN_MEMBER uint64_t u64(uint32_t at) const {
    uint32_t cut = 8 * (at % 8), word = base + (at & ~7u);
    uint64_t v = kvf_shared_load8(p, word);
    return cut == 0 ? v : v >> cut | kvf_shared_load8(p, word + 8) << (64 - cut);
  }
  KVF_FN_MEMBER uint32_t u32(uint32_t at) const { return u8(at) | u8(at + 1) << 8 | u8(at + 2) << 16 | u8(at + 3) << 24; }
  KVF_FN_MEMBER kvf_u128 unit(uint32_t at) const { return {u64(at), u64(at + 8)}; }
};

KVF_FN void kvf_chunk_in(const kvf_staged &b, const kvf_side &from, uint32_t q, uint32_t n) {
  if (from.wide && n % 16 == 0) {
    for (uint32_t k = 16 * kvf_lane(); k < n; k += 16 * KVF_WARP) kvf_shared_store16(b.p, b.base + k, kvf_load16_once(kvf_locate(from, q + k)));
    return;
  }
  KVF_ROLLED
  for (uint32_t k = kvf_lane(); k < n; k += KVF_WARP) kvf_shared_store1(b.p, b.base + k, kvf_load1(kvf_locate(from, q + k)));
}

KVF_FN void kvf_chunk_out(const kvf_staged &b, const kvf_side &to, uint32_t q, uint32_t n) {
  if (to.wide && n % 16 == 0) {
    for (uint32_t k = 16 * kvf_lane(); k < n; k += 16 * KVF_WARP) kvf_store16_once(kvf_locate(to, q + k), kvf_shared_load16(b.p, b.base + k));
    return;
  }
  KVF_ROLLED
  for (uint32_t k = kvf_lane(); k < n; k += KVF_WARP) kvf_store1(kvf_locate(to, q + k), kvf_shared_load1(b.p, b.base + k));
}

/* The chunk of n bytes from q on, by one warp: read once, stored to `to` if Stores, hashed as it was read. The value in every lane. */
template <bool Stores>
KVF_FN uint64_t kvf_chunk(const kvf_staged &b, const kvf_side &from, const kvf_side &to, uint32_t q, uint32_t n) {
  if (n == KVF_CHUNK && from.wide && (!Stores || to.wide)) {
    kvf_u128 v[KVF_HELD];
    KVF_UNROLL
    for (uint32_t k = 0; k < KVF_HELD; k++) v[k] = kvf_load16_once(kvf_locate(from, q + 16 * (k * KVF_WARP + kvf_lane())));
    if (Stores) {
      KVF_UNROLL
      for (uint32_t k = 0; k < KVF_HELD; k++) kvf_store16_once(kvf_locate(to, q + 16 * (k * KVF_WARP + kvf_lane())), v[k]);
    }
    return kvf_hash_chunk(v);
  }
  kvf_chunk_in(b, from, q, n);
  kvf_sync_warp(); /* the buffer is full */
  if (Stores) kvf_chunk_out(b, to, q, n);
  uint64_t value = kvf_hash(b, n);
  kvf_sync_warp(); /* nobody reads it any more: the next chunk may fill it */
  return value;
}

#endif
