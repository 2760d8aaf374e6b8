/* Fibers: a stack and the point where it was left. A switch saves what a called function must preserve and nothing else. Stacks come from
 * a pool that lives as long as the process. */
#ifndef KVF_EMULATION_FIBER_H
#define KVF_EMULATION_FIBER_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emu {

constexpr size_t kStackBytes = 64 << 10;

#if defined(__x86_64__)

extern "C" void kvf_emu_switch(void **save, void *to);

struct Fiber {
  void *stack = nullptr, *at = nullptr;
  /* entry never returns: its last act is a switch away. */
  void begin(void (*entry)()) {
    if (stack == nullptr) stack = malloc(kStackBytes);
    uint64_t *p = (uint64_t *)((uintptr_t)((char *)stack + kStackBytes) & ~(uintptr_t)15);
    *--p = 0;
    *--p = (uint64_t)(uintptr_t)entry;
    for (int k = 0; k < 6; k++) *--p = 0;
    at = p;
  }
};

inline void switch_fiber(Fiber &from, Fiber &to) { kvf_emu_switch(&from.at, to.at); }

#else

struct Fiber {
  void *stack = nullptr;
  ucontext_t at;
  void begin(void (*entry)()) {
    if (stack == nullptr) stack = malloc(kStackBytes);
    getcontext(&at);
    at.uc_stack.ss_sp = stack;
    at.uc_stack.ss_size = kStackBytes;
    at.uc_link = nullptr;
    makecontext(&at, entry, 0);
  }
};

inline void switch_fiber(Fiber &from, Fiber &to) { swapcontext(&from.at, &to.at); }

#endif

}  // namespace emu

#endif
