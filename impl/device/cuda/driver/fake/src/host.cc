/* Pinned host memory, and what the host must not do with it while work is queued. A copy to it first fills it with other bytes, since
 * what is there then is not known; when the copy begins these must still be there. What a copy reads must be as it was when it was queued. */
#include <sys/mman.h>

#include <cstring>

#include "world.h"

namespace fake {

namespace {

const uint8_t kUnknown = 0xDB;

uint64_t sum(uint64_t at, uint64_t n) {
  const uint8_t *p = (const uint8_t *)(uintptr_t)at;
  uint64_t s = 14695981039346656037ull;
  for (uint64_t k = 0; k < n; k++) s = (s ^ p[k]) * 1099511628211ull;
  return s;
}

bool meets(uint64_t a, uint64_t n, uint64_t b, uint64_t m) { return a < b + m && b < a + n; }

bool busy(uint64_t at, uint64_t n) {
  Range part{at, n, Place::kPinned, nullptr, 0, 0};
  return in_use(part);
}

Range *host_range(uint64_t at, uint64_t n) {
  Range *r = find(at, n);
  return r != nullptr && r->host() ? r : nullptr;
}

}  // namespace

void watch(Op &op) {
  if (op.work != Work::kCopy || op.n == 0) return;
  if (op.staged.empty() && host_range(op.from, op.n) != nullptr) op.sum = sum(op.from, op.n), op.watches_from = true;
  if (host_range(op.to, op.n) != nullptr && !busy(op.to, op.n)) {
    memset((void *)(uintptr_t)op.to, kUnknown, op.n);
    op.watches_to = true;
  }
}

void check_watched(Op &op) {
  if (op.watches_from && find(op.from, op.n) != nullptr && sum(op.from, op.n) != op.sum) {
    violation(GOOD, "the host wrote pinned memory that a queued copy reads");
  }
  for (uint64_t k = 0; op.watches_to && find(op.to, op.n) != nullptr && k < op.n; k++) {
    if (((const uint8_t *)(uintptr_t)op.to)[k] == kUnknown) continue;
    violation(GOOD, "the host wrote pinned memory that a queued copy writes");
    break;
  }
  op.watches_from = op.watches_to = false;
}

/* Work has written here: what copies that are queued watched may be other than it was. */
void touched(uint64_t at, uint64_t n) {
  if (host_range(at, n) == nullptr) return;
  for (Stream *s : world().streams) {
    for (Op &op : s->queue) {
      if (op.watches_from && meets(op.from, op.n, at, n)) op.watches_from = false;
      if (op.watches_to && meets(op.to, op.n, at, n)) op.watches_to = false;
    }
  }
}

namespace {

int leave(uint64_t at, Place place, int otherwise) {
  auto it = world().ranges.find(at);
  if (it == world().ranges.end() || it->second.place != place) return violation(otherwise, "%s", where(at, 0).c_str());
  if (in_use(it->second)) {
    violation(GOOD, "work that uses the memory is queued");
    finish_all(nullptr);
    if (current()->broken != 0) return current()->broken;
  }
  return drop(at), GOOD;
}

int good_flags(unsigned flags) { return (flags & ~3u) != 0 || (flags & 2u) == 0 ? violation(INVALID_VALUE, "flags %u", flags) : (int)GOOD; }

}  // namespace

}  // namespace fake

using namespace fake;

int cuMemHostAlloc(void **p, size_t n, unsigned flags) {
  ENTER(kSafe);
  if (n == 0) return violation(INVALID_VALUE, "0 bytes");
  if (int code = good_flags(flags)) return code;
  void *b = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (b == MAP_FAILED) return OUT_OF_MEMORY;
  memset(b, 0xA5, n);
  uint64_t at = (uint64_t)(uintptr_t)b;
  world().freed.erase(at);
  world().ranges[at] = Range{at, n, Place::kPinned, current(), current()->device, ++world().buffers};
  return *p = b, GOOD;
}

int cuMemFreeHost(void *p) {
  ENTER(kSafe);
  return leave((uint64_t)(uintptr_t)p, Place::kPinned, INVALID_VALUE);
}

int cuMemHostRegister_v2(void *p, size_t n, unsigned flags) {
  ENTER(kSafe);
  uint64_t at = (uint64_t)(uintptr_t)p;
  if (n == 0) return violation(INVALID_VALUE, "0 bytes");
  if (int code = good_flags(flags)) return code;
  for (auto &r : world().ranges) {
    if (meets(r.first, r.second.n, at, n)) return violation(ALREADY_REGISTERED, "%s", where(r.first, n).c_str());
  }
  world().freed.erase(at);
  world().ranges[at] = Range{at, n, Place::kRegistered, current(), current()->device, ++world().buffers};
  return GOOD;
}

int cuMemHostUnregister(void *p) {
  ENTER(kSafe);
  return leave((uint64_t)(uintptr_t)p, Place::kRegistered, NOT_REGISTERED);
}

int cuMemHostGetDevicePointer_v2(kd_ptr *d, void *p, unsigned flags) {
  ENTER(kContext);
  if (flags != 0) return violation(INVALID_VALUE, "flags");
  if (host_range((uint64_t)(uintptr_t)p, 1) == nullptr) return violation(INVALID_VALUE, "%s", where((uint64_t)(uintptr_t)p, 1).c_str());
  return *d = (uint64_t)(uintptr_t)p, GOOD;
}

/* The host is about to read, or to write, n bytes of pinned memory. */
extern "C" __attribute__((visibility("default"))) int kvf_fake_host_touch(const void *p, size_t n, int writes) {
  std::lock_guard<std::recursive_mutex> held(world().lock);
  uint64_t at = (uint64_t)(uintptr_t)p;
  Range part{at, n, Place::kPinned, nullptr, 0, 0};
  Range *all = find(at, n);
  for (Stream *s : world().streams) {
    for (const Op &op : s->queue) {
      bool hit = false;
      if (op.work == Work::kCopy) hit = (writes && op.staged.empty() && meets(op.from, op.n, at, n)) || meets(op.to, op.n, at, n);
      if (op.work == Work::kFill) hit = used_by(op, part);
      if (op.work == Work::kKernel) hit = all != nullptr && used_by(op, *all); /* which part, only the kernel knows */
      if (hit) return violation(INVALID_VALUE, "the host %s pinned memory that queued work uses", writes ? "writes" : "reads");
    }
  }
  return GOOD;
}
