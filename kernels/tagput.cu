/* kvf_tagput: encoded tags into slots, or slots voided: at hand-out (all slots of a granted page), and for pages that decode fills itself.
 *
 * Grid      blocks = n*4 / KVF_THREADS, rounded up; thread t: quarter t mod 4 of entry t / 4.
 * Reads     puts [n]; wants, 64 bytes each, 16-byte aligned.
 * Writes    tags, 64 bytes each, 16-byte aligned. An entry outside of its table is left out.
 * Aliasing  no slot twice; tags, puts and wants do not overlap.
 * Order     what stored the bytes that a tag vouches for comes before in the stream; kvf_fence_system makes that hold for readers elsewhere. */
#include "compat.h"

KVF_KERNEL(kvf_tagput, kvf_put_args) {
  uint32_t t = kvf_block() * KVF_THREADS + kvf_thread(), quarter = 16 * (t % 4);
  if (t / 4 >= a.n) return;
  uint64_t put = a.puts + sizeof(kvf_put) * (uint64_t)(t / 4);
  uint32_t slot = kvf_load4(put), want = kvf_load4(put + offsetof(kvf_put, want));
  if (slot >= a.n_tags || (want != KVF_NONE && want >= a.n_wants)) return;
  kvf_u128 v = {0, 0};
  if (want != KVF_NONE) v = kvf_load16(a.wants + KVF_TAG_BYTES * (uint64_t)want + quarter);
  kvf_fence_system();
  kvf_store16(a.tags + KVF_TAG_BYTES * (uint64_t)slot + quarter, v);
}
