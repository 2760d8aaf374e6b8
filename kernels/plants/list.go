package plants

import "kvfence/kernels"

// All lists the plants.
func All() []Plant {
	var out []Plant
	for _, part := range [][]Plant{places(), hashes(), orders(), tags(), steps(), scrubs()} {
		out = append(out, part...)
	}
	return out
}

// places: which bytes are read and stored.
func places() []Plant {
	return []Plant{
		{Name: "off by one page", File: "part.h", From: "v.base + page * v.stride", To: "v.base + (page + 1) * v.stride", Kernel: kernels.NameGather},
		{Name: "a page beyond the pool is taken", File: "part.h", From: "if (page >= v.pages ||", To: "if (page > v.pages ||", Kernel: kernels.NameDigest},
		{Name: "a cut of another size is taken", File: "part.h", From: "s.cut.used != used ||", To: "", Kernel: kernels.NameConvert},
		{Name: "a dimension is lost", File: "part.h", From: "for (uint32_t k = 0; k < 3; k++) {\n    uint32_t next", To: "for (uint32_t k = 0; k < 2; k++) {\n    uint32_t next", Kernel: kernels.NameConvert},
		{Name: "layers apart begin at the first", File: "part.h", From: "v.layers + 8 * (uint64_t)s.cut.layer", To: "v.layers", Kernel: kernels.NameGather},
		{Name: "16 bytes at once whatever the address", File: "part.h", From: "(s.cut.flags & KVF_CUT_ALIGNED) != 0 && (v.flags & KVF_VIEW_ALIGNED) != 0", To: "(s.cut.flags & KVF_CUT_ALIGNED) != 0", Kernel: kernels.NameScatter},
		{Name: "a run's part of a chunk is lost", File: "part.h", From: "uint64_t at = s.page + (q - r * s.cut.run.d);", To: "uint64_t at = s.page;", Kernel: kernels.NameConvert},
		{Name: "the last chunk is whole", File: "item.h", From: "kvf_min(KVF_CHUNK, i.used - c * KVF_CHUNK)", To: "KVF_CHUNK", Kernel: kernels.NameGather},
		{Name: "the last unit of a chunk is not stored", File: "part.h", From: "for (uint32_t k = 16 * kvf_lane(); k < n; k += 16 * KVF_WARP) kvf_store16_once", To: "for (uint32_t k = 16 * kvf_lane(); k + 16 < n; k += 16 * KVF_WARP) kvf_store16_once", Kernel: kernels.NameScatter},
		{Name: "a slice ends one chunk early", File: "item.h", From: "kvf_min((slice + 1) * a.slice_chunks, chunks)", To: "kvf_min((slice + 1) * a.slice_chunks, chunks) - (slice > 0)", Kernel: kernels.NameDigest},
		{Name: "warps of 32 where they have 64", File: "xxh3.h", From: "mask < KVF_WARP; mask *= 2", To: "mask < 32; mask *= 2", Kernel: kernels.NameDigest, Warp: 64},
	}
}

// hashes: values and digests.
func hashes() []Plant {
	return []Plant{
		{Name: "the key of a chunk's last stripe", File: "xxh3.h", From: "b == 3 && stripe == 15 ? KVF_LAST_SECRET : kvf_stripe_secret(stripe)", To: "kvf_stripe_secret(stripe)", Kernel: kernels.NameGather},
		{Name: "a stripe too many in the last block", File: "xxh3.h", From: "if (16 * b + u / 4 < stripes)", To: "if (16 * b + u / 4 <= stripes)", Kernel: kernels.NameDigest},
		{Name: "no scramble before the last block", File: "xxh3.h", From: "if (b < blocks) kvf_long_scramble(h);", To: "if (b + 1 < blocks) kvf_long_scramble(h);", Kernel: kernels.NameDigest},
		{Name: "half of the accumulators", File: "xxh3.h", From: "  v += kvf_shuffle_xor64(v, 2);\n", To: "", Kernel: kernels.NameDigest},
		{Name: "241 bytes are short", File: "xxh3.h", From: "if (n <= 240) return", To: "if (n <= 255) return", Kernel: kernels.NameDigest},
		{Name: "tokens of the header exchanged", File: "item.h", From: "i.token_lo | (uint64_t)i.token_hi << 32", To: "i.token_hi | (uint64_t)i.token_lo << 32", Kernel: kernels.NameDigest},
		{Name: "a value in another's place", File: "item.h", From: "a.values + 8 * (uint64_t)i.first}", To: "a.values}", Kernel: kernels.NameDigest},
	}
}

// orders: fences, barriers and counts of the moves.
func orders() []Plant {
	return []Plant{
		{Name: "no fence before the count", File: "item.h", From: "  kvf_fence_device(); /* (1) */\n", To: "", Kernel: kernels.NameDigest},
		{Name: "lane 0 counts before its warp has fenced", File: "item.h", From: "/* (1) */\n  kvf_sync_warp();\n", To: "\n", Kernel: kernels.NameScatter},
		{Name: "no fence before the tag", File: "item.h", From: "  kvf_fence_system(); /* (3) */\n", To: "", Kernel: kernels.NameScatter},
		{Name: "a fence for this device only before the tag", File: "item.h", From: "kvf_fence_system(); /* (3) */", To: "kvf_fence_device();", Kernel: kernels.NameConvert},
		{Name: "the tag before the bytes", File: "item.h", From: "  if (chunks != 0 && !kvf_completes", To: "  kvf_end_tag<Tags>(a, i, 0);\n  if (chunks != 0 && !kvf_completes", Kernel: kernels.NameScatter},
		{Name: "the item ends with its first slice", File: "item.h", From: "+ done != chunks) return false;", To: "+ done < 1) return false;", Kernel: kernels.NameScatter},
		{Name: "the counter is not put back", File: "item.h", From: "  if (kvf_lane() == 0) kvf_store4(counter, 0);\n", To: "", Kernel: kernels.NameGather},
		{Name: "a warp counts one, not its chunks", File: "item.h", From: "kvf_atomic_add(counter, done)", To: "kvf_atomic_add(counter, 1)", Kernel: kernels.NameDigest},
		{Name: "staged bytes read before they are there", File: "part.h", From: "  kvf_sync_warp(); /* the buffer is full */\n", To: "", Kernel: kernels.NameGather},
		{Name: "one buffer for all warps", File: "item.h", From: "{stage, KVF_CHUNK * kvf_warp()}", To: "{stage, 0}", Kernel: kernels.NameGather},
	}
}

// tags: which tag is written.
func tags() []Plant {
	return []Plant{
		{Name: "a tag for bytes of another digest", File: "item.h", From: "(has_digest && kvf_load8(want + 40) != digest)", To: "false", Kernel: kernels.NameScatter},
		{Name: "a tag of another size", File: "item.h", From: "kvf_load4(want + 48) != i.used ||", To: "", Kernel: kernels.NameConvert},
		{Name: "the next slot's tag", File: "item.h", From: "a.tags + KVF_TAG_BYTES * (uint64_t)i.slot", To: "a.tags + KVF_TAG_BYTES * (uint64_t)(i.slot + 1)", Kernel: kernels.NameScatter},
		{Name: "three quarters of a tag", File: "item.h", From: "if (k < KVF_TAG_BYTES) kvf_store16", To: "if (k + 16 < KVF_TAG_BYTES) kvf_store16", Kernel: kernels.NameScatter},
		{Name: "a slot beyond the table", File: "tagput.cu", From: "slot >= a.n_tags ||", To: "", Kernel: kernels.NameTagPut},
		{Name: "void is not put", File: "tagput.cu", From: "(want != KVF_NONE && want >= a.n_wants)", To: "want >= a.n_wants", Kernel: kernels.NameTagPut},
	}
}

// steps: tagverify.
func steps() []Plant {
	const file, kernel = "tagverify.cu", kernels.NameTagVerify
	return []Plant{
		{Name: "the generation is not compared", File: file, From: "want.hi != tag.hi;", To: "(quarter != 0 && want.hi != tag.hi);", Kernel: kernel},
		{Name: "half of each word is compared", File: file, From: "want.lo != tag.lo ||", To: "(uint32_t)want.lo != (uint32_t)tag.lo ||", Kernel: kernel},
		{Name: "one quarter says for all", File: file, From: "  differs |= kvf_shuffle_xor32(differs, 1);\n", To: "", Kernel: kernel},
		{Name: "a neighbour's tag", File: file, From: "s.w[2 * k] = kvf_shuffle64(tag.lo, group + k);", To: "s.w[2 * k] = kvf_shuffle64(tag.lo, k);", Kernel: kernel},
		{Name: "a page of the ledger, not of the table", File: file, From: "page = kvf_load4_fresh(a.table + 4 * (where.lo & 0xffffffffu))", To: "page = entry % a.pages", Kernel: kernel},
		{Name: "the table's page beyond the pool", File: file, From: "outside = page >= a.pages ||", To: "outside = page > a.pages ||", Kernel: kernel},
		{Name: "the slot beyond the page", File: file, From: "|| slot >= a.tag_slots;", To: ";", Kernel: kernel},
		{Name: "a place beyond the table", File: file, From: "if (live && (uint32_t)where.lo < a.table_len)", To: "if (live)", Kernel: kernel},
		{Name: "holes are checked", File: file, From: "    live = (uint32_t)where.hi != 0;\n", To: "", Kernel: kernel},
		{Name: "void is torn", File: file, From: "  if (any == 0) return KVF_TAG_VOID;\n", To: "", Kernel: kernel},
		{Name: "torn is foreign", File: file, From: "kvf_mix(s, 24, 48)", To: "kvf_mix(s, 32, 48)", Kernel: kernel},
		{Name: "entries beyond the count", File: file, From: "entry, entry < count, page", To: "entry, entry <= count, page", Kernel: kernel},
		{Name: "a count beyond the capacity is good", File: file, From: "    if (count > a.capacity && lane == KVF_TAG_OUTSIDE) mine = count;\n", To: "", Kernel: kernel},
		{Name: "states read before they are there", File: file, From: "  kvf_sync_block();\n", To: "", Kernel: kernel},
		{Name: "votes of 32 lanes where there are 64", File: file, From: "    uint64_t all = kvf_ballot(bad);", To: "    uint32_t all = (uint32_t)kvf_ballot(bad);", Kernel: kernel, Warp: 64},
		{Name: "the second offender is swallowed", File: file, From: "kept + kvf_bits64(all))", To: "kept + (all != 0))", Kernel: kernel},
		{Name: "the second block's offenders are swallowed", File: file, From: "kept < KVF_OFFENDERS; left &= left - 1)", To: "kept < KVF_OFFENDERS; left = 0)", Kernel: kernel},
		{Name: "offenders in any order", File: file, From: "kept + kvf_bits64(all & ((1ull << kvf_lane()) - 1))", To: "kept + kvf_bits64(all & ~((2ull << kvf_lane()) - 1))", Kernel: kernel},
		{Name: "no fence before the block counts itself", File: file, From: "  kvf_fence_device();\n  kvf_sync_warp();\n  uint32_t before", To: "  kvf_sync_warp();\n  uint32_t before", Kernel: kernel},
		{Name: "the verdict one block early", File: file, From: "+ 1 != kvf_blocks()) return;", To: "+ 2 < kvf_blocks()) return;", Kernel: kernel},
		{Name: "the flag before the report", File: file, From: "  kvf_fence_system();\n  kvf_sync_warp();\n", To: "", Kernel: kernel},
		{Name: "the report is not for the host", File: file, From: "  kvf_fence_system();\n  kvf_sync_warp();\n", To: "  kvf_fence_device();\n  kvf_sync_warp();\n", Kernel: kernel},
		{Name: "an early flag", File: file, From: "  kvf_sync_block();\n", To: "  if (kvf_thread() == 0) kvf_store4(a.flag, KVF_FLAG_GOOD);\n  kvf_sync_block();\n", Kernel: kernel},
		{Name: "totals stay for the next step", File: file, From: "    kvf_store4(total, 0);\n", To: "", Kernel: kernel},
		{Name: "the flag stays good", File: file, From: "bad == 0 ? KVF_FLAG_GOOD : KVF_FLAG_BAD", To: "bad < 2 ? KVF_FLAG_GOOD : KVF_FLAG_BAD", Kernel: kernel},
	}
}

// scrubs: scrub.
func scrubs() []Plant {
	const file, kernel = "scrub.cu", kernels.NameScrub
	return []Plant{
		{Name: "the last bytes stay", File: file, From: "at = end & ~15ull;", To: "at = end;", Kernel: kernel},
		{Name: "the poison turned", File: file, From: "8 * (k % 4) & 0xff", To: "8 * ((k + 1) % 4) & 0xff", Kernel: kernel},
		{Name: "one slot stays", File: file, From: "k < a.tag_slots * (KVF_TAG_BYTES / 16)", To: "k + 4 < a.tag_slots * (KVF_TAG_BYTES / 16)", Kernel: kernel},
		{Name: "bytes before tags", File: file, From: "    kvf_sync_block();\n", To: "", Kernel: kernel},
		{Name: "no fence after the tags", File: file, From: "    kvf_fence_system();\n", To: "", Kernel: kernel},
		{Name: "a page beyond the pool is scrubbed", File: file, From: "  if (page >= a.pages.pages) return;\n", To: "", Kernel: kernel},
		{Name: "all spans are the first", File: file, From: "kvf_load8(a.pages.layers + 8 * (uint64_t)span)", To: "kvf_load8(a.pages.layers)", Kernel: kernel},
	}
}
