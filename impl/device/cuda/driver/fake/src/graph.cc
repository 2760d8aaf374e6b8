/* Captures and graphs. */
#include "world.h"

using namespace fake;

int cuStreamBeginCapture_v2(void *stream, int mode) {
  ENTER(kContext);
  Stream *s;
  if (int code = own_stream(stream, &s)) return code;
  if (mode < 0 || mode > 2) return violation(INVALID_VALUE, "a mode of %d", mode);
  if (s->capture) return violation(CAPTURE_UNSUPPORTED, "the stream is capturing");
  s->capture.reset(new Capture{std::this_thread::get_id(), mode});
  return GOOD;
}

int cuStreamEndCapture(void *stream, void **graph) {
  ENTER(kContext);
  Stream *s;
  *graph = nullptr;
  if (int code = own_stream(stream, &s)) return code;
  if (!s->capture) return violation(CAPTURE_UNMATCHED, "the stream is not capturing");
  if (s->capture->mode != 2 && s->capture->thread != std::this_thread::get_id()) {
    return violation(CAPTURE_WRONG_THREAD, "begun in another thread");
  }
  std::unique_ptr<Capture> c = std::move(s->capture);
  if (c->invalid) return CAPTURE_INVALIDATED;
  Graph *g = new Graph(Kind::kGraph, current());
  g->ops = c->ops;
  return *graph = g, GOOD;
}

int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags) {
  ENTER(kContext);
  Graph *g = object<Graph>(graph, Kind::kGraph);
  if (g == nullptr) return violation(INVALID_VALUE, "a graph that is none, or was destroyed");
  if (flags != 0) return violation(INVALID_VALUE, "flags");
  Graph *e = new Graph(Kind::kExec, current());
  e->ops = g->ops;
  return *exec = e, GOOD;
}

int cuGraphDestroy(void *graph) {
  ENTER(kContext);
  Graph *g = object<Graph>(graph, Kind::kGraph);
  if (g == nullptr) return violation(INVALID_VALUE, "a graph that is none, or was destroyed");
  return g->alive = false, GOOD;
}

int cuGraphExecDestroy(void *exec) {
  ENTER(kContext);
  Graph *e = object<Graph>(exec, Kind::kExec);
  if (e == nullptr) return violation(INVALID_VALUE, "an executable graph that is none, or was destroyed");
  return e->alive = false, GOOD;
}

int cuGraphLaunch(void *exec, void *stream) {
  ENTER(kContext);
  Stream *s;
  Graph *e = object<Graph>(exec, Kind::kExec);
  if (e == nullptr) return violation(INVALID_VALUE, "an executable graph that is none, or was destroyed");
  if (int code = own_stream(stream, &s)) return code;
  if (e->context != current()) return violation(INVALID_CONTEXT, "a graph of another context");
  if (s->capture) {
    s->capture->invalid = true;
    return violation(CAPTURE_UNSUPPORTED, "a graph inside of a capture, which this fake does not model");
  }
  if (e->last != nullptr && !e->last->done) { /* launches of one graph run one after the other */
    Op wait{Work::kWait};
    wait.mark = e->last;
    push(s, wait);
  }
  for (const Op &op : e->ops) push(s, op);
  Op end{Work::kRecord};
  end.mark = e->last = std::make_shared<Mark>(Mark{s});
  return push(s, end), GOOD;
}
