/* The words of compat.h for hipcc: gfx90a. A wave runs its lanes in one step, so shuffles and votes take no mask. */
#include <hip/hip_runtime.h>

#define KVF_WARP 64
#define KVF_FN static __device__ __forceinline__
#define KVF_FN_MEMBER __device__ __forceinline__
#define KVF_TABLE static __device__ const
#define KVF_KERNEL(name, args) extern "C" __global__ void __launch_bounds__(KVF_THREADS) name(const args a)
#define KVF_UNROLL _Pragma("unroll")
#define KVF_ROLLED _Pragma("unroll 1")

typedef uint64_t kvf_vector __attribute__((ext_vector_type(2)));
typedef unsigned char *kvf_shared;
#define KVF_SHARED(name, bytes) __shared__ __align__(16) unsigned char name[bytes]

KVF_FN uint32_t kvf_thread() { return threadIdx.x; }
KVF_FN uint32_t kvf_block() { return blockIdx.x; }
KVF_FN uint32_t kvf_blocks() { return gridDim.x; }

KVF_FN uint32_t kvf_load1(uint64_t a) { return *(const unsigned char *)a; }
KVF_FN uint32_t kvf_load4(uint64_t a) { return *(const uint32_t *)a; }
KVF_FN uint64_t kvf_load8(uint64_t a) { return *(const uint64_t *)a; }
KVF_FN kvf_u128 kvf_load16(uint64_t a) {
  kvf_vector v = *(const kvf_vector *)a;
  return {v[0], v[1]};
}
/* Read once: past the caches where they allow it. */
KVF_FN kvf_u128 kvf_load16_once(uint64_t a) {
  kvf_vector v = __builtin_nontemporal_load((const kvf_vector *)a);
  return {v[0], v[1]};
}
/* Never from a cache that other writers do not reach. */
KVF_FN uint32_t kvf_load4_fresh(uint64_t a) { return *(const volatile uint32_t *)a; }
KVF_FN uint64_t kvf_load8_fresh(uint64_t a) { return *(const volatile uint64_t *)a; }
KVF_FN kvf_u128 kvf_load16_fresh(uint64_t a) {
  kvf_vector v = *(const volatile kvf_vector *)a;
  return {v[0], v[1]};
}
KVF_FN void kvf_store1(uint64_t a, uint32_t v) { *(unsigned char *)a = (unsigned char)v; }
KVF_FN void kvf_store4(uint64_t a, uint32_t v) { *(volatile uint32_t *)a = v; }
KVF_FN void kvf_store8(uint64_t a, uint64_t v) { *(volatile uint64_t *)a = v; }
KVF_FN void kvf_store16(uint64_t a, kvf_u128 v) { *(kvf_vector *)a = kvf_vector{v.lo, v.hi}; }
KVF_FN void kvf_store16_once(uint64_t a, kvf_u128 v) { __builtin_nontemporal_store(kvf_vector{v.lo, v.hi}, (kvf_vector *)a); }
KVF_FN uint32_t kvf_atomic_add(uint64_t a, uint32_t v) { return atomicAdd((unsigned int *)a, v); }

KVF_FN uint32_t kvf_shared_load1(kvf_shared p, uint32_t at) { return p[at]; }
KVF_FN uint32_t kvf_shared_load4(kvf_shared p, uint32_t at) { return *(const uint32_t *)(p + at); }
KVF_FN uint64_t kvf_shared_load8(kvf_shared p, uint32_t at) { return *(const uint64_t *)(p + at); }
KVF_FN kvf_u128 kvf_shared_load16(kvf_shared p, uint32_t at) {
  kvf_vector v = *(const kvf_vector *)(p + at);
  return {v[0], v[1]};
}
KVF_FN void kvf_shared_store1(kvf_shared p, uint32_t at, uint32_t v) { p[at] = (unsigned char)v; }
KVF_FN void kvf_shared_store4(kvf_shared p, uint32_t at, uint32_t v) { *(uint32_t *)(p + at) = v; }
KVF_FN void kvf_shared_store16(kvf_shared p, uint32_t at, kvf_u128 v) { *(kvf_vector *)(p + at) = kvf_vector{v.lo, v.hi}; }

KVF_FN uint32_t kvf_shuffle_xor32(uint32_t v, uint32_t mask) { return (uint32_t)__shfl_xor((int)v, (int)mask); }
KVF_FN uint32_t kvf_shuffle32(uint32_t v, uint32_t lane) { return (uint32_t)__shfl((int)v, (int)lane); }
KVF_FN uint64_t kvf_ballot(bool v) { return __ballot(v); }
/* The lanes are in step already; what must not happen is that the compiler moves memory accesses across. */
KVF_FN void kvf_sync_warp() {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
}
KVF_FN void kvf_sync_block() { __syncthreads(); }
KVF_FN void kvf_fence_device() { __threadfence(); }
KVF_FN void kvf_fence_system() { __threadfence_system(); }

KVF_FN uint64_t kvf_mul_high(uint64_t a, uint64_t b) { return __umul64hi(a, b); }
KVF_FN uint32_t kvf_mul_high32(uint32_t a, uint32_t b) { return __umulhi(a, b); }
KVF_FN uint32_t kvf_bits64(uint64_t v) { return __popcll(v); }
KVF_FN uint32_t kvf_lowest64(uint64_t v) { return (uint32_t)__ffsll((long long)v) - 1; }
