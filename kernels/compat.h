/* One set of words for three compilers: nvcc (warp of 32), hipcc for gfx90a (wave of 64, no masks on shuffles), and the host's C++ compiler
 * with KVF_EMULATION (warp of KVF_WARP, either). Kernels touch memory by these words only, and by address, so that the emulation sees
 * every access. Warp operations are for whole warps: all lanes call them, at the same place. The same in block scope for kvf_sync_block.
 *
 * Order. Stores of one thread can be seen by others in any order, but:
 *   kvf_sync_warp      stores before it, to shared and global memory, are seen after it by the lanes of the warp
 *   kvf_sync_block     the same for the threads of the block
 *   kvf_fence_device   of this thread: what it stored, or saw, before is seen by all threads of the device before what it stores after
 *   kvf_fence_system   the same for host, other devices and other processes
 * Atomics order nothing by themselves. */
#ifndef KVF_COMPAT_H
#define KVF_COMPAT_H

#include <stdint.h>

#include "abi.h"

struct kvf_u128 {
  uint64_t lo, hi;
};

#if defined(KVF_EMULATION)
#include "emulation/src/device.h"
#elif defined(__HIP__) || defined(__HIPCC__)
#include "compat_hip.h"
#else
#include "compat_cuda.h"
#endif

#define KVF_WARPS (KVF_THREADS / KVF_WARP)

KVF_FN uint32_t kvf_lane() { return kvf_thread() % KVF_WARP; }
KVF_FN uint32_t kvf_warp() { return kvf_thread() / KVF_WARP; }

KVF_FN uint64_t kvf_shuffle_xor64(uint64_t v, uint32_t mask) {
  uint32_t lo = kvf_shuffle_xor32((uint32_t)v, mask), hi = kvf_shuffle_xor32((uint32_t)(v >> 32), mask);
  return (uint64_t)hi << 32 | lo;
}

KVF_FN uint64_t kvf_shuffle64(uint64_t v, uint32_t lane) {
  uint32_t lo = kvf_shuffle32((uint32_t)v, lane), hi = kvf_shuffle32((uint32_t)(v >> 32), lane);
  return (uint64_t)hi << 32 | lo;
}

KVF_FN uint32_t kvf_min(uint32_t a, uint32_t b) { return a < b ? a : b; }

#endif
