/* Copies and fills. What is queued is checked when it is queued, as far as can be seen then, and again when it happens. */
#include <cstring>

#include "world.h"

namespace fake {

namespace {

/* A range of the driver's that holds [at, at+n). */
int known(uint64_t at, uint64_t n) {
  Range *r = find(at, n);
  return r == nullptr || r->place == Place::kReserved ? violation(INVALID_VALUE, "%s", where(at, n).c_str()) : (int)GOOD;
}

bool pinned(uint64_t at, uint64_t n) {
  Range *r = find(at, n);
  return r != nullptr && r->host();
}

int queue(void *stream, Op op) {
  Stream *s;
  if (int code = own_stream(stream, &s)) return code;
  if (op.n == 0) return violation(GOOD, "0 bytes");
  if (int code = known(op.to, op.n)) return code;
  if (op.work == Work::kCopy && op.staged.empty()) {
    if (int code = known(op.from, op.n)) return code;
  }
  if (s->capture) return s->capture->ops.push_back(op), GOOD;
  return push(s, op), GOOD;
}

Op copy(uint64_t to, uint64_t from, uint64_t n) {
  Op op{Work::kCopy};
  op.to = to, op.from = from, op.n = n;
  return op;
}

/* Now, in this call. */
int at_once(Op op) {
  Stream *s = current()->plain;
  push(s, std::move(op));
  finish(s);
  return current()->broken;
}

}  // namespace

}  // namespace fake

using namespace fake;

/* From ordinary memory: when the call returns the bytes are on their way, and other streams may run before they have come. */
int cuMemcpyHtoD_v2(kd_ptr to, const void *from, size_t n) {
  ENTER(kSafe);
  if (int code = known(to, n)) return code;
  uint64_t at = (uint64_t)(uintptr_t)from;
  if (pinned(at, n)) return at_once(copy(to, at, n));
  finish(current()->plain);
  Op op = copy(to, 0, n);
  op.staged.assign((const char *)from, (const char *)from + n);
  push(current()->plain, std::move(op));
  return current()->broken;
}

int cuMemcpyDtoH_v2(void *to, kd_ptr from, size_t n) {
  ENTER(kSafe);
  if (int code = known(from, n)) return code;
  finish(current()->plain);
  if (current()->broken != 0) return current()->broken;
  if (!reaches(*find(from, n), current(), false)) return current()->broken = violation(ILLEGAL_ADDRESS, "reads %s", where(from, n).c_str());
  memcpy(to, (const void *)(uintptr_t)from, n);
  return GOOD;
}

int cuMemcpyHtoDAsync_v2(kd_ptr to, const void *from, size_t n, void *stream) {
  ENTER(kContext);
  uint64_t at = (uint64_t)(uintptr_t)from;
  if (pinned(at, n) || n == 0) return queue(stream, copy(to, at, n));
  violation(GOOD, "from memory that is not pinned: %s", where(at, n).c_str());
  Op op = copy(to, 0, n);
  op.staged.assign((const char *)from, (const char *)from + n);
  return queue(stream, op);
}

int cuMemcpyDtoHAsync_v2(void *to, kd_ptr from, size_t n, void *stream) {
  ENTER(kContext);
  uint64_t at = (uint64_t)(uintptr_t)to;
  if (pinned(at, n) || n == 0) return queue(stream, copy(at, from, n));
  Stream *s;
  if (int code = own_stream(stream, &s)) return code;
  violation(GOOD, "to memory that is not pinned: %s", where(at, n).c_str());
  if (int code = known(from, n)) return code;
  if (s->capture) return s->capture->invalid = true, CAPTURE_UNSUPPORTED;
  finish(s);
  if (current()->broken == 0) memcpy(to, (const void *)(uintptr_t)from, n);
  return current()->broken;
}

int cuMemcpyDtoDAsync_v2(kd_ptr to, kd_ptr from, size_t n, void *stream) {
  ENTER(kContext);
  if (to < from + n && from < to + n) return violation(INVALID_VALUE, "a copy onto itself");
  return queue(stream, copy(to, from, n));
}

int cuMemsetD8Async(kd_ptr p, unsigned char v, size_t n, void *stream) {
  ENTER(kContext);
  Op op{Work::kFill};
  op.to = p, op.n = n, op.value = v, op.width = 1;
  return queue(stream, op);
}

int cuMemsetD32Async(kd_ptr p, unsigned v, size_t n, void *stream) {
  ENTER(kContext);
  if (p % 4 != 0) return violation(INVALID_VALUE, "an address that is no multiple of 4");
  Op op{Work::kFill};
  op.to = p, op.n = 4 * (uint64_t)n, op.value = v, op.width = 4;
  return queue(stream, op);
}
