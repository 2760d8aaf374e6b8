/* kvf_convert: parts of pages of one layout to pages of another: unequal head splits, other strides, other page sizes per head. Source and
 * destination cut the same canonical string differently. The tag is stored last, as in scatter.
 *
 * Grid      blocks = n_items * slices of KVF_THREADS; block b: chunks of slice b mod slices of item b / slices, one warp a chunk.
 * Reads     src pages, u8 [pages, stride], by src_cut; the source may be memory of another process that this device maps.
 * Writes    dst pages, u8 [pages, stride], by dst_cut: bytes outside of the part are left alone; tags [n_tags, 64]; results [n_items];
 *           values and counters are scratch.
 * Aliasing  no byte is both read and written; items do not overlap in the destination and have different slots.
 * Order     item.h: a tag is visible to anyone only after all bytes that it vouches for. What changes the source meanwhile makes another
 *           digest, never a tag for bytes that did not land: the bytes hashed are the bytes stored. */
#include "item.h"

KVF_KERNEL(kvf_convert, kvf_move_args) {
  KVF_SHARED(stage, KVF_WARPS * KVF_CHUNK);
  kvf_move<KVF_PAGES, KVF_PAGES, true>(a, stage);
}
