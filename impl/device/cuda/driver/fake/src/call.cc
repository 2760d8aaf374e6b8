/* What each call goes through: lock, counts, injected faults, context, captures. Contexts of threads. */
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "world.h"

namespace fake {

namespace {

thread_local std::vector<Context *> stack;
thread_local int mode = 0; /* how this thread takes captures: CU_STREAM_CAPTURE_MODE_GLOBAL */
thread_local const char *calling = "";

/* Calls of the wrapper around others: "*" does not count them. */
bool auxiliary(const std::string &name) {
  return name == "cuGetErrorName" || name == "cuCtxPushCurrent_v2" || name == "cuCtxPopCurrent_v2" || name == "cuThreadExchangeStreamCaptureMode";
}

int injected(const std::string &name) {
  for (auto f = world().faults.begin(); f != world().faults.end(); ++f) {
    if (f->call == "*" ? auxiliary(name) : f->call != name) continue;
    if (--f->nth > 0) continue;
    Fault hit = *f;
    world().faults.erase(f);
    if (hit.sticky && !stack.empty()) stack.back()->broken = hit.code;
    return hit.code;
  }
  return GOOD;
}

}  // namespace

World &world() {
  static World *w = new World(); /* lives as long as the process: other threads may be inside */
  return *w;
}

void seed(uint64_t s) {
  world().seed = s;
  world().random = 0x9E3779B97F4A7C15ull ^ s * 0xD1342543DE82EF95ull;
  for (int k = 0; k < 4; k++) below(2); /* seeds that are near each other begin alike */
}

uint32_t below(uint32_t n) {
  uint64_t &s = world().random;
  s ^= s << 13;
  s ^= s >> 7;
  s ^= s << 17;
  return (uint32_t)((s * 0x2545F4914F6CDD1Dull >> 33) % n);
}

int violation(int code, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  world().violations.push_back(std::string(calling) + ": " + text);
  if (!world().quiet) fprintf(stderr, "fake driver: %s\n", world().violations.back().c_str());
  return code;
}

Object::Object(Kind k, Context *c) : kind(k), context(c) { world().objects.insert(this); }
Context::Context(int d) : Object(Kind::kContext, nullptr), device(d), plain(new Stream(this)) { world().streams.push_back(plain); }

Context *current() { return stack.empty() ? nullptr : stack.back(); }

/* Calls that would have to happen inside of a capture, but cannot, break it. */
int capture_forbids() {
  int code = GOOD;
  for (Stream *s : world().streams) {
    if (!s->capture) continue;
    bool own = s->capture->thread == std::this_thread::get_id();
    bool hit = own ? mode != 2 && s->capture->mode != 2 : mode == 0 && s->capture->mode == 0;
    if (!hit) continue;
    s->capture->invalid = true;
    code = CAPTURE_UNSUPPORTED;
  }
  return code == GOOD ? code : violation(code, "inside of a capture");
}

Call::Call(const char *name, Needs needs) : held(world().lock), code(GOOD) {
  calling = name;
  World &w = world();
  w.calls[name]++;
  if (needs >= kBegun && !w.begun) {
    code = violation(NOT_INITIALIZED, "before cuInit");
    return;
  }
  if (needs >= kContext) {
    Context *c = current();
    if (c == nullptr) {
      code = violation(INVALID_CONTEXT, "no context is current in this thread");
      return;
    }
    if (c->held == 0) {
      code = violation(CONTEXT_IS_DESTROYED, "the current context was given back by all its holders");
      return;
    }
    /* After a failure that sticks, work may happen or not: some of it does, late. */
    if (c->broken != 0 || (w.seed != 0 && below(16) == 0)) some_progress(1);
    if (c->broken != 0) {
      code = c->broken;
      return;
    }
  }
  if ((code = injected(name)) != GOOD) return;
  if (needs == kSafe) code = capture_forbids();
}

Call::~Call() = default;

}  // namespace fake

using namespace fake;

int cuCtxPushCurrent_v2(void *context) {
  ENTER(kBegun);
  Context *c = object<Context>(context, Kind::kContext);
  if (c == nullptr || c->held == 0) return violation(INVALID_CONTEXT, "no context, or one that nobody holds");
  return stack.push_back(c), GOOD;
}

int cuCtxPopCurrent_v2(void **context) {
  ENTER(kBegun);
  if (stack.empty()) return violation(INVALID_CONTEXT, "no context is current in this thread");
  *context = stack.back();
  return stack.pop_back(), GOOD;
}

int cuThreadExchangeStreamCaptureMode(int *m) {
  ENTER(kBegun);
  if (*m < 0 || *m > 2) return violation(INVALID_VALUE, "a mode of %d", *m);
  std::swap(*m, mode);
  return GOOD;
}

int cuCtxSynchronize(void) {
  ENTER(kSafe);
  finish_all(current());
  return current()->broken;
}
