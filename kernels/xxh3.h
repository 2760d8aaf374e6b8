/* XXH3-64, seed 0, default secret, written from the published description of the algorithm. Two forms: over a reader by one warp, where
 * every lane gets the result, and of a whole chunk that the lanes hold in registers.
 *
 * Long inputs (above 240 bytes) keep eight accumulators. Within a block of 1,024 bytes (16 stripes of 64) they only gain sums, so the lanes
 * add their 16-byte units in any order and the warp reduces once a block. Unit j of a stripe (j = 0..3) feeds the accumulators 2j and 2j+1
 * and no others; lane t of every warp only ever meets units with j = t mod 4. So a lane carries one pair of accumulators.
 *
 * A reader has u8, u32, u64 and unit (16 bytes) at a byte offset; all but the last two are used for short inputs only. */
#ifndef KVF_XXH3_H
#define KVF_XXH3_H

#include "compat.h"

#define KVF_P32_1 0x9E3779B1ull
#define KVF_P32_2 0x85EBCA77ull
#define KVF_P32_3 0xC2B2AE3Dull
#define KVF_P64_1 0x9E3779B185EBCA87ull
#define KVF_P64_2 0xC2B2AE3D27D4EB4Full
#define KVF_P64_3 0x165667B19E3779F9ull
#define KVF_P64_4 0x85EBCA77C2B2AE63ull
#define KVF_P64_5 0x27D4EB2F165667C5ull
#define KVF_MX_1 0x165667919E3779F9ull
#define KVF_MX_2 0x9FB21C651E98DF25ull

/* The default secret of 192 bytes, as little-endian words. */
KVF_TABLE uint64_t kvf_secret_words[24] = {
    0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072, 0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82,
    0x8e2443f7744608b8, 0x4c263a81e69035e0, 0xcb00c391bb52283c, 0xa32e531b8b65d088, 0x4ef90da297486471, 0xd8acdea946ef1938,
    0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a, 0x647378d9c97e9fc8, 0xc3ebd33483acc5ea, 0xeb6313faffa081c5,
    0x49daf0b751dd0d17, 0x9e68d429265516d3, 0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af};

KVF_TABLE uint64_t kvf_first_sums[8] = {KVF_P32_3, KVF_P64_1, KVF_P64_2, KVF_P64_3, KVF_P64_4, KVF_P32_2, KVF_P64_5, KVF_P32_1};

/* 8 bytes of the secret at any byte offset up to 184. */
KVF_FN uint64_t kvf_secret(uint32_t at) {
  uint64_t w = kvf_secret_words[at / 8];
  uint32_t cut = 8 * (at % 8);
  return cut == 0 ? w : w >> cut | kvf_secret_words[at / 8 + 1] << (64 - cut);
}

KVF_FN uint64_t kvf_fold(uint64_t a, uint64_t b) { return a * b ^ kvf_mul_high(a, b); }

KVF_FN uint64_t kvf_avalanche(uint64_t h) {
  h ^= h >> 37;
  h *= KVF_MX_1;
  return h ^ h >> 32;
}

/* The finish that XXH64 has, used for the shortest inputs. */
KVF_FN uint64_t kvf_avalanche_64(uint64_t h) {
  h ^= h >> 33;
  h *= KVF_P64_2;
  h ^= h >> 29;
  h *= KVF_P64_3;
  return h ^ h >> 32;
}

KVF_FN uint64_t kvf_rotate(uint64_t v, uint32_t n) { return v << n | v >> (64 - n); }

KVF_FN uint64_t kvf_swap(uint64_t v) {
  v = (v & 0x00ff00ff00ff00ffull) << 8 | (v >> 8 & 0x00ff00ff00ff00ffull);
  v = (v & 0x0000ffff0000ffffull) << 16 | (v >> 16 & 0x0000ffff0000ffffull);
  return v << 32 | v >> 32;
}

template <class Reader>
KVF_FN uint64_t kvf_mix(const Reader &r, uint32_t at, uint32_t secret) {
  return kvf_fold(r.u64(at) ^ kvf_secret(secret), r.u64(at + 8) ^ kvf_secret(secret + 8));
}

template <class Reader>
KVF_FN uint64_t kvf_hash_16(const Reader &r, uint32_t n) {
  if (n > 8) {
    uint64_t lo = r.u64(0) ^ kvf_secret(24) ^ kvf_secret(32), hi = r.u64(n - 8) ^ kvf_secret(40) ^ kvf_secret(48);
    return kvf_avalanche(n + kvf_swap(lo) + hi + kvf_fold(lo, hi));
  }
  if (n >= 4) {
    uint64_t h = ((uint64_t)r.u32(0) << 32 | r.u32(n - 4)) ^ kvf_secret(8) ^ kvf_secret(16);
    h ^= kvf_rotate(h, 49) ^ kvf_rotate(h, 24);
    h *= KVF_MX_2;
    h ^= (h >> 35) + n;
    h *= KVF_MX_2;
    return h ^ h >> 28;
  }
  if (n > 0) {
    uint64_t v = (uint64_t)r.u8(0) << 16 | (uint64_t)r.u8(n >> 1) << 24 | r.u8(n - 1) | n << 8;
    return kvf_avalanche_64(v ^ (uint32_t)(kvf_secret(0) ^ kvf_secret(0) >> 32));
  }
  return kvf_avalanche_64(kvf_secret(56) ^ kvf_secret(64));
}

/* Up to 240 bytes, by each lane alone. Its loops stay loops: they run once a part, and unrolled they would take registers from the rest. */
template <class Reader>
KVF_FN uint64_t kvf_hash_short(const Reader &r, uint32_t n) {
  if (n <= 16) return kvf_hash_16(r, n);
  uint64_t h = n * KVF_P64_1;
  if (n <= 128) {
  KVF_ROLLED
    for (uint32_t k = (n - 1) / 32; k > 0; k--) h += kvf_mix(r, 16 * k, 32 * k) + kvf_mix(r, n - 16 * k - 16, 32 * k + 16);
    return kvf_avalanche(h + kvf_mix(r, 0, 0) + kvf_mix(r, n - 16, 16));
  }
  KVF_ROLLED
  for (uint32_t k = 0; k < 8; k++) h += kvf_mix(r, 16 * k, 16 * k);
  h = kvf_avalanche(h);
  KVF_ROLLED
  for (uint32_t k = 8; k < n / 16; k++) h += kvf_mix(r, 16 * k, 16 * (k - 8) + 3);
  return kvf_avalanche(h + kvf_mix(r, n - 16, 136 - 17));
}

/* One pair of accumulators, or what units add to them. */
struct kvf_pair {
  uint64_t even, odd;
};

KVF_FN void kvf_accumulate(kvf_pair &s, kvf_u128 v, uint64_t key_even, uint64_t key_odd) {
  key_even ^= v.lo;
  key_odd ^= v.hi;
  s.even += v.hi + (uint64_t)(uint32_t)key_even * (key_even >> 32);
  s.odd += v.lo + (uint64_t)(uint32_t)key_odd * (key_odd >> 32);
}

/* The sums of all lanes with the same lane mod 4, in each of them. */
KVF_FN kvf_pair kvf_reduce(kvf_pair s) {
  KVF_UNROLL
  for (uint32_t mask = 4; mask < KVF_WARP; mask *= 2) {
    s.even += kvf_shuffle_xor64(s.even, mask);
    s.odd += kvf_shuffle_xor64(s.odd, mask);
  }
  return s;
}

/* The accumulators of this lane through the stream of blocks. */
struct kvf_long {
  kvf_pair sums;
  uint64_t scramble_even, scramble_odd;
};

KVF_FN kvf_long kvf_long_begin() {
  uint32_t j = kvf_lane() % 4;
  return {{kvf_first_sums[2 * j], kvf_first_sums[2 * j + 1]}, kvf_secret(128 + 16 * j), kvf_secret(136 + 16 * j)};
}

KVF_FN void kvf_long_add(kvf_long &h, kvf_pair block) {
  h.sums.even += block.even;
  h.sums.odd += block.odd;
}

KVF_FN void kvf_long_scramble(kvf_long &h) {
  h.sums.even = (h.sums.even ^ h.sums.even >> 47 ^ h.scramble_even) * KVF_P32_1;
  h.sums.odd = (h.sums.odd ^ h.sums.odd >> 47 ^ h.scramble_odd) * KVF_P32_1;
}

KVF_FN uint64_t kvf_long_end(const kvf_long &h, uint32_t n) {
  uint32_t j = kvf_lane() % 4;
  uint64_t v = kvf_fold(h.sums.even ^ kvf_secret(11 + 16 * j), h.sums.odd ^ kvf_secret(19 + 16 * j));
  v += kvf_shuffle_xor64(v, 1);
  v += kvf_shuffle_xor64(v, 2);
  return kvf_avalanche(v + n * KVF_P64_1);
}

/* Offset in the secret of the key of a block's stripe, and of the input's last 64 bytes. */
KVF_FN uint32_t kvf_stripe_secret(uint32_t stripe) { return 8 * stripe; }
#define KVF_LAST_SECRET 121

/* Any length, by one warp; the result in every lane. */
template <class Reader>
KVF_FN uint64_t kvf_hash(const Reader &r, uint32_t n) {
  if (n <= 240) return kvf_hash_short(r, n);
  uint32_t lane = kvf_lane(), j = 16 * (lane % 4), stripes = (n - 1) / 64, blocks = (n - 1) / 1024;
  kvf_long h = kvf_long_begin();
  KVF_ROLLED
  for (uint32_t b = 0; b <= blocks; b++) {
    kvf_pair s = {0, 0};
  KVF_ROLLED
    for (uint32_t u = lane; u < 64; u += KVF_WARP) {
      uint32_t key = kvf_stripe_secret(u / 4) + j;
      if (16 * b + u / 4 < stripes) kvf_accumulate(s, r.unit(1024 * b + 16 * u), kvf_secret(key), kvf_secret(key + 8));
    }
    if (b == blocks && lane < 4) kvf_accumulate(s, r.unit(n - 64 + j), kvf_secret(KVF_LAST_SECRET + j), kvf_secret(KVF_LAST_SECRET + j + 8));
    kvf_long_add(h, kvf_reduce(s));
    if (b < blocks) kvf_long_scramble(h);
  }
  return kvf_long_end(h, n);
}

/* 16-byte units of a chunk that one lane holds: unit r*KVF_WARP + lane in v[r]. */
#define KVF_HELD (KVF_CHUNK / 16 / KVF_WARP)

/* A whole chunk out of registers, by one warp. Its last stripe is the last of its last block, only with another key. */
KVF_FN uint64_t kvf_hash_chunk(const kvf_u128 (&v)[KVF_HELD]) {
  const uint32_t rounds = 64 / KVF_WARP; /* of v that make a block */
  uint32_t lane = kvf_lane(), j = 16 * (lane % 4);
  kvf_long h = kvf_long_begin();
  KVF_UNROLL
  for (uint32_t b = 0; b < 4; b++) {
    kvf_pair s = {0, 0};
    KVF_UNROLL
    for (uint32_t k = 0; k < rounds; k++) {
      uint32_t stripe = (k * KVF_WARP + lane) / 4;
      uint32_t key = (b == 3 && stripe == 15 ? KVF_LAST_SECRET : kvf_stripe_secret(stripe)) + j;
      kvf_accumulate(s, v[b * rounds + k], kvf_secret(key), kvf_secret(key + 8));
    }
    kvf_long_add(h, kvf_reduce(s));
    if (b < 3) kvf_long_scramble(h);
  }
  return kvf_long_end(h, KVF_CHUNK);
}

#endif
