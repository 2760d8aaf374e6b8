/* The emulation as a program that a test drives over a pipe: requests on stdin, answers on stdout, little-endian, one at a time. A request is
 * a letter and its fields; anything unexpected ends the program with a text on stderr.
 *
 *   A size u64, skew u64, flags u32    memory at a multiple of 256 plus skew, filled with other bytes   -> address u64
 *   W address u64, n u64, bytes        -> nothing
 *   R address u64, n u64               -> bytes
 *   F                                  all memory back, all watches gone
 *   O trigger u64, n u64, system u32, count u32, count times (address u64, n u64, bytes)
 *   U                                  all watches gone
 *   L name, grid u32, seed u64, args   -> error (empty: none), kvf_emu_counts; name, args, error are u32 length and bytes
 *   T                                  -> number of rows u32, rows (type, field, offset u32, size u32)
 *   G                                  -> KVF_WARP u32 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "abi_table.h"
#include "../../launch.h"
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

/* A launch as a driver: what launch.h asks for must be what the request says. */
struct Launch {
  std::string name, args;
  uint32_t grid;
  uint64_t seed;
  char error[512];
  kvf_emu_counts counts;
};

int launch_driver(void *driver, const char *kernel, uint32_t grid, const void *args, size_t n, void *) {
  Launch &l = *(Launch *)driver;
  if (l.name != kernel || l.grid != grid || n != l.args.size()) {
    snprintf(l.error, sizeof l.error, "%s: launch.h asks for %s with %u blocks and %zu bytes, the request for %u and %zu", l.name.c_str(), kernel, grid, n, l.grid,
             l.args.size());
    return -1;
  }
  return kvf_emulate(kernel, grid, KVF_THREADS, args, n, l.seed, l.error, sizeof l.error, &l.counts);
}

template <class Args>
int by_launcher(Launch &l, int (*f)(const kvf_launcher *, const Args *, void *)) {
  Args a;
  if (l.args.size() != sizeof a) return KVF_BAD_ARGUMENTS;
  memcpy(&a, l.args.data(), sizeof a);
  kvf_launcher driver = {&l, launch_driver};
  return f(&driver, &a, nullptr);
}

int by_name(Launch &l) {
  if (l.name == "kvf_digest") return by_launcher(l, kvf_launch_digest);
  if (l.name == "kvf_gather") return by_launcher(l, kvf_launch_gather);
  if (l.name == "kvf_scatter") return by_launcher(l, kvf_launch_scatter);
  if (l.name == "kvf_convert") return by_launcher(l, kvf_launch_convert);
  if (l.name == "kvf_tagverify") return by_launcher(l, kvf_launch_tagverify);
  if (l.name == "kvf_scrub") return by_launcher(l, kvf_launch_scrub);
  if (l.name == "kvf_tagput") return by_launcher(l, kvf_launch_tagput);
  return kvf_emulate(l.name.c_str(), l.grid, KVF_THREADS, l.args.data(), l.args.size(), l.seed, l.error, sizeof l.error, &l.counts);
}

void launch() {
  Launch l = {};
  l.name = in_text();
  l.grid = in<uint32_t>();
  l.seed = in<uint64_t>();
  l.args = in_text();
  if (by_name(l) == KVF_BAD_ARGUMENTS) snprintf(l.error, sizeof l.error, "%s: bad arguments", l.name.c_str());
  out_text(l.error);
  out(l.counts);
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
