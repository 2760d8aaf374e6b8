/* Start, devices, names of codes, primary contexts and what is left behind in them. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "world.h"

namespace fake {

namespace {

uint64_t number(const char *variable, uint64_t otherwise) {
  const char *s = getenv(variable);
  return s == nullptr ? otherwise : strtoull(s, nullptr, 0);
}

/* KVFENCE_FAKE_FAULTS: CALL:NTH:CODE[:sticky],... */
void read_faults() {
  const char *s = getenv("KVFENCE_FAKE_FAULTS");
  std::stringstream all(s == nullptr ? "" : s);
  for (std::string one; std::getline(all, one, ',');) {
    std::stringstream parts(one);
    std::string call, nth, code, sticky;
    std::getline(parts, call, ':');
    std::getline(parts, nth, ':');
    std::getline(parts, code, ':');
    std::getline(parts, sticky);
    world().faults.push_back({call, strtoull(nth.c_str(), nullptr, 0), atoi(code.c_str()), sticky == "sticky"});
  }
}

/* A card like an H100: compute capability 9.0, GPUDirect that needs a flush. */
std::map<int, int> attributes() {
  return {{16, 132}, {19, 1}, {41, 1}, {75, 9}, {76, 0}, {91, 1}, {102, 1}, {103, 1}, {110, 1}, {116, 1}, {117, 1}, {118, 0}, {124, 1}};
}

Device *device_of(int handle) {
  int k = handle - kFirstDevice;
  return k >= 0 && k < (int)world().devices.size() ? &world().devices[k] : nullptr;
}

const char *kind_name(Kind k) {
  switch (k) {
    case Kind::kStream: return "stream";
    case Kind::kEvent: return "event";
    case Kind::kModule: return "module";
    case Kind::kGraph: return "graph";
    case Kind::kExec: return "executable graph";
    case Kind::kBlock: return "handle of memory";
    default: return nullptr;
  }
}

/* All that was made in c and not given back. */
void left_behind(Context *c) {
  for (Object *o : world().objects) {
    if (o->alive && o->context == c && o != c->plain && kind_name(o->kind) != nullptr) violation(GOOD, "left behind: a %s", kind_name(o->kind));
  }
  for (auto &r : world().ranges) {
    if (r.second.context == c) violation(GOOD, "left behind: %s", where(r.first, 1).c_str());
  }
  for (Device &d : world().devices) {
    if (d.primary != nullptr && d.primary->held > 0) return;
  }
  for (Object *o : world().objects) {
    if (o->alive && o->kind == Kind::kBlock) violation(GOOD, "left behind: a handle of memory");
  }
  for (auto &r : world().ranges) {
    if (r.second.context == nullptr) violation(GOOD, "left behind: %s", where(r.first, 1).c_str());
  }
}

}  // namespace

}  // namespace fake

using namespace fake;

int cuInit(unsigned flags) {
  ENTER(kNothing);
  World &w = world();
  if (flags != 0) return violation(INVALID_VALUE, "flags");
  if (w.begun) return GOOD;
  if (const char *missing = begin_emulation()) return violation(999, "%s", missing);
  if (w.seed == 0) seed(number("KVFENCE_FAKE_SEED", 0));
  if (w.devices.empty()) w.devices.resize(number("KVFENCE_FAKE_DEVICES", 2));
  for (Device &d : w.devices) {
    d.total = number("KVFENCE_FAKE_MEMORY", d.total);
    d.attributes = attributes();
  }
  read_faults();
  return w.begun = true, GOOD;
}

int cuDriverGetVersion(int *v) {
  ENTER(kNothing);
  return *v = 13000, GOOD;
}

int cuDeviceGetCount(int *n) {
  ENTER(kBegun);
  return *n = (int)world().devices.size(), GOOD;
}

int cuDeviceGet(int *device, int ordinal) {
  ENTER(kBegun);
  if (device_of(ordinal + kFirstDevice) == nullptr) return violation(INVALID_DEVICE, "ordinal %d of %zu", ordinal, world().devices.size());
  return *device = ordinal + kFirstDevice, GOOD;
}

int cuDeviceGetName(char *name, int n, int device) {
  ENTER(kBegun);
  if (device_of(device) == nullptr) return violation(INVALID_DEVICE, "no device");
  return snprintf(name, n, "fake"), GOOD;
}

int cuDeviceGetPCIBusId(char *id, int n, int device) {
  ENTER(kBegun);
  if (device_of(device) == nullptr) return violation(INVALID_DEVICE, "no device");
  if (n < 13) return violation(INVALID_VALUE, "a name of 13 bytes into %d", n);
  return snprintf(id, n, "0000:%02x:00.0", 0x3b + device - kFirstDevice), GOOD;
}

int cuDeviceGetUuid_v2(struct kd_uuid *uuid, int device) {
  ENTER(kBegun);
  if (device_of(device) == nullptr) return violation(INVALID_DEVICE, "no device");
  for (int k = 0; k < 16; k++) uuid->bytes[k] = (char)(0xf0 + k);
  return uuid->bytes[15] = (char)(device - kFirstDevice), GOOD;
}

int cuDeviceGetAttribute(int *v, int attribute, int device) {
  ENTER(kBegun);
  Device *d = device_of(device);
  if (d == nullptr) return violation(INVALID_DEVICE, "no device");
  auto a = d->attributes.find(attribute);
  if (a == d->attributes.end()) return violation(INVALID_VALUE, "attribute %d is not in the fake's table", attribute);
  return *v = a->second, GOOD;
}

int cuDeviceTotalMem_v2(size_t *n, int device) {
  ENTER(kBegun);
  Device *d = device_of(device);
  if (d == nullptr) return violation(INVALID_DEVICE, "no device");
  return *n = d->total, GOOD;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  ENTER(kBegun);
  Device *d = device_of(device);
  if (d == nullptr) return violation(INVALID_DEVICE, "no device");
  if (d->primary == nullptr) d->primary = new Context(device - kFirstDevice);
  if (d->primary->broken != 0) return d->primary->broken;
  d->primary->held++;
  return *context = d->primary, GOOD;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  ENTER(kBegun);
  Device *d = device_of(device);
  if (d == nullptr) return violation(INVALID_DEVICE, "no device");
  Context *c = d->primary;
  if (c == nullptr || c->held == 0) return violation(INVALID_CONTEXT, "nobody holds the context");
  if (--c->held > 0) return GOOD;
  if (c->broken != 0) return c->broken; /* what is left of a broken context cannot be freed, and stays */
  finish_all(c);
  left_behind(c);
  return GOOD;
}

int cuGetErrorName(int code, const char **name) {
  ENTER(kNothing);
  static const std::map<int, const char *> names = {
      {0, "CUDA_SUCCESS"}, {1, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"}, {3, "CUDA_ERROR_NOT_INITIALIZED"},
      {4, "CUDA_ERROR_DEINITIALIZED"}, {100, "CUDA_ERROR_NO_DEVICE"}, {101, "CUDA_ERROR_INVALID_DEVICE"}, {200, "CUDA_ERROR_INVALID_IMAGE"},
      {201, "CUDA_ERROR_INVALID_CONTEXT"}, {205, "CUDA_ERROR_MAP_FAILED"}, {214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
      {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE"}, {226, "CUDA_ERROR_CONTAINED"}, {400, "CUDA_ERROR_INVALID_HANDLE"},
      {500, "CUDA_ERROR_NOT_FOUND"}, {600, "CUDA_ERROR_NOT_READY"}, {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"}, {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
      {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"}, {714, "CUDA_ERROR_HARDWARE_STACK_ERROR"}, {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
      {716, "CUDA_ERROR_MISALIGNED_ADDRESS"}, {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE"}, {718, "CUDA_ERROR_INVALID_PC"},
      {719, "CUDA_ERROR_LAUNCH_FAILED"}, {801, "CUDA_ERROR_NOT_SUPPORTED"}, {802, "CUDA_ERROR_SYSTEM_NOT_READY"},
      {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"}, {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
      {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"}, {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
      {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"}, {999, "CUDA_ERROR_UNKNOWN"}};
  auto n = names.find(code);
  if (n == names.end()) return *name = nullptr, INVALID_VALUE;
  return *name = n->second, GOOD;
}

int cuMemGetInfo_v2(size_t *available, size_t *total) {
  ENTER(kContext);
  Device &d = world().devices[current()->device];
  return *total = d.total, *available = d.total - d.used, GOOD;
}
