/* The arguments of the kernels: what a host puts into memory and into a launch. Fixed widths, little-endian, no pointers: an address is a
 * uint64_t of the device's address space. Each kernel takes exactly one struct by value. kernels/abi.go is the same in Go; a test compares
 * every size and offset. Nothing here allocates or owns: who launches keeps all of it alive and unchanged until the launch is over.
 * Read next: compat.h, part.h, README.md. */
#ifndef KVF_ABI_H
#define KVF_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define KVF_ASSERT_SIZE(type, n) static_assert(sizeof(type) == (n), #type " has another size")
#else
#define KVF_ASSERT_SIZE(type, n) _Static_assert(sizeof(type) == (n), #type " has another size")
#endif

/* Every kernel runs with blocks of this many threads, in one dimension, and with static shared memory only. */
#define KVF_THREADS 256
/* Bytes of one chunk of a part's digest, of one tag slot (spec/tags-and-digests.md). */
#define KVF_CHUNK 4096
#define KVF_TAG_BYTES 64
/* Entries of a block table that one block of tagverify checks, and offenders that a report has room for. */
#define KVF_VERIFY_ENTRIES 256
#define KVF_OFFENDERS 16
/* No such thing: item.tag, put.want. */
#define KVF_NONE 0xffffffffu

/* Division of a number below 2^31 by d: the quotient is (n * m) >> 32 >> s, and n where m is 0 (d is 1). */
struct kvf_div {
  uint32_t d, m, s;
};
KVF_ASSERT_SIZE(struct kvf_div, 12);

enum { KVF_CUT_ALIGNED = 1, /* offset, run and strides are multiples of 16 bytes */
       KVF_CUT_LAYERED = 2  /* dimension 3 is the layer and is found by view.layers */ };

/* Where the used bytes of a part lie in a page: spec.Part.Segments as arithmetic. Byte q of the canonical string, with b = q mod run and
 * r = q div run written in digits i0 (fastest), i1, i2 of the sizes n[0..2] and i3 the rest, lies at
 * offset + b + i0*stride[0] + i1*stride[1] + i2*stride[2] + i3*stride[3] within the page. */
struct kvf_cut {
  uint64_t offset;
  uint64_t stride[4];
  struct kvf_div run;
  struct kvf_div n[3];
  uint32_t used;  /* bytes of the string, below 2^31 */
  uint32_t flags; /* KVF_CUT_* */
  uint32_t layer; /* with KVF_CUT_LAYERED: the entry of view.layers for i3 = 0 */
  uint32_t zero;
};
KVF_ASSERT_SIZE(struct kvf_cut, 104);

enum { KVF_VIEW_ALIGNED = 1 /* base, stride and every layer's base are multiples of 16 */ };

/* Pages in memory. Page p begins at base + p*stride; with layers, layer k of page p begins at layers[k] + p*stride. For contiguous staging
 * only base counts, and flags. */
struct kvf_view {
  uint64_t base;
  uint64_t stride; /* bytes from one page to the next */
  uint64_t layers; /* address of uint64_t[], or 0 */
  uint32_t pages;  /* page numbers at or above are refused */
  uint32_t flags;  /* KVF_VIEW_* */
};
KVF_ASSERT_SIZE(struct kvf_view, 32);

/* One part of one page: what is read, what is written, and the header of its digest. */
struct kvf_item {
  uint64_t flat;     /* gather, scatter: offset of the part's bytes in staging; a multiple of 16 */
  uint32_t src_page, src_cut;
  uint32_t dst_page, dst_cut;
  uint32_t component, token_lo, token_hi; /* device.DigestHeader */
  uint32_t used;     /* bytes; equals used of each cut that is used */
  uint32_t first;    /* place of its first chunk's value: the sum of the chunks of the items before */
  uint32_t slot;     /* scatter, convert: tag slot, page*tag_slots + part, that is written last; KVF_NONE: no tag */
  uint32_t want;     /* index in wants of the tag for it */
  uint32_t zero;
};
KVF_ASSERT_SIZE(struct kvf_item, 56);

enum { KVF_ITEM_NONE = 0,    /* not finished */
       KVF_ITEM_DONE = 1,    /* moved; the digest stands beside; a tag was written if one was wanted */
       KVF_ITEM_DIFFERS = 2, /* moved, but the digest is not the wanted tag's; no tag was written */
       KVF_ITEM_REFUSED = 3  /* a page, cut or tag outside of its table, or cuts of other sizes; nothing was touched */ };

struct kvf_result {
  uint64_t digest;
  uint32_t state; /* KVF_ITEM_* */
  uint32_t zero;
};
KVF_ASSERT_SIZE(struct kvf_result, 16);

/* kvf_digest, kvf_gather, kvf_scatter, kvf_convert. Blocks: items*slices; block b works on item b / slices, chunks from (b mod slices) *
 * slice_chunks. slices*slice_chunks is at least the chunks of every item. */
struct kvf_move_args {
  struct kvf_view src; /* gather, digest, convert: pages; scatter: staging */
  struct kvf_view dst; /* scatter, convert: pages; gather: staging; digest: unused */
  uint64_t cuts;       /* struct kvf_cut[n_cuts] */
  uint64_t items;      /* struct kvf_item[n_items] */
  uint64_t values;     /* uint64_t[sum of chunks]: scratch */
  uint64_t counters;   /* uint32_t[n_items]: scratch, zero before the first launch; each launch leaves it zero */
  uint64_t results;    /* struct kvf_result[n_items] */
  uint64_t tags;       /* tag slots of dst's pool, 64 bytes each, or 0 */
  uint64_t wants;      /* encoded tags, 64 bytes each, or 0 */
  uint32_t n_cuts, n_items, n_tags, n_wants;
  uint32_t slices, slice_chunks;
};
KVF_ASSERT_SIZE(struct kvf_move_args, 144);

/* One entry of a step: what the tag must be of the page that the step will read by place `at` of its block table. */
struct kvf_want {
  uint64_t tag[8];
  uint32_t at;   /* index in the block table */
  uint32_t slot; /* tag slot in the page */
  uint32_t live; /* 0: a hole, not checked */
  uint32_t zero;
};
KVF_ASSERT_SIZE(struct kvf_want, 80);

/* States of an entry: spec.TagState, and two of the block table itself. */
enum { KVF_TAG_GOOD = 0, KVF_TAG_VOID = 1, KVF_TAG_FOREIGN = 2, KVF_TAG_TORN = 3,
       KVF_TAG_OUTSIDE = 4, /* the table names no page of the pool, or the entry no place of the table or slot */
       KVF_TAG_STATES = 5 };

struct kvf_offender {
  uint32_t entry; /* index in wants */
  uint32_t page;  /* as read from the block table; KVF_NONE where there was no place to read */
  uint32_t slot;
  uint32_t state; /* KVF_TAG_* */
};
KVF_ASSERT_SIZE(struct kvf_offender, 16);

/* Written by the last block of tagverify, step last: who has seen step n sees the rest of n, until n+1 is launched. */
struct kvf_report {
  uint64_t step;    /* launches so far */
  uint32_t checked; /* entries, holes not counted */
  uint32_t bad;     /* entries in any state but good */
  uint32_t states[KVF_TAG_STATES];
  uint32_t kept;    /* of offenders: those with the lowest entries, in order */
  struct kvf_offender offenders[KVF_OFFENDERS];
};
KVF_ASSERT_SIZE(struct kvf_report, 296);

enum { KVF_FLAG_UNSET = 0, KVF_FLAG_GOOD = 1, KVF_FLAG_BAD = 2 };

/* What tagverify keeps between launches: zero before the first, in device memory. All but step is zero between launches. */
struct kvf_verify_state {
  uint64_t step;
  uint32_t done; /* blocks of the running launch that are through */
  uint32_t states[KVF_TAG_STATES];
};
KVF_ASSERT_SIZE(struct kvf_verify_state, 32);

/* What one block of tagverify leaves for the last one. */
struct kvf_verify_block {
  uint32_t kept;
  uint32_t zero[3];
  struct kvf_offender offenders[KVF_OFFENDERS]; /* only the first `kept` are written */
};
KVF_ASSERT_SIZE(struct kvf_verify_block, 272);

/* kvf_tagverify. Blocks: capacity / KVF_VERIFY_ENTRIES, rounded up, at least one. count is read on the device, so a captured launch serves
 * every step; a count above capacity is bad as a whole. */
struct kvf_verify_args {
  uint64_t tags;   /* the pool's tag slots [pages, tag_slots] of 64 bytes */
  uint64_t table;  /* uint32_t[table_len]: the block table that the step will use */
  uint64_t wants;  /* struct kvf_want[capacity] */
  uint64_t count;  /* address of uint32_t: entries in use */
  uint64_t blocks; /* struct kvf_verify_block[blocks of the launch]: scratch */
  uint64_t state;  /* struct kvf_verify_state */
  uint64_t flag;   /* uint32_t KVF_FLAG_*, for kernels behind this one in the stream */
  uint64_t report; /* struct kvf_report, in memory that the host can read too */
  uint32_t pages, tag_slots;
  uint32_t table_len, capacity;
};
KVF_ASSERT_SIZE(struct kvf_verify_args, 80);

/* kvf_scrub. Blocks: n*spans*slices. A page is `spans` runs of span_bytes: one, or one a layer where pages.layers is set. All tag slots of
 * the page are voided before its first byte changes. */
struct kvf_scrub_args {
  struct kvf_view pages;
  uint64_t list; /* uint32_t[n]: page numbers; those outside of the pool are left out */
  uint64_t tags; /* the pool's tag slots, or 0 */
  uint64_t span_bytes;
  uint32_t n, tag_slots, spans, slices;
  uint32_t pattern; /* 0, or poison: byte i of a span is byte i mod 4 of it */
  uint32_t zero;
};
KVF_ASSERT_SIZE(struct kvf_scrub_args, 80);

struct kvf_put {
  uint32_t slot; /* page*tag_slots + part */
  uint32_t want; /* index of the encoded tag, or KVF_NONE: void the slot */
};
KVF_ASSERT_SIZE(struct kvf_put, 8);

/* kvf_tagput. Blocks: n*4 / KVF_THREADS, rounded up. Entries outside of their tables are left out. */
struct kvf_put_args {
  uint64_t tags;  /* tag slots of 64 bytes */
  uint64_t puts;  /* struct kvf_put[n]; no slot twice */
  uint64_t wants; /* encoded tags of 64 bytes, or 0 */
  uint32_t n, n_tags, n_wants, zero;
};
KVF_ASSERT_SIZE(struct kvf_put_args, 40);

#endif
