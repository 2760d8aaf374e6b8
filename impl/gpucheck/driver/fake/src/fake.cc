/* A CUDA driver without a card, for the dry run of the GPU check: host memory, work done when it is queued, kernels by the emulation
 * (KVFENCE_FAKE_EMULATION names its library). It refuses what the check must not do: memory that is not its own, access that was not set, a
 * copy or an event that waits inside a capture, sizes that are no multiple of the granularity. It is no model of a card's order or speed. */
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>


#define API extern "C" __attribute__((visibility("default")))

namespace {

enum { GOOD = 0, BAD_VALUE = 1, NO_MEMORY = 2, BAD_CONTEXT = 201, BAD_IMAGE = 200, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700, CAPTURE = 900 };
const size_t granularity = 2 << 20;

typedef int (*registrar)(uint64_t, uint64_t, uint32_t);
typedef int (*emulator)(const char *, uint32_t, uint32_t, const void *, size_t, uint64_t, char *, size_t, void *);

struct Range {
  uint64_t size;
  int access; /* 0, 1 read, 3 read and write */
  bool mapped;
};
struct Module {
  std::string text;
};
struct Handle {
  int fd;
  size_t size;
};
struct Launch {
  std::string kernel;
  uint32_t grid, block;
  std::string args;
};
typedef std::vector<Launch> Graph;

std::map<uint64_t, Range> memory;
registrar add;
emulator emulate;
bool current, capturing;
Graph captured;
int broken; /* the code that every call returns after a kernel broke a rule */
uint64_t turn;

size_t args_of(const std::string &kernel) {
  if (kernel == "kvf_tagverify") return VERIFY_ARGS;
  if (kernel == "kvf_scrub") return SCRUB_ARGS;
  if (kernel == "kvf_tagput") return PUT_ARGS;
  return MOVE_ARGS;
}

int state() { return broken != 0 ? broken : current ? GOOD : BAD_CONTEXT; }

int reach(uint64_t p, size_t n, int access) {
  auto it = memory.upper_bound(p);
  if (it == memory.begin()) return ILLEGAL_ADDRESS;
  --it;
  bool inside = p >= it->first && n <= it->second.size && p - it->first <= it->second.size - n;
  return inside && (it->second.access & access) == access ? GOOD : ILLEGAL_ADDRESS;
}

int run(const Launch &l) {
  char error[512] = "";
  if (emulate(l.kernel.c_str(), l.grid, l.block, l.args.data(), l.args.size(), ++turn, error, sizeof error, nullptr) == 0) return GOOD;
  fprintf(stderr, "fake driver: %s: %s\n", l.kernel.c_str(), error);
  return broken = ILLEGAL_ADDRESS;
}

}  // namespace

API int cuInit(unsigned flags) {
  const char *path = getenv("KVFENCE_FAKE_EMULATION");
  void *lib = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (flags != 0 || lib == nullptr) return BAD_VALUE;
  add = (registrar)dlsym(lib, "kvf_emu_register");
  emulate = (emulator)dlsym(lib, "kvf_emulate");
  return add != nullptr && emulate != nullptr ? GOOD : NOT_FOUND;
}
API int cuDriverGetVersion(int *v) { return *v = 13000, GOOD; }
API int cuDeviceGet(int *d, int n) { return *d = 0, n == 0 ? GOOD : 101; }
API int cuDeviceGetName(char *name, int n, int) { return snprintf(name, n, "fake"), GOOD; }
API int cuDeviceGetAttribute(int *v, int what, int) { return *v = what == 75 ? 9 : 0, GOOD; }
API int cuDevicePrimaryCtxRetain(void **c, int) { return *c = &current, emulate != nullptr ? GOOD : 3; }
API int cuCtxSetCurrent(void *c) { return current = c == &current, current ? GOOD : BAD_CONTEXT; }
API int cuGetErrorName(int code, const char **s) { return *s = code == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR", GOOD; }

API int cuModuleLoadData(void **m, const void *image) {
  if (state() != GOOD) return state();
  const char *p = (const char *)image;
  if (memcmp(p, "\177ELF", 4) != 0 && strstr(p, ".version") == nullptr) return BAD_IMAGE;
  *m = new Module();
  return GOOD;
}
API int cuModuleGetFunction(void **f, void *, const char *name) { return *f = new std::string(name), strncmp(name, "kvf_", 4) == 0 ? GOOD : NOT_FOUND; }

API int cuMemAlloc_v2(uint64_t *p, size_t n) {
  if (state() != GOOD) return state();
  void *b = nullptr;
  if (n == 0) return BAD_VALUE;
  if (posix_memalign(&b, 512, n) != 0) return NO_MEMORY;
  memset(b, 0xA5, n);
  *p = (uint64_t)(uintptr_t)b;
  memory[*p] = {n, 3, false};
  return add(*p, n, 1) == 0 ? GOOD : BAD_VALUE;
}
API int cuMemFree_v2(uint64_t p) {
  auto it = memory.find(p);
  if (state() != GOOD) return state();
  if (it == memory.end() || it->second.mapped) return BAD_VALUE;
  typedef int (*remover)(uint64_t);
  remover gone = (remover)dlsym(dlopen(getenv("KVFENCE_FAKE_EMULATION"), RTLD_NOW), "kvf_emu_unregister");
  if (gone == nullptr || gone(p) != 0) return BAD_VALUE;
  free((void *)(uintptr_t)p);
  memory.erase(it);
  return GOOD;
}
API int cuMemcpyHtoD_v2(uint64_t p, const void *b, size_t n) {
  if (state() != GOOD) return state();
  if (capturing) return CAPTURE;
  if (reach(p, n, 3) != GOOD) return broken = ILLEGAL_ADDRESS;
  return memcpy((void *)(uintptr_t)p, b, n), GOOD;
}
API int cuMemcpyDtoH_v2(void *b, uint64_t p, size_t n) {
  if (state() != GOOD) return state();
  if (capturing) return CAPTURE;
  if (reach(p, n, 1) != GOOD) return broken = ILLEGAL_ADDRESS;
  return memcpy(b, (void *)(uintptr_t)p, n), GOOD;
}
API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void *) {
  if (state() != GOOD) return state();
  if (capturing) return CAPTURE;
  if (reach(to, n, 3) != GOOD || reach(from, n, 1) != GOOD) return broken = ILLEGAL_ADDRESS;
  return memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, n), GOOD;
}
/* A stream that does not wait for plain copies is refused: nothing in the check waits for them otherwise. */
API int cuStreamCreate(void **s, unsigned flags) { return *s = &captured, flags == 0 ? state() : (int)BAD_VALUE; }
API int cuStreamSynchronize(void *) { return capturing ? (int)CAPTURE : state(); }
API int cuLaunchKernel(void *f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned, void *, void **params, void **) {
  if (state() != GOOD) return state();
  if (x == 0 || y != 1 || z != 1 || by != 1 || bz != 1) return BAD_VALUE;
  std::string name = *(std::string *)f;
  Launch l = {name, x, bx, std::string((const char *)params[0], args_of(name))};
  if (!capturing) return run(l);
  return captured.push_back(l), GOOD;
}
API int cuEventCreate(void **e, unsigned) { return *e = new timespec(), state(); }
API int cuEventRecord(void *e, void *) { return clock_gettime(CLOCK_MONOTONIC, (timespec *)e), state(); }
API int cuEventSynchronize(void *) { return capturing ? (int)CAPTURE : state(); }
API int cuEventElapsedTime(float *ms, void *a, void *b) {
  timespec *x = (timespec *)a, *y = (timespec *)b;
  return *ms = (float)((y->tv_sec - x->tv_sec) * 1e3 + (y->tv_nsec - x->tv_nsec) / 1e6), state();
}
API int cuStreamBeginCapture_v2(void *, int) {
  if (capturing) return CAPTURE;
  captured.clear();
  return capturing = true, state();
}
API int cuStreamEndCapture(void *, void **g) {
  if (!capturing) return CAPTURE;
  return capturing = false, *g = new Graph(captured), state();
}
API int cuGraphInstantiateWithFlags(void **e, void *g, unsigned long long) { return *e = g, g != nullptr ? state() : BAD_VALUE; }
API int cuGraphLaunch(void *e, void *) {
  if (state() != GOOD) return state();
  for (const Launch &l : *(Graph *)e) {
    if (int r = run(l)) return r;
  }
  return GOOD;
}

API int cuMemGetAllocationGranularity(size_t *n, const void *, int) { return *n = granularity, state(); }
API int cuMemCreate(unsigned long long *h, size_t n, const void *, unsigned long long) {
  if (state() != GOOD) return state();
  if (n == 0 || n % granularity != 0) return BAD_VALUE;
  int fd = memfd_create("kvfence-fake", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, n) != 0) return NO_MEMORY;
  return *h = (uintptr_t) new Handle{fd, n}, GOOD;
}
API int cuMemExportToShareableHandle(void *out, unsigned long long h, int kind, unsigned long long) {
  if (kind != 1) return BAD_VALUE;
  *(int *)out = dup(((Handle *)(uintptr_t)h)->fd);
  return *(int *)out >= 0 ? state() : BAD_VALUE;
}
API int cuMemImportFromShareableHandle(unsigned long long *h, void *from, int kind) {
  struct stat s;
  int fd = dup((int)(intptr_t)from);
  if (kind != 1 || fd < 0 || fstat(fd, &s) != 0) return BAD_VALUE;
  return *h = (uintptr_t) new Handle{fd, (size_t)s.st_size}, state();
}
API int cuMemAddressReserve(uint64_t *p, size_t n, size_t, uint64_t, unsigned long long) {
  if (n == 0 || n % granularity != 0) return BAD_VALUE;
  void *b = mmap(nullptr, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return *p = (uint64_t)(uintptr_t)b, b == MAP_FAILED ? (int)NO_MEMORY : state();
}
API int cuMemMap(uint64_t p, size_t n, size_t offset, unsigned long long h, unsigned long long) {
  Handle *k = (Handle *)(uintptr_t)h;
  if (offset != 0 || n != k->size) return BAD_VALUE;
  if (mmap((void *)(uintptr_t)p, n, PROT_NONE, MAP_SHARED | MAP_FIXED, k->fd, 0) == MAP_FAILED) return NO_MEMORY;
  memory[p] = {n, 0, true};
  return state();
}
API int cuMemSetAccess(uint64_t p, size_t n, const int *desc, size_t count) {
  auto it = memory.find(p);
  if (it == memory.end() || !it->second.mapped || n != it->second.size || count != 1) return BAD_VALUE;
  int access = desc[2];
  if (mprotect((void *)(uintptr_t)p, n, access == 3 ? PROT_READ | PROT_WRITE : PROT_READ) != 0) return BAD_VALUE;
  it->second.access = access;
  return add(p, n, access == 3 ? 1 : 0) == 0 ? state() : (int)BAD_VALUE;
}
