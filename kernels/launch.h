/* Plain C launchers: one a kernel. Each checks its arguments, computes the grid, and hands the launch to the driver that the caller brought.
 * It takes a stream, returns a code, allocates nothing and waits for nothing. Go has the grids in grid.go; the emulation runs every launch
 * through here and compares. Addresses are not followed: what they point to is the caller's promise. */
#ifndef KVF_LAUNCH_H
#define KVF_LAUNCH_H

#include "abi.h"

/* Returned instead of the driver's code: the arguments cannot be right, nothing was launched. */
#define KVF_BAD_ARGUMENTS (-4096)

struct kvf_launcher {
  void *driver;
  /* Queues `kernel` with `grid` blocks of KVF_THREADS behind what is in `stream`; copies args before it returns; 0 or the driver's code. */
  int (*launch)(void *driver, const char *kernel, uint32_t grid, const void *args, size_t args_bytes, void *stream);
};

static inline int kvf_launch_grid(const struct kvf_launcher *l, const char *kernel, uint64_t grid, const void *args, size_t n, void *stream) {
  if (grid > 0x7fffffffu) return KVF_BAD_ARGUMENTS;
  return grid == 0 ? 0 : l->launch(l->driver, kernel, (uint32_t)grid, args, n, stream);
}

/* Nonzero where one of the addresses is no multiple of n, which is a power of two. */
static inline uint64_t kvf_skewed(uint64_t n, uint64_t a, uint64_t b, uint64_t c, uint64_t d) { return (a | b | c | d) & (n - 1); }

static inline int kvf_launch_move(const struct kvf_launcher *l, const char *kernel, const struct kvf_move_args *a, void *stream) {
  if (a->n_items == 0) return 0;
  if (a->slices == 0 || a->slice_chunks == 0 || kvf_skewed(8, a->cuts, a->items, a->values, a->results) || kvf_skewed(16, a->tags, a->wants, 0, 0) ||
      kvf_skewed(4, a->counters, 0, 0, 0))
    return KVF_BAD_ARGUMENTS;
  return kvf_launch_grid(l, kernel, (uint64_t)a->n_items * a->slices, a, sizeof *a, stream);
}

static inline int kvf_launch_digest(const struct kvf_launcher *l, const struct kvf_move_args *a, void *stream) {
  return kvf_launch_move(l, "kvf_digest", a, stream);
}

static inline int kvf_launch_gather(const struct kvf_launcher *l, const struct kvf_move_args *a, void *stream) {
  return kvf_launch_move(l, "kvf_gather", a, stream);
}

static inline int kvf_launch_scatter(const struct kvf_launcher *l, const struct kvf_move_args *a, void *stream) {
  return kvf_launch_move(l, "kvf_scatter", a, stream);
}

static inline int kvf_launch_convert(const struct kvf_launcher *l, const struct kvf_move_args *a, void *stream) {
  return kvf_launch_move(l, "kvf_convert", a, stream);
}

static inline int kvf_launch_tagverify(const struct kvf_launcher *l, const struct kvf_verify_args *a, void *stream) {
  uint64_t blocks = ((uint64_t)a->capacity + KVF_VERIFY_ENTRIES - 1) / KVF_VERIFY_ENTRIES;
  if (kvf_skewed(16, a->tags, a->wants, 0, 0) || kvf_skewed(8, a->blocks, a->state, a->report, 0) || kvf_skewed(4, a->table, a->count, a->flag, 0))
    return KVF_BAD_ARGUMENTS;
  return kvf_launch_grid(l, "kvf_tagverify", blocks == 0 ? 1 : blocks, a, sizeof *a, stream); /* an empty step still sets its flag */
}

static inline int kvf_launch_scrub(const struct kvf_launcher *l, const struct kvf_scrub_args *a, void *stream) {
  if (a->n == 0) return 0;
  if (a->spans == 0 || a->slices == 0 || kvf_skewed(16, a->tags, 0, 0, 0) || kvf_skewed(4, a->list, 0, 0, 0)) return KVF_BAD_ARGUMENTS;
  if ((uint64_t)a->n * a->spans > 0x7fffffffu) return KVF_BAD_ARGUMENTS;
  return kvf_launch_grid(l, "kvf_scrub", (uint64_t)a->n * a->spans * a->slices, a, sizeof *a, stream);
}

static inline int kvf_launch_tagput(const struct kvf_launcher *l, const struct kvf_put_args *a, void *stream) {
  if (kvf_skewed(16, a->tags, a->wants, 0, 0) || kvf_skewed(4, a->puts, 0, 0, 0)) return KVF_BAD_ARGUMENTS;
  return kvf_launch_grid(l, "kvf_tagput", ((uint64_t)a->n * 4 + KVF_THREADS - 1) / KVF_THREADS, a, sizeof *a, stream);
}

#endif
