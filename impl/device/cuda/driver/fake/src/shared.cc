/* Memory that processes share by file descriptor: blocks, reserved addresses, mappings, access. A mapping begins without access. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "world.h"

namespace fake {

namespace {

int good_prop(const struct kd_prop *p) {
  if (p->type != 1 || p->location.type != 1) return violation(INVALID_VALUE, "not pinned memory of a device");
  if (p->location.id < 0 || p->location.id >= (int)world().devices.size()) return violation(INVALID_DEVICE, "no device %d", p->location.id);
  if (p->handle_types != 0 && p->handle_types != 1) return violation(NOT_SUPPORTED, "handles of type %d", p->handle_types);
  Device &d = world().devices[p->location.id];
  if (p->rdma != 0 && d.attributes[110] == 0) return violation(NOT_SUPPORTED, "this device has no GPUDirect for such memory");
  return GOOD;
}

int whole(uint64_t n) {
  if (n == 0 || n % kGranularity != 0) return violation(INVALID_VALUE, "%llu bytes are no multiple of the granularity", (unsigned long long)n);
  return GOOD;
}

Range *mapped(uint64_t p, uint64_t n, Place place) {
  auto it = world().ranges.find(p);
  return it == world().ranges.end() || it->second.place != place || it->second.n != n ? nullptr : &it->second;
}

Block *block(kd_memory h) { return object<Block>((void *)(uintptr_t)h, Kind::kBlock); }

/* The file goes when neither a handle nor a mapping is left. */
void gone(Block *b) {
  if (b->alive || b->maps > 0) return;
  world().devices[b->device].used -= b->n;
  close(b->fd);
}

int hold(kd_memory *h, int fd, uint64_t n, int device, bool rdma) {
  Device &d = world().devices[device];
  if (n > d.total - d.used) return close(fd), OUT_OF_MEMORY;
  d.used += n;
  return *h = (uintptr_t) new Block(fd, n, device, rdma), GOOD;
}

}  // namespace

}  // namespace fake

using namespace fake;

int cuMemGetAllocationGranularity(size_t *n, const struct kd_prop *prop, int option) {
  ENTER(kContext);
  if (int code = good_prop(prop)) return code;
  if (option != 0 && option != 1) return violation(INVALID_VALUE, "option %d", option);
  return *n = kGranularity, GOOD;
}

int cuMemCreate(kd_memory *h, size_t n, const struct kd_prop *prop, unsigned long long flags) {
  ENTER(kSafe);
  if (int code = good_prop(prop)) return code;
  if (int code = whole(n)) return code;
  if (flags != 0) return violation(INVALID_VALUE, "flags");
  int fd = memfd_create(prop->handle_types == 1 ? "kvfence-fake-shared" : "kvfence-fake", MFD_CLOEXEC);
  if (fd < 0) return OUT_OF_MEMORY;
  if (ftruncate(fd, n) != 0) return close(fd), OUT_OF_MEMORY;
  return hold(h, fd, n, prop->location.id, prop->rdma != 0);
}

int cuMemRelease(kd_memory h) {
  ENTER(kSafe);
  Block *b = block(h);
  if (b == nullptr) return violation(INVALID_VALUE, "a handle that is none, or was released");
  b->alive = false;
  return gone(b), GOOD;
}

int cuMemExportToShareableHandle(void *to, kd_memory h, int type, unsigned long long flags) {
  ENTER(kContext);
  Block *b = block(h);
  if (b == nullptr) return violation(INVALID_VALUE, "a handle that is none, or was released");
  if (type != 1 || flags != 0) return violation(INVALID_VALUE, "type %d, flags %llu", type, flags);
  int fd = fcntl(b->fd, F_DUPFD_CLOEXEC, 3);
  if (fd < 0) return OUT_OF_MEMORY;
  return *(int *)to = fd, GOOD;
}

int cuMemImportFromShareableHandle(kd_memory *h, void *from, int type) {
  ENTER(kSafe);
  struct stat s;
  int given = (int)(intptr_t)from;
  if (type != 1) return violation(INVALID_VALUE, "type %d", type);
  char path[64], name[64] = "";
  snprintf(path, sizeof path, "/proc/self/fd/%d", given);
  if (readlink(path, name, sizeof name - 1) < 0 || strncmp(name, "/memfd:kvfence-fake-shared", 26) != 0) {
    return violation(INVALID_VALUE, "descriptor %d is no exported memory", given);
  }
  int fd = fcntl(given, F_DUPFD_CLOEXEC, 3);
  if (fd < 0 || fstat(fd, &s) != 0) return violation(INVALID_VALUE, "descriptor %d", given);
  return hold(h, fd, (uint64_t)s.st_size, current()->device, false);
}

int cuMemAddressReserve(kd_ptr *p, size_t n, size_t align, kd_ptr at, unsigned long long flags) {
  ENTER(kSafe);
  if (int code = whole(n)) return code;
  if (flags != 0 || at != 0 || (align != 0 && (align & (align - 1)) != 0)) return violation(INVALID_VALUE, "alignment, place or flags");
  uint64_t a = align > kGranularity ? align : kGranularity;
  void *b = mmap(nullptr, n + a, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (b == MAP_FAILED) return OUT_OF_MEMORY;
  *p = ((uint64_t)(uintptr_t)b + a - 1) / a * a;
  world().freed.erase(*p);
  world().ranges[*p] = Range{*p, n, Place::kReserved, nullptr, current()->device, 0, 0};
  return GOOD;
}

int cuMemAddressFree(kd_ptr p, size_t n) {
  ENTER(kSafe);
  Range *r = mapped(p, n, Place::kReserved);
  if (r == nullptr) return violation(INVALID_VALUE, "not what was reserved, or mapped still: %s", where(p, n).c_str());
  return drop(p), GOOD;
}

int cuMemMap(kd_ptr p, size_t n, size_t offset, kd_memory h, unsigned long long flags) {
  ENTER(kSafe);
  Block *b = block(h);
  Range *r = mapped(p, n, Place::kReserved);
  if (b == nullptr) return violation(INVALID_VALUE, "a handle that is none, or was released");
  if (r == nullptr) return violation(INVALID_VALUE, "not reserved addresses, or part of them, or mapped already: %s", where(p, n).c_str());
  if (int code = whole(n)) return code;
  if (offset != 0 || flags != 0 || n > b->n) return violation(INVALID_VALUE, "offset, flags or more than the %llu bytes that there are", (unsigned long long)b->n);
  if (mmap((void *)(uintptr_t)p, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, b->fd, 0) == MAP_FAILED) return OUT_OF_MEMORY;
  *r = Range{p, n, Place::kMapped, nullptr, b->device, ++world().buffers, 0};
  r->block = b;
  return b->maps++, GOOD;
}

int cuMemUnmap(kd_ptr p, size_t n) {
  ENTER(kSafe);
  Range *r = mapped(p, n, Place::kMapped);
  if (r == nullptr) return violation(INVALID_VALUE, "not what was mapped: %s", where(p, n).c_str());
  if (in_use(*r)) {
    violation(GOOD, "work that uses the memory is queued");
    finish_all(nullptr);
    if (current()->broken != 0) return current()->broken;
  }
  mmap((void *)(uintptr_t)p, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  Block *b = r->block;
  *r = Range{p, n, Place::kReserved, nullptr, r->device, 0, 0};
  b->maps--;
  return gone(b), GOOD;
}

int cuMemSetAccess(kd_ptr p, size_t n, const struct kd_access *access, size_t count) {
  ENTER(kSafe);
  Range *r = mapped(p, n, Place::kMapped);
  if (r == nullptr) return violation(INVALID_VALUE, "not what was mapped: %s", where(p, n).c_str());
  if (count != 1 || access->location.type != 1) return violation(INVALID_VALUE, "%zu descriptions", count);
  if (access->location.id != r->device) return violation(NOT_SUPPORTED, "access of device %d, which this fake does not model", access->location.id);
  if (access->flags != 0 && access->flags != 1 && access->flags != 3) return violation(INVALID_VALUE, "flags %d", access->flags);
  return r->access = access->flags, GOOD;
}
