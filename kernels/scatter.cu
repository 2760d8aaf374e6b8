/* kvf_scatter: parts from contiguous staging, in canonical order, to pages of any layout; the digest is of the bytes that were stored. Each
 * item's tag is stored last, and only if digest and size are the ones that it names.
 *
 * Grid      blocks = n_items * slices of KVF_THREADS; block b: chunks of slice b mod slices of item b / slices, one warp a chunk.
 * Reads     src.base + item.flat, item.used bytes each; wants, 64 bytes each.
 * Writes    dst pages, u8 [pages, stride], by each item's cut: bytes of the page outside of the part are left alone; tags [n_tags, 64];
 *           results [n_items]; values and counters are scratch.
 * Aliasing  items do not overlap in the pages and have different slots; staging does not overlap pages, scratch, results or tables.
 * Order     item.h: a tag is visible to anyone only after all bytes that it vouches for. The slots were voided before the grant. */
#include "item.h"

KVF_KERNEL(kvf_scatter, kvf_move_args) {
  KVF_SHARED(stage, KVF_WARPS * KVF_CHUNK);
  kvf_move<KVF_STAGING, KVF_PAGES, true>(a, stage);
}
