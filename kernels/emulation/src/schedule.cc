/* Who runs when. Some blocks are resident at a time; whichever thread runs next is drawn by chance, after every operation that waits for or
 * orders others and, now and then, after a load or store. A warp operation ends when all lanes of the warp have come to the same one: a
 * lane that leaves or comes to another is an error. A barrier ends when all threads of the block that have not left have come. */
#include <cstring>

#include "machine.h"

#if defined(__x86_64__)
__asm__(
    ".text\n.globl kvf_emu_switch\n.type kvf_emu_switch,@function\nkvf_emu_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size kvf_emu_switch,.-kvf_emu_switch\n");
#endif

namespace emu {

Machine *machine = nullptr;

namespace {

constexpr uint32_t kResident = 3;
constexpr uint64_t kMostSteps = 1ull << 26; /* turns, loads and stores: far above what any test takes */

std::vector<std::unique_ptr<Block>> pool; /* blocks with their stacks, for the next launch */

void thread_entry() {
  machine->kernel->run(machine->args);
  machine->end_thread();
}

}  // namespace

void Machine::fail(const std::string &what) {
  if (error.empty()) {
    error = what;
    if (running != nullptr) error += " (block " + std::to_string(running->block->index) + ", thread " + std::to_string(running->index) + ")";
  }
  switch_fiber(running->fiber, scheduler); /* which ends the launch */
  abort();
}

void Machine::start_block(Block &b, uint32_t index) {
  b.index = index;
  b.waiting = b.left = 0;
  b.seen.clear();
  b.arrays.clear();
  b.shared_used = 0;
  for (size_t k = 0; k + 8 <= kSharedBytes; k += 8) {
    uint64_t v = random.next();
    memcpy(b.shared + k, &v, 8);
  }
  for (Warp &w : b.warps) {
    w.waiting = w.left = 0;
    w.seen.clear();
  }
  for (uint32_t k = 0; k < KVF_THREADS; k++) {
    Thread &t = b.threads[k];
    t.block = &b;
    t.index = k;
    t.left = false;
    t.wait = Wait::kNone;
    t.held_until = 0;
    t.own.clear();
    t.fiber.begin(thread_entry);
    ready.push_back(&t);
  }
}

void Machine::end_thread() {
  Thread &t = *running;
  Block &b = *t.block;
  Warp &w = b.warps[t.index / kWarp];
  t.left = true;
  w.left++;
  b.left++;
  if (w.waiting != 0) fail("a lane left while others of its warp wait for it");
  if (b.waiting != 0 && b.waiting + b.left == KVF_THREADS) release_barrier(b);
  switch_fiber(t.fiber, scheduler);
  abort();
}

void Machine::pause() {
  if (random.below(16) == 0) running->held_until = counts.turns + (1u << random.below(16));
  ready.push_back(running);
  sleep();
}

void Machine::sleep() {
  switch_fiber(running->fiber, scheduler);
}

void Machine::wake(Thread &t) {
  t.wait = Wait::kNone;
  ready.push_back(&t);
}

/* The running lane at a warp operation; its result. */
uint64_t Machine::meet(Wait kind, uint32_t value, uint32_t other) {
  Thread &t = *running;
  Block &b = *t.block;
  uint32_t warp = t.index / kWarp;
  Warp &w = b.warps[warp];
  Thread *lanes = b.threads + warp * kWarp;
  if (w.left != 0) fail("a warp operation without the lanes that have left");
  for (uint32_t k = 0; k < kWarp; k++) {
    if (lanes[k].wait != Wait::kNone && (lanes[k].wait != kind || (kind == Wait::kShuffleXor && lanes[k].other != other)))
      fail("lanes of one warp at different operations");
  }
  t.wait = kind;
  t.value = value;
  t.other = other;
  if (++w.waiting < kWarp) {
    sleep();
  } else {
    w.waiting = 0;
    finish_warp_operation(w, lanes, kind);
    t.wait = Wait::kNone;
  }
  return t.result;
}

void Machine::finish_warp_operation(Warp &w, Thread *lanes, Wait kind) {
  (void)w;
  uint64_t votes = 0;
  for (uint32_t k = 0; k < kWarp; k++) votes |= (uint64_t)(lanes[k].value != 0) << k;
  for (uint32_t k = 0; k < kWarp; k++) {
    Thread &t = lanes[k];
    switch (kind) {
      case Wait::kShuffleXor: t.result = (k ^ t.other) < kWarp ? lanes[k ^ t.other].value : t.value; break;
      case Wait::kShuffle:
        if (t.other >= kWarp) fail("a shuffle from a lane that the warp does not have");
        t.result = lanes[t.other].value;
        break;
      case Wait::kBallot: t.result = votes; break;
      default: promote_to_warp(t);
    }
    if (&t != running) wake(t);
  }
}

void Machine::sync_block() {
  Thread &t = *running;
  Block &b = *t.block;
  for (uint32_t k = 0; k < kWarp; k++) {
    Wait other = b.threads[t.index / kWarp * kWarp + k].wait;
    if (other != Wait::kNone && other != Wait::kSyncBlock) fail("lanes of one warp at different operations");
  }
  t.wait = Wait::kSyncBlock;
  b.waiting++;
  if (b.waiting + b.left == KVF_THREADS) {
    release_barrier(b);
  }
  sleep();
}

void Machine::release_barrier(Block &b) {
  promote_to_block(b);
  b.waiting = 0;
  for (Thread &t : b.threads) {
    if (t.wait == Wait::kSyncBlock) wake(t);
  }
}

/* A new whim: some threads are not to run while any other can, for a time. Even chances alone would let no thread fall far behind. */
void Machine::new_whim() {
  whim_left = 1u << random.below(17);
  uint32_t kind = random.below(6), thread = random.below(KVF_THREADS), warp = thread / kWarp;
  slow.reset();
  for (uint32_t k = 0; k < KVF_THREADS; k++) {
    bool same_warp = k / kWarp == warp;
    slow[k] = kind == 1 ? k == thread : kind == 2 ? same_warp : kind == 3 ? same_warp && k % kWarp != 0 : kind == 4 ? !same_warp : false;
  }
}

/* The index in ready of who runs next. */
uint32_t Machine::choose() {
  if (whim_left-- == 0) new_whim();
  uint32_t n = (uint32_t)ready.size(), k = random.below(n);
  for (uint32_t tries = 0; tries < 24 && (slow[ready[k]->index] || ready[k]->held_until > counts.turns); tries++) k = random.below(n);
  return k;
}

void Machine::run() {
  uint32_t next = 0, resident = 1 + random.below(kResident), ended = 0;
  std::vector<uint32_t> order(grid); /* blocks begin in any order */
  for (uint32_t k = 0; k < grid; k++) order[k] = k;
  for (uint32_t k = grid; k > 1; k--) std::swap(order[k - 1], order[random.below(k)]);
  auto start = [&](Block &b) { start_block(b, order[next++]); };
  while (blocks.size() < resident && next < grid) {
    if (pool.empty()) {
      blocks.push_back(std::make_unique<Block>());
    } else {
      blocks.push_back(std::move(pool.back()));
      pool.pop_back();
    }
    start(*blocks.back());
  }
  while (ended < grid) {
    if (steps++ > kMostSteps) {
      error = "it does not end";
      break;
    }
    if (ready.empty()) {
      if (error.empty()) error = "no thread can run: a barrier that not all threads reach";
      break;
    }
    uint32_t k = choose();
    Thread &t = *ready[k];
    ready[k] = ready.back();
    ready.pop_back();
    running = &t;
    counts.turns++;
    switch_fiber(scheduler, t.fiber);
    some_late_stores();
    if (!error.empty()) break;
    Block &b = *t.block;
    if (!t.left || b.left != KVF_THREADS) continue;
    ended++;
    promote_to_block(b);
    for (const Pending &p : b.seen.stores) {
      bool shared = p.at >= (uint64_t)(uintptr_t)b.shared && p.at < (uint64_t)(uintptr_t)(b.shared + kSharedBytes);
      if (!shared) late.add(p);
    }
    b.left = 0;
    if (next < grid) start(b);
  }
  if (error.empty()) commit_all(late);
  for (auto &b : blocks) pool.push_back(std::move(b));
}

}  // namespace emu

using emu::machine;
using emu::Wait;

extern "C" uint32_t kvf_emu_thread() { return machine->running->index; }
extern "C" uint32_t kvf_emu_block() { return machine->running->block->index; }
extern "C" uint32_t kvf_emu_blocks() { return machine->grid; }
extern "C" uint32_t kvf_emu_shuffle_xor(uint32_t v, uint32_t mask) { return (uint32_t)machine->meet(Wait::kShuffleXor, v, mask); }
extern "C" uint32_t kvf_emu_shuffle(uint32_t v, uint32_t lane) { return (uint32_t)machine->meet(Wait::kShuffle, v, lane); }
extern "C" uint64_t kvf_emu_ballot(uint32_t v) { return machine->meet(Wait::kBallot, v, 0); }
extern "C" void kvf_emu_sync_warp() { machine->meet(Wait::kSyncWarp, 0, 0); }
extern "C" void kvf_emu_sync_block() { machine->sync_block(); }
extern "C" uint32_t kvf_emu_warp(void) { return KVF_WARP; }

extern "C" int kvf_emulate(const char *kernel, uint32_t grid, uint32_t block, const void *args, size_t args_bytes, uint64_t seed, char *error,
                           size_t error_bytes, kvf_emu_counts *counts) {
  emu::Machine m;
  m.kernel = emu::find_kernel(kernel);
  m.args = args;
  m.grid = grid;
  m.random.s = (seed + 1) * 0x9E3779B97F4A7C15ull | 1;
  if (m.kernel == nullptr) {
    m.error = std::string("no kernel ") + kernel;
  } else if (args_bytes != m.kernel->args_bytes) {
    m.error = "arguments of another size";
  } else if (block != KVF_THREADS || grid == 0) {
    m.error = "launch of another shape";
  } else {
    machine = &m;
    m.run();
    machine = nullptr;
  }
  if (counts != nullptr) *counts = m.counts;
  if (m.error.empty()) return 0;
  if (error_bytes > 0) snprintf(error, error_bytes, "%s: %s", kernel, m.error.c_str());
  return -1;
}
