/* kvf_gather: parts of pages, of any layout, to contiguous staging in canonical order, with their digests taken of the bytes that were
 * copied. For transports that send from staging.
 *
 * Grid      blocks = n_items * slices of KVF_THREADS; block b: chunks of slice b mod slices of item b / slices, one warp a chunk.
 * Reads     src pages, u8 [pages, stride], by each item's cut; any alignment, 16-byte accesses where both sides are aligned.
 * Writes    dst.base + item.flat, item.used bytes each; results [n_items]; values and counters are scratch. Bytes of staging between
 *           the items are left alone.
 * Aliasing  items do not overlap in staging; pages do not overlap staging, scratch, results or tables.
 * Order     item.h. Staging is for kernels and copies behind this one in the stream, and for others by the stream's event. */
#include "item.h"

KVF_KERNEL(kvf_gather, kvf_move_args) {
  KVF_SHARED(stage, KVF_WARPS * KVF_CHUNK);
  kvf_move<KVF_PAGES, KVF_STAGING, false>(a, stage);
}
