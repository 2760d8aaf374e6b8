/* The machine that runs a launch: threads as fibers, several blocks at a time, stores that others see late. All of it belongs to one launch
 * and runs in the caller's thread. Read next: memory.cc (who sees a store when), schedule.cc (who runs when). */
#ifndef KVF_EMULATION_MACHINE_H
#define KVF_EMULATION_MACHINE_H

#include <bitset>
#include <memory>
#include <string>
#include <vector>

#include "../../abi.h"
#include "emulate.h"
#include "fiber.h"

namespace emu {

constexpr uint32_t kWarp = KVF_WARP;
constexpr uint32_t kWarps = KVF_THREADS / kWarp;
constexpr uint32_t kSharedBytes = 48 << 10; /* static shared memory of a block */

/* xorshift: fast, and the same everywhere. */
struct Random {
  uint64_t s;
  uint64_t next() {
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return s * 0x2545F4914F6CDD1Dull >> 16;
  }
  uint32_t below(uint32_t n) { return (uint32_t)(next() % n); }
};

/* A store that is not yet in memory. */
struct Pending {
  uint64_t at;
  uint32_t n;
  uint8_t bytes[16];
};

/* Stores that one set of threads sees and others do not, in order. */
struct Buffer {
  std::vector<Pending> stores;
  uint64_t filter = 0; /* bit by 16-byte granule: 0 says that none overlaps */
  static uint64_t bit(uint64_t at) { return 1ull << ((at >> 4) * 0x9E3779B97F4A7C15ull >> 58); }
  void add(const Pending &p) {
    stores.push_back(p);
    filter |= bit(p.at);
  }
  void clear() {
    stores.clear();
    filter = 0;
  }
  bool may_hold(uint64_t at) const { return (filter & bit(at)) != 0; }
};

struct Block;

enum class Wait : uint8_t { kNone, kShuffleXor, kShuffle, kBallot, kSyncWarp, kSyncBlock };

struct Thread {
  Fiber fiber;
  Block *block = nullptr;
  uint32_t index = 0;
  bool left = false;
  Wait wait = Wait::kNone;
  uint32_t value = 0, other = 0; /* what it brought to a warp operation, and with which mask or lane */
  uint64_t result = 0;
  uint64_t held_until = 0; /* a turn before which it runs only if others cannot */
  Buffer own;
};

struct Warp {
  uint32_t waiting = 0, left = 0;
  Buffer seen; /* by all its lanes */
};

struct SharedArray {
  uint32_t id, at, n;
};

struct Block {
  uint32_t index = 0;
  uint32_t waiting = 0, left = 0;
  Thread threads[KVF_THREADS];
  Warp warps[kWarps];
  Buffer seen; /* by all its threads */
  std::vector<SharedArray> arrays;
  uint32_t shared_used = 0;
  alignas(16) uint8_t shared[kSharedBytes];
};

struct Kernel {
  const char *name;
  size_t args_bytes;
  void (*run)(const void *args);
};
const Kernel *find_kernel(const char *name);

struct Machine {
  const Kernel *kernel = nullptr;
  const void *args = nullptr;
  uint32_t grid = 0;
  Random random{1};
  Thread *running = nullptr;
  Fiber scheduler;
  std::vector<std::unique_ptr<Block>> blocks; /* resident */
  std::vector<Thread *> ready;
  Buffer late; /* of blocks that have ended */
  kvf_emu_counts counts{};
  std::string error;

  std::bitset<KVF_THREADS> slow; /* threads, in every block, that the present whim holds back */
  uint32_t whim_left = 0;        /* turns until the next */
  uint64_t steps = 0;            /* of all threads */

  /* schedule.cc */
  void run();
  uint32_t choose();
  void new_whim();
  void start_block(Block &b, uint32_t index);
  void end_thread();
  void pause();       /* lets others run; the thread stays ready */
  void sleep();       /* until another thread makes it ready */
  void wake(Thread &t);
  uint64_t meet(Wait kind, uint32_t value, uint32_t other);
  void finish_warp_operation(Warp &w, Thread *lanes, Wait kind);
  void sync_block();
  void release_barrier(Block &b);
  [[noreturn]] void fail(const std::string &what);

  /* memory.cc */
  void load(uint64_t at, void *v, uint32_t n, bool shared);
  void store(uint64_t at, const void *v, uint32_t n, bool shared);
  void check(uint64_t at, uint32_t n, bool writes);
  void fence(bool system);
  void promote_to_warp(Thread &t);
  void promote_to_block(Block &b);
  void some_late_stores();
  void commit(const Pending &p);
  void commit_all(Buffer &b);
  void commit_overlapping(Buffer &b, uint64_t at, uint32_t n);
  void evict(Buffer &from, std::initializer_list<Buffer *> older);
};

extern Machine *machine; /* of the running launch */

void mark_unseen_by_host(uint64_t at, uint32_t n);
void all_seen_by_host();
std::string check_watches(uint64_t at, uint32_t n);
bool allowed(uint64_t at, uint64_t n, bool writes);

}  // namespace emu

#endif
