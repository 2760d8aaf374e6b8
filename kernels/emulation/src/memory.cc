/* Who sees a store when. A store goes into its thread's buffer, where only that thread sees it. sync_warp moves it to the warp's, sync_block
 * to the block's, a fence to memory, where all see it: with all that the fencing thread saw before, as fences are cumulative. Any buffered
 * store may also go to memory at any moment, in any order but that of stores to the same bytes. What a block leaves buffered at its end
 * stays invisible to others until later, at the latest until the launch ends. So a missing fence is a store that comes too late under some
 * schedule. Loads are never stale beyond that: reading ahead of a fence is not emulated. */
#include <cstring>
#include <map>

#include "machine.h"

namespace emu {

namespace {

/* How many stores a buffer holds before one must go; small, so that order is lost often. */
constexpr size_t kOwnStores = 12, kWarpStores = 64, kBlockStores = 96;

struct Region {
  uint64_t n;
  uint32_t flags;
};
std::map<uint64_t, Region> regions;

struct Watched {
  uint64_t at;
  std::vector<uint8_t> expected;
  std::vector<bool> unseen; /* by the host */
};
struct Watch {
  uint64_t trigger, n;
  bool system;
  std::vector<Watched> data;
};
std::vector<Watch> watches;

void overlay(const Buffer &b, uint64_t at, uint8_t *v, uint32_t n) {
  if (!b.may_hold(at)) return;
  for (const Pending &p : b.stores) {
    if (p.at >= at + n || at >= p.at + p.n) continue;
    for (uint32_t k = 0; k < p.n; k++) {
      if (p.at + k >= at && p.at + k < at + n) v[p.at + k - at] = p.bytes[k];
    }
  }
}

}  // namespace

bool allowed(uint64_t at, uint64_t n, bool writes) {
  auto r = regions.upper_bound(at);
  if (r == regions.begin()) return false;
  --r;
  return at + n <= r->first + r->second.n && (!writes || (r->second.flags & KVF_EMU_WRITABLE) != 0);
}

void Machine::check(uint64_t at, uint32_t n, bool writes) {
  char text[128];
  const char *act = writes ? "store" : "load";
  if (at % n != 0) {
    snprintf(text, sizeof text, "%s of %u bytes at 0x%llx is misaligned", act, n, (unsigned long long)at);
    fail(text);
  }
  if (!allowed(at, n, writes)) {
    snprintf(text, sizeof text, "%s of %u bytes at 0x%llx is outside of what the kernel may touch", act, n, (unsigned long long)at);
    fail(text);
  }
}

void Machine::load(uint64_t at, void *v, uint32_t n, bool shared) {
  if (!shared) {
    check(at, n, false);
    counts.loads++;
    counts.wide_loads += n == 16;
  }
  steps++;
  if (random.below(64) == 0) pause();
  Thread &t = *running;
  memcpy(v, (const void *)(uintptr_t)at, n);
  overlay(t.block->seen, at, (uint8_t *)v, n);
  overlay(t.block->warps[t.index / kWarp].seen, at, (uint8_t *)v, n);
  overlay(t.own, at, (uint8_t *)v, n);
}

void Machine::store(uint64_t at, const void *v, uint32_t n, bool shared) {
  if (!shared) {
    check(at, n, true);
    counts.stores++;
    counts.wide_stores += n == 16;
  }
  steps++;
  Pending p;
  p.at = at;
  p.n = n;
  memcpy(p.bytes, v, n);
  Thread &t = *running;
  t.own.add(p);
  counts.late++;
  if (t.own.stores.size() > kOwnStores || random.below(8) == 0) evict(t.own, {&t.block->seen, &t.block->warps[t.index / kWarp].seen});
  if (random.below(64) == 0) pause();
}

/* One store of `from` to memory, by chance; those to the same bytes that are older go before it. */
void Machine::evict(Buffer &from, std::initializer_list<Buffer *> older) {
  if (from.stores.empty()) return;
  uint32_t k = random.below((uint32_t)from.stores.size());
  Pending p = from.stores[k];
  for (Buffer *b : older) commit_overlapping(*b, p.at, p.n);
  commit_overlapping(from, p.at, p.n);
}

void Machine::commit_overlapping(Buffer &b, uint64_t at, uint32_t n) {
  if (!b.may_hold(at)) return;
  size_t kept = 0;
  uint64_t filter = 0;
  for (size_t k = 0; k < b.stores.size(); k++) {
    Pending p = b.stores[k];
    if (p.at < at + n && at < p.at + p.n) {
      commit(p);
    } else {
      filter |= Buffer::bit(p.at);
      b.stores[kept++] = p;
    }
  }
  b.stores.resize(kept);
  b.filter = filter;
}

void Machine::commit_all(Buffer &b) {
  if (b.stores.empty()) return;
  std::vector<Pending> stores;
  stores.swap(b.stores);
  b.filter = 0;
  for (const Pending &p : stores) commit(p);
}

void Machine::commit(const Pending &p) {
  std::string broken = check_watches(p.at, p.n);
  if (memcmp((const void *)(uintptr_t)p.at, p.bytes, p.n) != 0) mark_unseen_by_host(p.at, p.n);
  memcpy((void *)(uintptr_t)p.at, p.bytes, p.n);
  if (!broken.empty() && error.empty()) error = broken;
}

void Machine::fence(bool system) {
  pause();
  Thread &t = *running;
  commit_all(t.block->seen);
  commit_all(t.block->warps[t.index / kWarp].seen);
  commit_all(t.own);
  if (system) all_seen_by_host();
}

void Machine::promote_to_warp(Thread &t) {
  Buffer &w = t.block->warps[t.index / kWarp].seen;
  for (const Pending &p : t.own.stores) w.add(p);
  t.own.clear();
  while (w.stores.size() > kWarpStores) evict(w, {&t.block->seen});
}

void Machine::promote_to_block(Block &b) {
  for (Warp &w : b.warps) {
    for (const Pending &p : w.seen.stores) b.seen.add(p);
    w.seen.clear();
  }
  for (Thread &t : b.threads) {
    for (const Pending &p : t.own.stores) b.seen.add(p);
    t.own.clear();
  }
  while (b.seen.stores.size() > kBlockStores) evict(b.seen, {});
}

/* Now and then something that an ended block left behind becomes visible. */
void Machine::some_late_stores() {
  if (!late.stores.empty() && random.below(64) == 0) evict(late, {});
}

void mark_unseen_by_host(uint64_t at, uint32_t n) {
  for (Watch &w : watches) {
    if (!w.system) continue;
    for (Watched &d : w.data) {
      for (uint64_t k = 0; k < n; k++) {
        if (at + k >= d.at && at + k < d.at + d.expected.size()) d.unseen[at + k - d.at] = true;
      }
    }
  }
}

void all_seen_by_host() {
  for (Watch &w : watches) {
    for (Watched &d : w.data) d.unseen.assign(d.unseen.size(), false);
  }
}

/* What is wrong with a store that becomes visible at [at, at+n). */
std::string check_watches(uint64_t at, uint32_t n) {
  char text[160];
  for (const Watch &w : watches) {
    if (at >= w.trigger + w.n || w.trigger >= at + n) continue;
    for (const Watched &d : w.data) {
      for (uint64_t k = 0; k < d.expected.size(); k++) {
        bool same = ((const uint8_t *)(uintptr_t)d.at)[k] == d.expected[k];
        if (same && !(w.system && d.unseen[k])) continue;
        snprintf(text, sizeof text, "order: a store at 0x%llx is visible before byte %llu of 0x%llx is%s", (unsigned long long)at, (unsigned long long)k,
                 (unsigned long long)d.at, same ? " to the host" : "");
        return text;
      }
    }
  }
  return "";
}

}  // namespace emu

using emu::machine;

extern "C" int kvf_emu_register(uint64_t address, uint64_t n, uint32_t flags) {
  auto next = emu::regions.lower_bound(address);
  if (n == 0 || (next != emu::regions.end() && next->first < address + n)) return -1;
  if (next != emu::regions.begin() && std::prev(next)->first + std::prev(next)->second.n > address) return -1;
  emu::regions[address] = {n, flags};
  return 0;
}

extern "C" int kvf_emu_unregister(uint64_t address) { return emu::regions.erase(address) == 1 ? 0 : -1; }

extern "C" void kvf_emu_watch(uint64_t trigger, uint64_t n, int system) { emu::watches.push_back({trigger, n, system != 0, {}}); }

extern "C" void kvf_emu_watch_data(uint64_t address, const void *expected, uint64_t n) {
  if (emu::watches.empty()) return;
  const uint8_t *p = (const uint8_t *)expected;
  emu::watches.back().data.push_back({address, std::vector<uint8_t>(p, p + n), std::vector<bool>(n, false)});
}

extern "C" void kvf_emu_unwatch(void) { emu::watches.clear(); }

extern "C" void kvf_emu_load(uint64_t a, void *v, uint32_t n) { machine->load(a, v, n, false); }
extern "C" void kvf_emu_store(uint64_t a, const void *v, uint32_t n) { machine->store(a, v, n, false); }
extern "C" void kvf_emu_fence(int system) { machine->fence(system != 0); }

extern "C" uint32_t kvf_emu_atomic_add(uint64_t a, uint32_t v) {
  emu::Machine &m = *machine;
  m.check(a, 4, true);
  m.pause();
  emu::Thread &t = *m.running;
  m.commit_overlapping(t.block->seen, a, 4);
  m.commit_overlapping(t.block->warps[t.index / emu::kWarp].seen, a, 4);
  m.commit_overlapping(t.own, a, 4);
  uint32_t old;
  memcpy(&old, (const void *)(uintptr_t)a, 4);
  emu::Pending p{a, 4, {}};
  v += old;
  memcpy(p.bytes, &v, 4);
  m.commit(p);
  return old;
}

namespace {

/* Shared arrays are checked one by one: past the end of one is an error even where another begins. */
void check_shared(uint64_t p, uint32_t at, uint32_t n) {
  emu::Block &b = *machine->running->block;
  for (const emu::SharedArray &s : b.arrays) {
    if (p != (uint64_t)(uintptr_t)(b.shared + s.at)) continue;
    if (at % n != 0) machine->fail("misaligned access to shared memory");
    if ((uint64_t)at + n > s.n) machine->fail("access past the end of a shared array");
    return;
  }
  machine->fail("access to shared memory that is no array of this block");
}

}  // namespace

extern "C" uint64_t kvf_emu_shared(uint32_t id, uint32_t bytes) {
  emu::Block &b = *machine->running->block;
  for (const emu::SharedArray &s : b.arrays) {
    if (s.id == id) return (uint64_t)(uintptr_t)(b.shared + s.at);
  }
  if (b.shared_used + bytes > emu::kSharedBytes) machine->fail("more static shared memory than a block has");
  b.arrays.push_back({id, b.shared_used, bytes});
  b.shared_used += (bytes + 15) & ~15u;
  return (uint64_t)(uintptr_t)(b.shared + b.arrays.back().at);
}

extern "C" void kvf_emu_shared_load(uint64_t p, uint32_t at, void *v, uint32_t n) {
  check_shared(p, at, n);
  machine->load(p + at, v, n, true);
}

extern "C" void kvf_emu_shared_store(uint64_t p, uint32_t at, const void *v, uint32_t n) {
  check_shared(p, at, n);
  machine->store(p + at, v, n, true);
}
