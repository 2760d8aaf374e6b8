/* What tests ask and set: own functions beside the driver's. */
#include <cstring>

#include "world.h"

using namespace fake;

#define CONTROL(type) extern "C" __attribute__((visibility("default"))) type
#define LOCK std::lock_guard<std::recursive_mutex> held_(world().lock)

/* Violations so far, one a line, into text as far as they fit. Returns the bytes of all with the zero at their end. */
CONTROL(size_t) kvf_fake_violations(char *text, size_t n) {
  LOCK;
  std::string all;
  for (const std::string &v : world().violations) all += v + "\n";
  if (n > 0) {
    strncpy(text, all.c_str(), n);
    text[n - 1] = 0;
  }
  return all.size() + 1;
}

CONTROL(void) kvf_fake_forget(void) {
  LOCK;
  world().violations.clear();
}

/* Violations are not said on standard error any more. */
CONTROL(void) kvf_fake_quiet(void) {
  LOCK;
  world().quiet = true;
}

/* Order of work from now on. 0: each as late as it can be. */
CONTROL(void) kvf_fake_seed(uint64_t s) {
  LOCK;
  seed(s);
}

/* The nth call from now of a function ("*": of any but those that only set contexts) does nothing and returns code; with sticky, so does every later one of its context. */
CONTROL(void) kvf_fake_fault(const char *call, uint64_t nth, int code, int sticky) {
  LOCK;
  world().faults.push_back({call, nth, code, sticky != 0});
}

CONTROL(uint64_t) kvf_fake_faults_left(void) {
  LOCK;
  return world().faults.size();
}

CONTROL(void) kvf_fake_no_faults(void) {
  LOCK;
  world().faults.clear();
}

/* How often a function was called. */
CONTROL(uint64_t) kvf_fake_calls(const char *call) {
  LOCK;
  auto c = world().calls.find(call);
  return c == world().calls.end() ? 0 : c->second;
}

/* Operations that are queued. */
CONTROL(uint64_t) kvf_fake_pending(void) {
  LOCK;
  return pending();
}

/* Lets work happen that nobody waits for. */
CONTROL(void) kvf_fake_progress(uint32_t steps) {
  LOCK;
  some_progress(steps);
}

/* Before the driver is opened: how many devices there are. After: an attribute, or the memory, of one. */
CONTROL(void) kvf_fake_devices(uint64_t n) {
  LOCK;
  world().devices.resize(n);
}

CONTROL(void) kvf_fake_attribute(int ordinal, int attribute, int v) {
  LOCK;
  world().devices.at(ordinal).attributes[attribute] = v;
}

CONTROL(void) kvf_fake_memory(int ordinal, uint64_t total) {
  LOCK;
  world().devices.at(ordinal).total = total;
}
