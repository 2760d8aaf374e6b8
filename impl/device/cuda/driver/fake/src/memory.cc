/* Device memory: plain allocations, what other processes map of them (IPC), what the driver knows of an address, GPUDirect. Each allocation is a
 * memory file, mapped; addresses are never used twice, and what was freed cannot be touched by the host either. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "world.h"

namespace fake {

namespace {

uint64_t rounded(uint64_t n) { return (n + kPage - 1) / kPage * kPage; }

const char *place_name(Place p) {
  switch (p) {
    case Place::kDevice: return "memory of a device";
    case Place::kReserved: return "reserved addresses";
    case Place::kMapped: return "mapped memory";
    case Place::kOpened: return "another process's memory";
    case Place::kPinned: return "pinned memory";
    case Place::kRegistered: return "registered memory";
  }
  return "";
}

Range *holder(std::map<uint64_t, Range> &in, uint64_t at) {
  auto r = in.upper_bound(at);
  if (r == in.begin() || at - std::prev(r)->first >= std::prev(r)->second.n) return nullptr;
  return &std::prev(r)->second;
}

}  // namespace

/* The range that holds all of [at, at+n). */
Range *find(uint64_t at, uint64_t n) {
  Range *r = holder(world().ranges, at);
  return r != nullptr && n <= r->n - (at - r->at) ? r : nullptr;
}

std::string where(uint64_t at, uint64_t n) {
  char text[200];
  Range *live = holder(world().ranges, at), *gone = holder(world().freed, at), *r = live != nullptr ? live : gone;
  if (r == nullptr) {
    snprintf(text, sizeof text, "%llu bytes at 0x%llx, which are nobody's", (unsigned long long)n, (unsigned long long)at);
  } else {
    snprintf(text, sizeof text, "%llu bytes at offset %llu of %s%s of %llu bytes", (unsigned long long)n, (unsigned long long)(at - r->at),
             live != nullptr ? "" : "freed ", place_name(r->place), (unsigned long long)r->n);
  }
  return text;
}

bool reaches(const Range &r, Context *c, bool writes) {
  if (r.place == Place::kReserved) return false;
  if (!r.host() && r.device != c->device) return false;
  return (r.access & (writes ? 2 : 1)) != 0;
}

bool used_by(const Op &op, const Range &r) {
  auto meets = [&](uint64_t at, uint64_t n) { return n > 0 && at < r.at + r.n && r.at < at + n; };
  if (op.work == Work::kCopy) return meets(op.to, op.n) || (op.staged.empty() && meets(op.from, op.n));
  if (op.work == Work::kFill) return meets(op.to, op.n);
  for (size_t k = 0; op.work == Work::kKernel && k + 8 <= op.args.size(); k += 8) { /* what it reaches by tables, the emulation sees */
    uint64_t word;
    memcpy(&word, op.args.data() + k, 8);
    if (word >= r.at && word < r.at + r.n) return true;
  }
  return false;
}

bool in_use(const Range &r) {
  for (Stream *s : world().streams) {
    for (const Op &op : s->queue) {
      if (used_by(op, r)) return true;
    }
  }
  return false;
}

void drop(uint64_t at) {
  Range r = world().ranges[at];
  if (r.place != Place::kRegistered) {
    mmap((void *)(uintptr_t)at, rounded(r.n), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
  if (r.fd >= 0) close(r.fd);
  world().freed[at] = r;
  world().ranges.erase(at);
}

}  // namespace fake

using namespace fake;

int cuMemAlloc_v2(kd_ptr *p, size_t n) {
  ENTER(kSafe);
  Device &d = world().devices[current()->device];
  if (n == 0) return violation(INVALID_VALUE, "0 bytes");
  if (n > d.total - d.used) return OUT_OF_MEMORY;
  int fd = memfd_create("kvfence-fake", MFD_CLOEXEC);
  void *b = fd < 0 || ftruncate(fd, rounded(n)) != 0 ? MAP_FAILED : mmap(nullptr, rounded(n), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (b == MAP_FAILED) {
    if (fd >= 0) close(fd);
    return OUT_OF_MEMORY;
  }
  memset(b, 0xA5, n);
  d.used += n;
  *p = (uint64_t)(uintptr_t)b;
  world().freed.erase(*p);
  Range r{*p, n, Place::kDevice, current(), current()->device, ++world().buffers};
  r.fd = fd;
  world().ranges[*p] = r;
  return GOOD;
}

int cuMemFree_v2(kd_ptr p) {
  ENTER(kSafe);
  auto it = world().ranges.find(p);
  if (it == world().ranges.end() || it->second.place != Place::kDevice) return violation(INVALID_VALUE, "%s", where(p, 0).c_str());
  if (it->second.context != current()) return violation(INVALID_VALUE, "memory of another context");
  if (in_use(it->second)) {
    violation(GOOD, "work that uses the memory is queued");
    finish_all(nullptr);
    if (current()->broken != 0) return current()->broken;
  }
  world().devices[it->second.device].used -= it->second.n;
  return drop(p), GOOD;
}

int cuIpcGetMemHandle(struct kd_ipc *h, kd_ptr p) {
  ENTER(kContext);
  auto it = world().ranges.find(p);
  if (it == world().ranges.end() || it->second.place != Place::kDevice) {
    return violation(INVALID_VALUE, "no beginning of an allocation: %s", where(p, 0).c_str());
  }
  memset(h, 0, sizeof *h);
  snprintf(h->reserved, sizeof h->reserved, "/proc/%d/fd/%d %llu", getpid(), it->second.fd, (unsigned long long)it->second.n);
  return GOOD;
}

int cuIpcOpenMemHandle_v2(kd_ptr *p, struct kd_ipc h, unsigned flags) {
  ENTER(kSafe);
  char path[sizeof h.reserved + 1] = "", name[sizeof h.reserved + 1] = "";
  memcpy(name, h.reserved, sizeof h.reserved);
  unsigned long long n = 0;
  if (flags > 1) return violation(INVALID_VALUE, "flags %u", flags);
  if (sscanf(name, "%64s %llu", path, &n) != 2 || strncmp(path, "/proc/", 6) != 0) return violation(INVALID_HANDLE, "no handle of memory");
  if (atoi(path + 6) == getpid()) return violation(INVALID_CONTEXT, "a handle of this very process");
  for (auto &r : world().ranges) {
    if (r.second.place == Place::kOpened && r.second.name == name && r.second.context == current()) return r.second.opened++, *p = r.first, GOOD;
  }
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return fake::CANNOT_MAP;
  void *b = mmap(nullptr, rounded(n), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (b == MAP_FAILED) return fake::CANNOT_MAP;
  *p = (uint64_t)(uintptr_t)b;
  world().freed.erase(*p);
  Range r{*p, n, Place::kOpened, current(), current()->device, ++world().buffers};
  r.opened = 1;
  r.name = name;
  world().ranges[*p] = r;
  return GOOD;
}

int cuIpcCloseMemHandle(kd_ptr p) {
  ENTER(kSafe);
  auto it = world().ranges.find(p);
  if (it == world().ranges.end() || it->second.place != Place::kOpened) return violation(INVALID_VALUE, "%s", where(p, 0).c_str());
  if (--it->second.opened > 0) return GOOD;
  if (in_use(it->second)) {
    violation(GOOD, "work that uses the memory is queued");
    finish_all(nullptr);
  }
  return drop(p), GOOD;
}

int cuPointerGetAttributes(unsigned n, int *which, void **data, kd_ptr p) {
  ENTER(kContext);
  Range *r = find(p, 1);
  if (r != nullptr && r->place == Place::kReserved) r = nullptr;
  for (unsigned k = 0; k < n; k++) {
    uint64_t v = 0, size = 1;
    switch (which[k]) {
      case 2: v = r == nullptr ? 0 : r->host() ? 1 : 2, size = 4; break;
      case 7: v = r == nullptr ? 0 : r->buffer, size = 8; break;
      case 8: break;
      case 9: v = r == nullptr ? (uint32_t)-2 : r->device, size = 4; break;
      case 10: v = r != nullptr && r->place == Place::kDevice; break;
      case 11: v = r == nullptr ? 0 : r->at, size = 8; break;
      case 12: v = r == nullptr ? 0 : r->n, size = 8; break;
      case 13: v = r != nullptr; break;
      case 14: v = r != nullptr && r->block != nullptr, size = 8; break;
      default: return violation(INVALID_VALUE, "attribute %d is not in the fake's table", which[k]);
    }
    memcpy(data[k], &v, size);
  }
  return GOOD;
}

int cuPointerSetAttribute(const void *value, int which, kd_ptr p) {
  ENTER(kContext);
  Range *r = find(p, 1);
  if (which != 6 || value == nullptr) return violation(INVALID_VALUE, "attribute %d", which);
  if (r == nullptr || r->host() || r->place == Place::kReserved) return violation(INVALID_VALUE, "%s", where(p, 1).c_str());
  return GOOD;
}

int cuMemGetHandleForAddressRange(void *to, kd_ptr p, size_t n, int type, unsigned long long flags) {
  ENTER(kContext);
  Device &d = world().devices[current()->device];
  if (type != 1 || flags != 0) return violation(INVALID_VALUE, "type %d, flags %llu", type, flags);
  if (d.attributes[124] == 0) return violation(NOT_SUPPORTED, "this device has no dma-buf");
  if (n == 0 || n % kPage != 0 || p % kPage != 0) return violation(INVALID_VALUE, "no whole pages of the host");
  Range *r = holder(world().ranges, p);
  if (r == nullptr || p - r->at > rounded(r->n) || n > rounded(r->n) - (p - r->at)) return violation(INVALID_VALUE, "%s", where(p, n).c_str());
  if (r->device != current()->device || r->host()) return violation(INVALID_VALUE, "not this device's memory");
  if (r->place == Place::kReserved) return violation(INVALID_VALUE, "addresses without memory");
  if (r->place == Place::kOpened) return violation(NOT_SUPPORTED, "memory of another process");
  if (r->block != nullptr && !r->block->rdma) return violation(NOT_SUPPORTED, "memory that was not made for GPUDirect");
  int fd = fcntl(r->block != nullptr ? r->block->fd : r->fd, F_DUPFD_CLOEXEC, 3);
  if (fd < 0) return OUT_OF_MEMORY;
  return *(int *)to = fd, GOOD;
}

/* Nothing here is written by a network card, so there is nothing to flush: only that the call is allowed is checked, and that it is made can be
 * counted. */
int cuFlushGPUDirectRDMAWrites(int target, int scope) {
  ENTER(kContext);
  Device &d = world().devices[current()->device];
  if (target != 0 || (scope != 100 && scope != 200)) return violation(INVALID_VALUE, "target %d, scope %d", target, scope);
  if ((d.attributes[117] & 1) == 0) return violation(NOT_SUPPORTED, "this device has no flush from the host");
  return GOOD;
}
