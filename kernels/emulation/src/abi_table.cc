/* Every struct of abi.h with its size, every field with offset and size, as text for the test that compares them with Go. */
#include "abi_table.h"

#include "../../abi.h"

#define S(type) {#type, "", 0, sizeof(struct type)},
#define F(type, field) {#type, #field, offsetof(struct type, field), sizeof(((struct type *)nullptr)->field)},

const AbiRow kAbi[] = {
    S(kvf_div) F(kvf_div, d) F(kvf_div, m) F(kvf_div, s)
    S(kvf_cut) F(kvf_cut, offset) F(kvf_cut, stride) F(kvf_cut, run) F(kvf_cut, n) F(kvf_cut, used) F(kvf_cut, flags) F(kvf_cut, layer) F(kvf_cut, zero)
    S(kvf_view) F(kvf_view, base) F(kvf_view, stride) F(kvf_view, layers) F(kvf_view, pages) F(kvf_view, flags)
    S(kvf_item) F(kvf_item, flat) F(kvf_item, src_page) F(kvf_item, src_cut) F(kvf_item, dst_page) F(kvf_item, dst_cut) F(kvf_item, component)
    F(kvf_item, token_lo) F(kvf_item, token_hi) F(kvf_item, used) F(kvf_item, first) F(kvf_item, slot) F(kvf_item, want) F(kvf_item, zero)
    S(kvf_result) F(kvf_result, digest) F(kvf_result, state) F(kvf_result, zero)
    S(kvf_move_args) F(kvf_move_args, src) F(kvf_move_args, dst) F(kvf_move_args, cuts) F(kvf_move_args, items) F(kvf_move_args, values)
    F(kvf_move_args, counters) F(kvf_move_args, results) F(kvf_move_args, tags) F(kvf_move_args, wants) F(kvf_move_args, n_cuts)
    F(kvf_move_args, n_items) F(kvf_move_args, n_tags) F(kvf_move_args, n_wants) F(kvf_move_args, slices) F(kvf_move_args, slice_chunks)
    S(kvf_want) F(kvf_want, tag) F(kvf_want, at) F(kvf_want, slot) F(kvf_want, live) F(kvf_want, zero)
    S(kvf_offender) F(kvf_offender, entry) F(kvf_offender, page) F(kvf_offender, slot) F(kvf_offender, state)
    S(kvf_report) F(kvf_report, step) F(kvf_report, checked) F(kvf_report, bad) F(kvf_report, states) F(kvf_report, kept) F(kvf_report, offenders)
    S(kvf_verify_state) F(kvf_verify_state, step) F(kvf_verify_state, done) F(kvf_verify_state, states)
    S(kvf_verify_block) F(kvf_verify_block, kept) F(kvf_verify_block, zero) F(kvf_verify_block, offenders)
    S(kvf_verify_args) F(kvf_verify_args, tags) F(kvf_verify_args, table) F(kvf_verify_args, wants) F(kvf_verify_args, count) F(kvf_verify_args, blocks)
    F(kvf_verify_args, state) F(kvf_verify_args, flag) F(kvf_verify_args, report) F(kvf_verify_args, pages) F(kvf_verify_args, tag_slots)
    F(kvf_verify_args, table_len) F(kvf_verify_args, capacity)
    S(kvf_scrub_args) F(kvf_scrub_args, pages) F(kvf_scrub_args, list) F(kvf_scrub_args, tags) F(kvf_scrub_args, span_bytes) F(kvf_scrub_args, n)
    F(kvf_scrub_args, tag_slots) F(kvf_scrub_args, spans) F(kvf_scrub_args, slices) F(kvf_scrub_args, pattern) F(kvf_scrub_args, zero)
    S(kvf_put) F(kvf_put, slot) F(kvf_put, want)
    S(kvf_put_args) F(kvf_put_args, tags) F(kvf_put_args, puts) F(kvf_put_args, wants) F(kvf_put_args, n) F(kvf_put_args, n_tags)
    F(kvf_put_args, n_wants) F(kvf_put_args, zero)
};

const size_t kAbiRows = sizeof(kAbi) / sizeof(kAbi[0]);
