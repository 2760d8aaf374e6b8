/* The words of compat.h for nvcc: sm_80 and later. */
#define KVF_WARP 32
#define KVF_FN static __device__ __forceinline__
#define KVF_FN_MEMBER __device__ __forceinline__
#define KVF_TABLE static __device__ const
/* Two blocks a multiprocessor: at most 128 registers a thread, and 64 KiB of pages on their way at a time. */
#define KVF_KERNEL(name, args) extern "C" __global__ void __launch_bounds__(KVF_THREADS, 2) name(const __grid_constant__ args a)
#define KVF_UNROLL _Pragma("unroll")
#define KVF_ROLLED _Pragma("unroll 1")

typedef unsigned char *kvf_shared;
#define KVF_SHARED(name, bytes) __shared__ __align__(16) unsigned char name[bytes]

#define KVF_ALL 0xffffffffu

KVF_FN uint32_t kvf_thread() { return threadIdx.x; }
KVF_FN uint32_t kvf_block() { return blockIdx.x; }
KVF_FN uint32_t kvf_blocks() { return gridDim.x; }

KVF_FN uint32_t kvf_load1(uint64_t a) { return *(const unsigned char *)a; }
KVF_FN uint32_t kvf_load4(uint64_t a) { return *(const uint32_t *)a; }
KVF_FN uint64_t kvf_load8(uint64_t a) { return *(const uint64_t *)a; }
KVF_FN kvf_u128 kvf_load16(uint64_t a) {
  ulonglong2 v = *(const ulonglong2 *)a;
  return {v.x, v.y};
}
/* Read once: past the caches where they allow it. */
KVF_FN kvf_u128 kvf_load16_once(uint64_t a) {
  ulonglong2 v = __ldcs((const ulonglong2 *)a);
  return {v.x, v.y};
}
/* Never from a cache that other writers do not reach. */
KVF_FN uint32_t kvf_load4_fresh(uint64_t a) { return __ldcv((const unsigned int *)a); }
KVF_FN uint64_t kvf_load8_fresh(uint64_t a) { return __ldcv((const unsigned long long *)a); }
KVF_FN kvf_u128 kvf_load16_fresh(uint64_t a) {
  ulonglong2 v = __ldcv((const ulonglong2 *)a);
  return {v.x, v.y};
}
KVF_FN void kvf_store1(uint64_t a, uint32_t v) { *(unsigned char *)a = (unsigned char)v; }
KVF_FN void kvf_store4(uint64_t a, uint32_t v) { *(volatile uint32_t *)a = v; }
KVF_FN void kvf_store8(uint64_t a, uint64_t v) { *(volatile uint64_t *)a = v; }
KVF_FN void kvf_store16(uint64_t a, kvf_u128 v) { *(ulonglong2 *)a = make_ulonglong2(v.lo, v.hi); }
KVF_FN void kvf_store16_once(uint64_t a, kvf_u128 v) { __stcs((ulonglong2 *)a, make_ulonglong2(v.lo, v.hi)); }
KVF_FN uint32_t kvf_atomic_add(uint64_t a, uint32_t v) { return atomicAdd((unsigned int *)a, v); }

KVF_FN uint32_t kvf_shared_load1(kvf_shared p, uint32_t at) { return p[at]; }
KVF_FN uint32_t kvf_shared_load4(kvf_shared p, uint32_t at) { return *(const uint32_t *)(p + at); }
KVF_FN uint64_t kvf_shared_load8(kvf_shared p, uint32_t at) { return *(const uint64_t *)(p + at); }
KVF_FN kvf_u128 kvf_shared_load16(kvf_shared p, uint32_t at) {
  ulonglong2 v = *(const ulonglong2 *)(p + at);
  return {v.x, v.y};
}
KVF_FN void kvf_shared_store1(kvf_shared p, uint32_t at, uint32_t v) { p[at] = (unsigned char)v; }
KVF_FN void kvf_shared_store4(kvf_shared p, uint32_t at, uint32_t v) { *(uint32_t *)(p + at) = v; }
KVF_FN void kvf_shared_store16(kvf_shared p, uint32_t at, kvf_u128 v) { *(ulonglong2 *)(p + at) = make_ulonglong2(v.lo, v.hi); }

KVF_FN uint32_t kvf_shuffle_xor32(uint32_t v, uint32_t mask) { return __shfl_xor_sync(KVF_ALL, v, mask); }
KVF_FN uint32_t kvf_shuffle32(uint32_t v, uint32_t lane) { return __shfl_sync(KVF_ALL, v, lane); }
KVF_FN uint64_t kvf_ballot(bool v) { return __ballot_sync(KVF_ALL, v); }
KVF_FN void kvf_sync_warp() { __syncwarp(); }
KVF_FN void kvf_sync_block() { __syncthreads(); }
KVF_FN void kvf_fence_device() { __threadfence(); }
KVF_FN void kvf_fence_system() { __threadfence_system(); }

KVF_FN uint64_t kvf_mul_high(uint64_t a, uint64_t b) { return __umul64hi(a, b); }
KVF_FN uint32_t kvf_mul_high32(uint32_t a, uint32_t b) { return __umulhi(a, b); }
KVF_FN uint32_t kvf_bits64(uint64_t v) { return __popcll(v); }
KVF_FN uint32_t kvf_lowest64(uint64_t v) { return (uint32_t)__ffsll((long long)v) - 1; }
