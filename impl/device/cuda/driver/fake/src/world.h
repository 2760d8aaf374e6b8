/* What the fake driver knows: objects by handle, memory by address, work by stream. Handles are addresses of objects that are never deleted, so
 * that a handle that is gone is known as such. */
#ifndef KVF_FAKE_WORLD_H
#define KVF_FAKE_WORLD_H

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fake.h"

namespace fake {

enum class Kind { kContext, kStream, kEvent, kModule, kFunction, kGraph, kExec, kBlock };

struct Context;
struct Stream;

struct Object {
  Kind kind;
  Context *context;
  bool alive = true;
  Object(Kind k, Context *c);
  virtual ~Object() = default;
};

/* A place in a stream that others wait for. */
struct Mark {
  Stream *stream;
  bool done = false;
  double ms = 0; /* when */
};

enum class Work { kCopy, kFill, kKernel, kRecord, kWait };

struct Op {
  Work work;
  uint64_t to = 0, from = 0, n = 0; /* kFill: n bytes of to */
  uint64_t done = 0;                /* bytes so far */
  uint32_t value = 0, width = 1;
  struct Function *function = nullptr;
  uint32_t grid = 0;
  std::string args;
  std::shared_ptr<Mark> mark;
  std::vector<char> staged; /* kCopy from ordinary host memory: its bytes; from is 0 */
  /* What the host must leave alone while this is queued, and what it looked like. */
  bool watches_from = false, watches_to = false;
  uint64_t sum = 0;
};

struct Capture {
  std::thread::id thread;
  int mode;
  bool invalid = false;
  std::vector<Op> ops;
};

struct Stream : Object {
  std::deque<Op> queue;
  std::unique_ptr<Capture> capture;
  explicit Stream(Context *c) : Object(Kind::kStream, c) {}
};

struct Event : Object {
  bool timing;
  std::shared_ptr<Mark> mark; /* of the last record */
  Event(Context *c, bool t) : Object(Kind::kEvent, c), timing(t) {}
};

struct Module : Object {
  std::string image;
  explicit Module(Context *c) : Object(Kind::kModule, c) {}
};

struct Function : Object {
  std::string name;
  Module *module;
  Function(Context *c, Module *m) : Object(Kind::kFunction, c), module(m) {}
};

struct Graph : Object {
  std::vector<Op> ops;
  std::shared_ptr<Mark> last; /* launch, of an executable one */
  Graph(Kind k, Context *c) : Object(k, c) {}
};

struct Context : Object {
  int device;
  int held = 0;
  int broken = 0; /* the code that every call returns */
  Stream *plain;  /* the default stream: synchronous copies only */
  explicit Context(int d);
};

/* Physical memory that processes share. */
struct Block : Object {
  int fd, device;
  uint64_t n;
  bool rdma;
  int maps = 0;
  Block(int f, uint64_t bytes, int d, bool r) : Object(Kind::kBlock, nullptr), fd(f), device(d), n(bytes), rdma(r) {}
};

enum class Place { kDevice, kReserved, kMapped, kOpened, kPinned, kRegistered };

struct Range {
  uint64_t at, n;
  Place place;
  Context *context; /* NULL for kReserved and kMapped */
  int device;
  uint64_t buffer;   /* number of the allocation, never used twice */
  int access = 3;    /* of its device: 0, 1 read, 3 read and write */
  int fd = -1;       /* kDevice: its memory */
  Block *block = nullptr;
  uint64_t opened = 0; /* kOpened: how often */
  std::string name;    /* kOpened: its handle */
  bool host() const { return place == Place::kPinned || place == Place::kRegistered; }
};

struct Device {
  uint64_t total = 8ull << 30, used = 0;
  std::map<int, int> attributes;
  Context *primary = nullptr;
};

struct Fault {
  std::string call; /* "*": any */
  uint64_t nth;
  int code;
  bool sticky;
};

struct World {
  std::recursive_mutex lock;
  bool begun = false, quiet = false;
  uint64_t seed = 0, random = 0x9E3779B97F4A7C15ull, buffers = 0;
  std::vector<Device> devices;
  std::set<Object *> objects;
  std::map<uint64_t, Range> ranges;
  std::map<uint64_t, Range> freed;
  std::vector<std::string> violations;
  std::vector<Fault> faults;
  std::map<std::string, uint64_t> calls;
  std::vector<Stream *> streams; /* with those that are destroyed and have work left */
};

World &world();
void seed(uint64_t s);
uint32_t below(uint32_t n); /* random */
int violation(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* call.cc */
enum Needs { kNothing, kBegun, kContext, kSafe /* a context, and no capture that it would break */ };
struct Call {
  std::unique_lock<std::recursive_mutex> held;
  int code;
  Call(const char *name, Needs needs);
  ~Call();
};
#define ENTER(needs)                \
  Call call_(__func__, needs);      \
  if (call_.code != GOOD) return call_.code
Context *current();
int capture_forbids();

template <class T>
T *object(void *handle, Kind kind) {
  auto it = world().objects.find((Object *)handle);
  return it == world().objects.end() || (*it)->kind != kind || !(*it)->alive ? nullptr : (T *)*it;
}

/* memory.cc */
Range *find(uint64_t at, uint64_t n);
std::string where(uint64_t at, uint64_t n); /* in words, for violations */
bool reaches(const Range &r, Context *c, bool writes);
bool used_by(const Op &op, const Range &r);
bool in_use(const Range &r);
void drop(uint64_t at); /* a range that is gone: its addresses are never used again */

/* queue.cc */
void push(Stream *s, Op op);
void step(Stream *s);
void finish(Stream *s);
void finish_all(Context *c); /* NULL: of all */
void await(const std::shared_ptr<Mark> &m);
void some_progress(uint32_t steps);
uint64_t pending();
int own_stream(void *handle, Stream **s);

/* host.cc */
void watch(Op &op);
void check_watched(Op &op);
void touched(uint64_t at, uint64_t n);

/* kernel.cc */
const char *begin_emulation(); /* NULL, or what is missing */
int run_kernel(Context *c, const Op &op);

}  // namespace fake

#endif
