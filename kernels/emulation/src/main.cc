/* The emulation as a program that a test drives over a pipe: requests on stdin, answers on stdout, little-endian, one at a time. A request is
 * a letter and its fields; anything unexpected ends the program with a text on stderr.
 *
 *   A size u64, skew u64, flags u32    memory at a multiple of 256 plus skew, filled with other bytes   -> address u64
 *   W address u64, n u64, bytes        -> nothing
 *   R address u64, n u64               -> bytes
 *   F                                  all memory back, all watches gone
 *   O trigger u64, n u64, system u32, count u32, count times (address u64, n u64, bytes)
 *   U                                  all watches gone
 *   L name, grid u32, block u32, seed u64, args   -> error (empty: none), kvf_emu_counts; name, args, error are u32 length and bytes
 *   T                                  -> number of rows u32, rows (type, field, offset u32, size u32)
 *   G                                  -> KVF_WARP u32 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "abi_table.h"
#include "emulate.h"

namespace {

struct Memory {
  void *block;
  uint64_t at;
};
std::vector<Memory> memory;

void in(void *p, size_t n) {
  if (fread(p, 1, n, stdin) != n) {
    fprintf(stderr, "emulation: a request ended early\n");
    exit(2);
  }
}

template <class T>
T in() {
  T v;
  in(&v, sizeof v);
  return v;
}

std::string in_text() {
  uint32_t n = in<uint32_t>();
  if (n > 1 << 20) exit(2);
  std::string s(n, 0);
  in(&s[0], n);
  return s;
}

void out(const void *p, size_t n) {
  if (fwrite(p, 1, n, stdout) != n) exit(2);
}

template <class T>
void out(T v) {
  out(&v, sizeof v);
}

void out_text(const char *s) {
  out((uint32_t)strlen(s));
  out(s, strlen(s));
}

void allocate() {
  uint64_t size = in<uint64_t>(), skew = in<uint64_t>();
  uint32_t flags = in<uint32_t>();
  void *p = nullptr;
  if (posix_memalign(&p, 256, size + skew + 512) != 0) exit(2);
  memset(p, 0xA5, size + skew + 512);
  uint64_t at = (uint64_t)(uintptr_t)p + 256 + skew;
  if (kvf_emu_register(at, size, flags) != 0) exit(2);
  memory.push_back({p, at});
  out(at);
}

void free_all() {
  for (const Memory &m : memory) {
    kvf_emu_unregister(m.at);
    free(m.block);
  }
  memory.clear();
  kvf_emu_unwatch();
}

void watch() {
  uint64_t trigger = in<uint64_t>(), n = in<uint64_t>();
  uint32_t system = in<uint32_t>(), count = in<uint32_t>();
  kvf_emu_watch(trigger, n, system != 0);
  for (uint32_t k = 0; k < count; k++) {
    uint64_t at = in<uint64_t>();
    std::vector<uint8_t> expected(in<uint64_t>());
    in(expected.data(), expected.size());
    kvf_emu_watch_data(at, expected.data(), expected.size());
  }
}

void launch() {
  std::string name = in_text();
  uint32_t grid = in<uint32_t>(), block = in<uint32_t>();
  uint64_t seed = in<uint64_t>();
  std::string args = in_text();
  char error[512] = "";
  kvf_emu_counts counts;
  memset(&counts, 0, sizeof counts);
  kvf_emulate(name.c_str(), grid, block, args.data(), args.size(), seed, error, sizeof error, &counts);
  out_text(error);
  out(counts);
}

void table() {
  out((uint32_t)kAbiRows);
  for (size_t k = 0; k < kAbiRows; k++) {
    out_text(kAbi[k].type);
    out_text(kAbi[k].field);
    out((uint32_t)kAbi[k].offset);
    out((uint32_t)kAbi[k].size);
  }
}

}  // namespace

int main() {
  for (int c; (c = getchar()) != EOF;) {
    uint64_t at, n;
    switch (c) {
      case 'A': allocate(); break;
      case 'W':
        at = in<uint64_t>(), n = in<uint64_t>();
        in((void *)(uintptr_t)at, n);
        break;
      case 'R':
        at = in<uint64_t>(), n = in<uint64_t>();
        out((const void *)(uintptr_t)at, n);
        break;
      case 'F': free_all(); break;
      case 'U': kvf_emu_unwatch(); break;
      case 'O': watch(); break;
      case 'L': launch(); break;
      case 'T': table(); break;
      case 'G': out(kvf_emu_warp()); break;
      default: fprintf(stderr, "emulation: no request %c\n", c); return 2;
    }
    fflush(stdout);
  }
  free_all();
  return 0;
}
