/* The emulation's C interface: kernels of this repository on the CPU, by name. For the tests' program (main.cc) and for a fake driver that
 * links or opens the shared library. One launch at a time; not safe for concurrent use. Memory is the caller's, at its real addresses;
 * kernels may touch only what was registered. */
#ifndef KVF_EMULATE_H
#define KVF_EMULATE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KVF_EMU_WRITABLE = 1 };

/* Lets kernels read, and with KVF_EMU_WRITABLE write, n bytes. 0, or -1 where it overlaps registered memory. */
int kvf_emu_register(uint64_t address, uint64_t n, uint32_t flags);
/* Takes back the registration that begins at address. 0, or -1 where there is none. */
int kvf_emu_unregister(uint64_t address);

/* What the launches counted. */
struct kvf_emu_counts {
  uint64_t loads, wide_loads;   /* of global memory; wide: of 16 bytes */
  uint64_t stores, wide_stores;
  uint64_t late; /* stores that other threads could see only later than they were made */
  uint64_t turns; /* of the schedule */
};

/* Runs a kernel to its end. args is its struct (abi.h). seed decides the schedule and when stores become visible. 0; -1 and a text in error
 * where the launch is refused (unknown kernel, other size of args or block) or a thread broke a rule. counts may be NULL. */
int kvf_emulate(const char *kernel, uint32_t grid, uint32_t block, const void *args, size_t args_bytes, uint64_t seed, char *error,
                size_t error_bytes, struct kvf_emu_counts *counts);

/* The next launch fails if a store becomes visible in [trigger, trigger+n) while any of the watched data is not yet what is expected, or,
 * with system, not yet visible to the host. kvf_emu_watch_data adds data to the watch added last. */
void kvf_emu_watch(uint64_t trigger, uint64_t n, int system);
void kvf_emu_watch_data(uint64_t address, const void *expected, uint64_t n);
void kvf_emu_unwatch(void); /* removes all */

/* 32 or 64. */
uint32_t kvf_emu_warp(void);

#ifdef __cplusplus
}
#endif
#endif
