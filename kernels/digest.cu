/* kvf_digest: the digests of parts of pages (spec/tags-and-digests.md), where they lie. A prefill node takes them when it seals.
 *
 * Grid      blocks = n_items * slices of KVF_THREADS; block b: chunks of slice b mod slices of item b / slices, one warp a chunk.
 * Reads     src pages, u8 [pages, stride], by each item's cut; any alignment, 16-byte loads where view and cut are aligned.
 * Writes    results [n_items]; values and counters are scratch. Pages are not written.
 * Aliasing  pages do not overlap scratch, results or tables. One page may stand in many items.
 * Order     item.h. The caller's events order it behind whatever stored the pages, and before whatever changes them. */
#include "item.h"

KVF_KERNEL(kvf_digest, kvf_move_args) {
  KVF_SHARED(stage, KVF_WARPS * KVF_CHUNK);
  kvf_move<KVF_PAGES, KVF_NOWHERE, false>(a, stage);
}
