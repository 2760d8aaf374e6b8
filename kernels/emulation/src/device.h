/* The words of compat.h for the emulation. KVF_WARP comes from the compiler's command line. Each word that touches memory or other threads
 * is a call into the running machine (machine.h), which checks it and may let another thread run. */
#ifndef KVF_EMULATION_DEVICE_H
#define KVF_EMULATION_DEVICE_H

#include <string.h>

#define KVF_FN static inline
#define KVF_FN_MEMBER
#define KVF_TABLE static const
#define KVF_KERNEL(name, args) extern "C" void name(const args a)
#define KVF_UNROLL
#define KVF_ROLLED

extern "C" {
uint32_t kvf_emu_thread();
uint32_t kvf_emu_block();
uint32_t kvf_emu_blocks();
void kvf_emu_load(uint64_t a, void *v, uint32_t n);
void kvf_emu_store(uint64_t a, const void *v, uint32_t n);
uint32_t kvf_emu_atomic_add(uint64_t a, uint32_t v);
uint64_t kvf_emu_shared(uint32_t id, uint32_t bytes);
void kvf_emu_shared_load(uint64_t p, uint32_t at, void *v, uint32_t n);
void kvf_emu_shared_store(uint64_t p, uint32_t at, const void *v, uint32_t n);
uint32_t kvf_emu_shuffle_xor(uint32_t v, uint32_t mask);
uint32_t kvf_emu_shuffle(uint32_t v, uint32_t lane);
uint64_t kvf_emu_ballot(uint32_t v);
void kvf_emu_sync_warp();
void kvf_emu_sync_block();
void kvf_emu_fence(int system);
}

typedef uint64_t kvf_shared;
#define KVF_SHARED(name, bytes) const kvf_shared name = kvf_emu_shared(__COUNTER__, bytes)

KVF_FN uint32_t kvf_thread() { return kvf_emu_thread(); }
KVF_FN uint32_t kvf_block() { return kvf_emu_block(); }
KVF_FN uint32_t kvf_blocks() { return kvf_emu_blocks(); }

template <class T>
KVF_FN T kvf_emu_get(uint64_t a) {
  T v;
  kvf_emu_load(a, &v, sizeof v);
  return v;
}
template <class T>
KVF_FN void kvf_emu_put(uint64_t a, T v) {
  kvf_emu_store(a, &v, sizeof v);
}
template <class T>
KVF_FN T kvf_emu_shared_get(kvf_shared p, uint32_t at) {
  T v;
  kvf_emu_shared_load(p, at, &v, sizeof v);
  return v;
}

KVF_FN uint32_t kvf_load1(uint64_t a) { return kvf_emu_get<uint8_t>(a); }
KVF_FN uint32_t kvf_load4(uint64_t a) { return kvf_emu_get<uint32_t>(a); }
KVF_FN uint64_t kvf_load8(uint64_t a) { return kvf_emu_get<uint64_t>(a); }
KVF_FN kvf_u128 kvf_load16(uint64_t a) { return kvf_emu_get<kvf_u128>(a); }
KVF_FN kvf_u128 kvf_load16_once(uint64_t a) { return kvf_emu_get<kvf_u128>(a); }
KVF_FN uint32_t kvf_load4_fresh(uint64_t a) { return kvf_emu_get<uint32_t>(a); }
KVF_FN uint64_t kvf_load8_fresh(uint64_t a) { return kvf_emu_get<uint64_t>(a); }
KVF_FN kvf_u128 kvf_load16_fresh(uint64_t a) { return kvf_emu_get<kvf_u128>(a); }
KVF_FN void kvf_store1(uint64_t a, uint32_t v) { kvf_emu_put(a, (uint8_t)v); }
KVF_FN void kvf_store4(uint64_t a, uint32_t v) { kvf_emu_put(a, v); }
KVF_FN void kvf_store8(uint64_t a, uint64_t v) { kvf_emu_put(a, v); }
KVF_FN void kvf_store16(uint64_t a, kvf_u128 v) { kvf_emu_put(a, v); }
KVF_FN void kvf_store16_once(uint64_t a, kvf_u128 v) { kvf_emu_put(a, v); }
KVF_FN uint32_t kvf_atomic_add(uint64_t a, uint32_t v) { return kvf_emu_atomic_add(a, v); }

KVF_FN uint32_t kvf_shared_load1(kvf_shared p, uint32_t at) { return kvf_emu_shared_get<uint8_t>(p, at); }
KVF_FN uint32_t kvf_shared_load4(kvf_shared p, uint32_t at) { return kvf_emu_shared_get<uint32_t>(p, at); }
KVF_FN uint64_t kvf_shared_load8(kvf_shared p, uint32_t at) { return kvf_emu_shared_get<uint64_t>(p, at); }
KVF_FN kvf_u128 kvf_shared_load16(kvf_shared p, uint32_t at) { return kvf_emu_shared_get<kvf_u128>(p, at); }
KVF_FN void kvf_shared_store1(kvf_shared p, uint32_t at, uint32_t v) {
  uint8_t b = (uint8_t)v;
  kvf_emu_shared_store(p, at, &b, 1);
}
KVF_FN void kvf_shared_store4(kvf_shared p, uint32_t at, uint32_t v) { kvf_emu_shared_store(p, at, &v, 4); }
KVF_FN void kvf_shared_store16(kvf_shared p, uint32_t at, kvf_u128 v) { kvf_emu_shared_store(p, at, &v, 16); }

KVF_FN uint32_t kvf_shuffle_xor32(uint32_t v, uint32_t mask) { return kvf_emu_shuffle_xor(v, mask); }
KVF_FN uint32_t kvf_shuffle32(uint32_t v, uint32_t lane) { return kvf_emu_shuffle(v, lane); }
KVF_FN uint64_t kvf_ballot(bool v) { return kvf_emu_ballot(v); }
KVF_FN void kvf_sync_warp() { kvf_emu_sync_warp(); }
KVF_FN void kvf_sync_block() { kvf_emu_sync_block(); }
KVF_FN void kvf_fence_device() { kvf_emu_fence(0); }
KVF_FN void kvf_fence_system() { kvf_emu_fence(1); }

KVF_FN uint64_t kvf_mul_high(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }
KVF_FN uint32_t kvf_mul_high32(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
KVF_FN uint32_t kvf_bits64(uint64_t v) { return (uint32_t)__builtin_popcountll(v); }
KVF_FN uint32_t kvf_lowest64(uint64_t v) { return (uint32_t)__builtin_ctzll(v); }

#endif
