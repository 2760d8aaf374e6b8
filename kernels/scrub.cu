/* kvf_scrub: pages that nobody holds any more are zeroed or poisoned, their tag slots voided before.
 *
 * Grid      blocks = n * spans * slices of KVF_THREADS; block b: slice b mod slices, of span (b / slices) mod spans, of list entry
 *           b / slices / spans.
 * Writes    pages, u8 [pages, spans, span_bytes]: the whole spans; tags [pages, tag_slots, 64], all slots of each page.
 * Aliasing  no page twice in the list; pages, tags and list do not overlap.
 * Order     a tag never vouches for scrubbed bytes: every block voids the page's slots itself, kvf_fence_system by each thread, then
 *           kvf_sync_block, then the first byte. Blocks of one page store the same zeros. */
#include "compat.h"

KVF_KERNEL(kvf_scrub, kvf_scrub_args) {
  uint32_t slice = kvf_block() % a.slices, span = kvf_block() / a.slices % a.spans;
  uint32_t page = kvf_load4(a.list + 4 * (uint64_t)(kvf_block() / a.slices / a.spans));
  if (page >= a.pages.pages) return;
  if (a.tags != 0) {
    uint64_t slots = a.tags + KVF_TAG_BYTES * (uint64_t)a.tag_slots * page;
    for (uint32_t k = kvf_thread(); k < a.tag_slots * (KVF_TAG_BYTES / 16); k += KVF_THREADS) kvf_store16(slots + 16 * k, {0, 0});
    kvf_fence_system();
    kvf_sync_block();
  }
  uint64_t base = (a.pages.layers != 0 ? kvf_load8(a.pages.layers + 8 * (uint64_t)span) : a.pages.base) + page * a.pages.stride;
  uint64_t each = ((a.span_bytes + a.slices - 1) / a.slices + 15) & ~15ull;
  uint64_t at = slice * each, end = at + each < a.span_bytes ? at + each : a.span_bytes;
  if ((a.pages.flags & KVF_VIEW_ALIGNED) != 0) {
    uint64_t word = (uint64_t)a.pattern << 32 | a.pattern;
    for (uint64_t k = at + 16 * kvf_thread(); k + 16 <= end; k += 16 * KVF_THREADS) kvf_store16_once(base + k, {word, word});
    if (at < end) at = end & ~15ull;
  }
  for (uint64_t k = at + kvf_thread(); k < end; k += KVF_THREADS) kvf_store1(base + k, a.pattern >> 8 * (k % 4) & 0xff);
}
