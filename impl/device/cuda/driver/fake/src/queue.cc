/* Work by stream, and when it is done: only when somebody waits for it, or by chance. Copies happen in pieces, so that other streams' work comes
 * in between. Streams and events. */
#include <algorithm>
#include <cstring>
#include <ctime>

#include "world.h"

namespace fake {

namespace {

double now_ms() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

bool ready(const Stream *s) {
  return !s->queue.empty() && s->context->broken == 0 && (s->queue.front().work != Work::kWait || s->queue.front().mark->done);
}

/* A run of bytes that work of c touches. What it may not touch breaks the context. */
bool may(Context *c, uint64_t at, uint64_t n, bool writes) {
  Range *r = find(at, n);
  if (r != nullptr && reaches(*r, c, writes)) return true;
  c->broken = violation(ILLEGAL_ADDRESS, "queued work %s %s", writes ? "writes" : "reads", where(at, n).c_str());
  return false;
}

/* One piece of a copy or fill; true when it was the last. */
bool piece(Context *c, Op &op) {
  uint64_t left = op.n - op.done, n = left;
  if (left > 64) n = std::max<uint64_t>(16, below((uint32_t)std::min<uint64_t>(left, 1u << 30)) & ~15ull);
  uint64_t to = op.to + op.done;
  bool copies = op.work == Work::kCopy;
  if (!may(c, to, n, true) || (copies && op.staged.empty() && !may(c, op.from + op.done, n, false))) return false;
  if (!copies) {
    for (uint64_t k = 0; k < n; k++) ((uint8_t *)(uintptr_t)to)[k] = (uint8_t)(op.value >> 8 * ((op.done + k) % op.width));
  } else if (op.staged.empty()) {
    memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)(op.from + op.done), n);
  } else {
    memcpy((void *)(uintptr_t)to, op.staged.data() + op.done, n);
  }
  touched(to, n);
  op.done += n;
  return op.done == op.n;
}

void hurry(Stream *s) {
  if (s->queue.front().work == Work::kWait && !s->queue.front().mark->done) return await(s->queue.front().mark);
  step(s);
  if (world().seed != 0 && below(4) == 0) some_progress(1);
}

}  // namespace

void push(Stream *s, Op op) {
  watch(op);
  s->queue.push_back(std::move(op));
}

/* The next piece of work of a stream that can go on. */
void step(Stream *s) {
  if (!ready(s)) return;
  Op &op = s->queue.front();
  bool last = true;
  switch (op.work) {
    case Work::kCopy:
    case Work::kFill:
      if (op.done == 0) check_watched(op);
      last = piece(s->context, op);
      break;
    case Work::kKernel:
      run_kernel(s->context, op);
      break;
    case Work::kRecord:
      op.mark->done = true;
      op.mark->ms = now_ms();
      break;
    case Work::kWait:
      break;
  }
  if (!last && s->context->broken == 0) return;
  s->queue.pop_front(); /* what broke the context is over, too */
  if (s->queue.empty() && !s->alive) world().streams.erase(std::find(world().streams.begin(), world().streams.end(), s));
}

/* A wait is only queued behind what has been recorded, so somebody can always go on; a stream of a broken context cannot. */
void finish(Stream *s) {
  while (!s->queue.empty() && s->context->broken == 0) {
    Op &op = s->queue.front();
    if (op.work == Work::kWait && !op.mark->done && op.mark->stream->context->broken != 0) return;
    hurry(s);
  }
}

void finish_all(Context *c) {
  std::vector<Stream *> all = world().streams;
  for (Stream *s : all) {
    if (c == nullptr || s->context == c) finish(s);
  }
}

void await(const std::shared_ptr<Mark> &m) {
  while (!m->done && m->stream->context->broken == 0 && !m->stream->queue.empty()) {
    Op &op = m->stream->queue.front();
    if (op.work == Work::kWait && !op.mark->done && op.mark->stream->context->broken != 0) return;
    hurry(m->stream);
  }
}

/* Work of streams that can go on, as chance has it. What a broken context left queued may still happen. */
void some_progress(uint32_t steps) {
  for (uint32_t k = 0; k < steps; k++) {
    std::vector<Stream *> able;
    for (Stream *s : world().streams) {
      int broken = s->context->broken;
      s->context->broken = 0;
      if (ready(s)) able.push_back(s);
      s->context->broken = broken;
    }
    if (able.empty()) return;
    Stream *s = able[below((uint32_t)able.size())];
    Context *c = s->context;
    int broken = c->broken;
    c->broken = 0;
    step(s);
    if (broken != 0) c->broken = broken;
  }
}

uint64_t pending() {
  uint64_t n = 0;
  for (Stream *s : world().streams) n += s->queue.size();
  return n;
}

/* The stream of a handle, which must be of the current context. */
int own_stream(void *handle, Stream **s) {
  if (handle == nullptr) return violation(INVALID_HANDLE, "the default stream, which waits for no other here");
  *s = object<Stream>(handle, Kind::kStream);
  if (*s == nullptr) return violation(INVALID_HANDLE, "a stream that is none, or was destroyed");
  if ((*s)->context != current()) return violation(INVALID_CONTEXT, "a stream of another context");
  return GOOD;
}

namespace {

int own_event(void *handle, Event **e) {
  *e = object<Event>(handle, Kind::kEvent);
  return *e == nullptr ? violation(INVALID_HANDLE, "an event that is none, or was destroyed") : (int)GOOD;
}

/* Waiting inside of a capture is refused, and breaks it. */
int not_capturing(Stream *s) {
  if (!s->capture) return GOOD;
  s->capture->invalid = true;
  return violation(CAPTURE_UNSUPPORTED, "a wait for a stream that is capturing");
}

}  // namespace

}  // namespace fake

using namespace fake;

int cuStreamCreate(void **stream, unsigned flags) {
  ENTER(kContext);
  if (flags != 1) return violation(INVALID_VALUE, "flags %u: streams here wait for no default stream", flags);
  Stream *s = new Stream(current());
  world().streams.push_back(s);
  return *stream = s, GOOD;
}

int cuStreamDestroy_v2(void *stream) {
  ENTER(kContext);
  Stream *s;
  if (int code = own_stream(stream, &s)) return code;
  if (s->capture) return violation(CAPTURE_UNSUPPORTED, "a stream that is capturing");
  s->alive = false;
  if (s->queue.empty()) world().streams.erase(std::find(world().streams.begin(), world().streams.end(), s));
  return GOOD;
}

int cuStreamSynchronize(void *stream) {
  ENTER(kContext);
  Stream *s;
  if (int code = own_stream(stream, &s)) return code;
  if (int code = not_capturing(s)) return code;
  finish(s);
  return current()->broken;
}

int cuStreamQuery(void *stream) {
  ENTER(kContext);
  Stream *s;
  if (int code = own_stream(stream, &s)) return code;
  if (int code = not_capturing(s)) return code;
  if (!s->queue.empty() && below(2) == 0) hurry(s);
  if (current()->broken != 0) return current()->broken;
  return s->queue.empty() ? GOOD : NOT_READY;
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  ENTER(kContext);
  Stream *s;
  Event *e;
  if (int code = own_stream(stream, &s)) return code;
  if (int code = own_event(event, &e)) return code;
  if (flags != 0) return violation(INVALID_VALUE, "flags");
  if (s->capture) {
    s->capture->invalid = true;
    return violation(CAPTURE_ISOLATION, "inside of a capture a wait for an event outside");
  }
  if (e->mark == nullptr) return violation(GOOD, "a wait for an event that was never recorded, which waits for nothing");
  Op op{Work::kWait};
  op.mark = e->mark;
  return push(s, op), GOOD;
}

int cuEventCreate(void **event, unsigned flags) {
  ENTER(kContext);
  if (flags != 0 && flags != 2) return violation(INVALID_VALUE, "flags %u", flags);
  return *event = new Event(current(), flags == 0), GOOD;
}

int cuEventDestroy_v2(void *event) {
  ENTER(kContext);
  Event *e;
  if (int code = own_event(event, &e)) return code;
  return e->alive = false, GOOD;
}

int cuEventRecord(void *event, void *stream) {
  ENTER(kContext);
  Stream *s;
  Event *e;
  if (int code = own_stream(stream, &s)) return code;
  if (int code = own_event(event, &e)) return code;
  if (e->context != s->context) return violation(INVALID_HANDLE, "an event of another context");
  if (s->capture) {
    s->capture->invalid = true;
    return violation(CAPTURE_UNSUPPORTED, "a record inside of a capture, which this fake does not model");
  }
  Op op{Work::kRecord};
  op.mark = e->mark = std::make_shared<Mark>(Mark{s});
  return push(s, op), GOOD;
}

int cuEventQuery(void *event) {
  ENTER(kContext);
  Event *e;
  if (int code = own_event(event, &e)) return code;
  if (e->mark == nullptr) return violation(GOOD, "an event that was never recorded, which is always done");
  Stream *s = e->mark->stream;
  if (!e->mark->done && !s->queue.empty() && below(2) == 0) hurry(s);
  if (current()->broken != 0) return current()->broken;
  return e->mark->done ? GOOD : NOT_READY;
}

int cuEventSynchronize(void *event) {
  ENTER(kContext);
  Event *e;
  if (int code = own_event(event, &e)) return code;
  if (e->mark == nullptr) return violation(GOOD, "an event that was never recorded, which is always done");
  await(e->mark);
  return current()->broken;
}

int cuEventElapsedTime(float *ms, void *from, void *to) {
  ENTER(kContext);
  Event *a, *b;
  if (int code = own_event(from, &a)) return code;
  if (int code = own_event(to, &b)) return code;
  if (!a->timing || !b->timing) return violation(INVALID_HANDLE, "an event without timing");
  if (a->mark == nullptr || b->mark == nullptr) return violation(INVALID_HANDLE, "an event that was never recorded");
  if (!a->mark->done || !b->mark->done) return NOT_READY;
  return *ms = (float)(b->mark->ms - a->mark->ms), GOOD;
}
