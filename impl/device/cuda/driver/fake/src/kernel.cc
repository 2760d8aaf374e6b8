/* Modules and kernels. A kernel runs in the emulation, which lies beside this library, and may touch what its device may touch. */
#include <dlfcn.h>
#include <elf.h>

#include <cstdio>
#include <cstring>

#include "world.h"

namespace fake {

namespace {

typedef int (*registers)(uint64_t, uint64_t, uint32_t);
typedef int (*unregisters)(uint64_t);
typedef int (*emulates)(const char *, uint32_t, uint32_t, const void *, size_t, uint64_t, char *, size_t, void *);

registers add;
unregisters remove_region;
emulates emulate;

/* Bytes of a kernel's struct: of Go's, which abi_test.go compares with C's. */
uint64_t args_of(const std::string &kernel) {
  if (kernel == "kvf_tagverify") return VERIFY_ARGS;
  if (kernel == "kvf_scrub") return SCRUB_ARGS;
  if (kernel == "kvf_tagput") return PUT_ARGS;
  return MOVE_ARGS;
}

/* The text of an image: PTX to its zero byte, or a cubin of the size that its header says. */
bool read_image(const void *image, std::string *out) {
  const char *p = (const char *)image;
  if (memcmp(p, ELFMAG, SELFMAG) != 0) {
    out->assign(p);
    return out->find(".version") != std::string::npos && out->find(".target") != std::string::npos;
  }
  Elf64_Ehdr h;
  memcpy(&h, p, sizeof h);
  uint64_t sections = h.e_shoff + (uint64_t)h.e_shnum * h.e_shentsize, programs = h.e_phoff + (uint64_t)h.e_phnum * h.e_phentsize;
  uint64_t n = sections > programs ? sections : programs;
  if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != 190 /* EM_CUDA */ || n > (64u << 20)) return false;
  out->assign(p, n);
  return true;
}

bool runs(const Module *m) {
  for (Stream *s : world().streams) {
    for (const Op &op : s->queue) {
      if (op.work == Work::kKernel && op.function->module == m) return true;
    }
  }
  return false;
}

}  // namespace

const char *begin_emulation() {
  Dl_info self;
  if (dladdr((void *)&begin_emulation, &self) == 0) return "no name of this library";
  std::string path(self.dli_fname);
  path = path.substr(0, path.rfind('/') + 1) + "libkvfemulation.so";
  void *lib = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (lib == nullptr) return "the emulation is not beside this library";
  add = (registers)dlsym(lib, "kvf_emu_register");
  remove_region = (unregisters)dlsym(lib, "kvf_emu_unregister");
  emulate = (emulates)dlsym(lib, "kvf_emulate");
  return add != nullptr && remove_region != nullptr && emulate != nullptr ? nullptr : "the emulation lacks a function";
}

int run_kernel(Context *c, const Op &op) {
  if (!op.function->alive || !op.function->module->alive) {
    return c->broken = violation(ILLEGAL_ADDRESS, "queued work runs a kernel of a module that was unloaded");
  }
  std::vector<uint64_t> added;
  for (auto &r : world().ranges) {
    if (!reaches(r.second, c, false)) continue;
    if (add(r.first, r.second.n, reaches(r.second, c, true) ? 1 : 0) == 0) added.push_back(r.first);
  }
  char error[512] = "";
  uint64_t seed = 1 + below(1u << 30);
  int r = emulate(op.function->name.c_str(), op.grid, 256, op.args.data(), op.args.size(), seed, error, sizeof error, nullptr);
  for (uint64_t at : added) remove_region(at);
  for (auto &r : world().ranges) {
    if (r.second.host() && used_by(op, r.second)) touched(r.first, r.second.n);
  }
  if (r == 0) return GOOD;
  int code = strstr(error, "misaligned") ? MISALIGNED_ADDRESS : strstr(error, "outside") ? ILLEGAL_ADDRESS : LAUNCH_FAILED;
  return c->broken = violation(code, "%s: %s", op.function->name.c_str(), error);
}

}  // namespace fake

using namespace fake;

int cuModuleLoadData(void **module, const void *image) {
  ENTER(kSafe);
  std::string text;
  if (!read_image(image, &text)) return violation(INVALID_IMAGE, "neither PTX nor a cubin");
  Module *m = new Module(current());
  m->image = text;
  return *module = m, GOOD;
}

int cuModuleUnload(void *module) {
  ENTER(kSafe);
  Module *m = object<Module>(module, Kind::kModule);
  if (m == nullptr) return violation(INVALID_HANDLE, "a module that is none, or was unloaded");
  if (m->context != current()) return violation(INVALID_CONTEXT, "a module of another context");
  if (runs(m)) {
    violation(GOOD, "work that runs its kernels is queued");
    finish_all(nullptr);
    if (current()->broken != 0) return current()->broken;
  }
  return m->alive = false, GOOD;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
  ENTER(kContext);
  Module *m = object<Module>(module, Kind::kModule);
  if (m == nullptr) return violation(INVALID_HANDLE, "a module that is none, or was unloaded");
  if (m->context != current()) return violation(INVALID_CONTEXT, "a module of another context");
  if (strncmp(name, "kvf_", 4) != 0 || m->image.find(name) == std::string::npos) return violation(NOT_FOUND, "the image has no kernel %s", name);
  Function *f = new Function(current(), m);
  f->name = name;
  return *function = f, GOOD;
}

int cuFuncGetParamInfo(void *function, size_t i, size_t *offset, size_t *n) {
  ENTER(kContext);
  Function *f = object<Function>(function, Kind::kFunction);
  if (f == nullptr || !f->module->alive) return violation(INVALID_HANDLE, "a kernel that is none, or whose module was unloaded");
  if (i > 0) return violation(INVALID_VALUE, "kernels here take one struct");
  return *offset = 0, *n = args_of(f->name), GOOD;
}

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream,
                   void **params, void **extra) {
  ENTER(kContext);
  Stream *s;
  if (int code = own_stream(stream, &s)) return code;
  Function *k = object<Function>(f, Kind::kFunction);
  if (k == nullptr || !k->module->alive) return violation(INVALID_HANDLE, "a kernel that is none, or whose module was unloaded");
  if (k->context != current()) return violation(INVALID_CONTEXT, "a kernel of another context");
  if (gx == 0 || gx > 0x7fffffff || gy != 1 || gz != 1) return violation(INVALID_VALUE, "a grid of %u x %u x %u", gx, gy, gz);
  if (bx != 256 || by != 1 || bz != 1 || shared != 0) return violation(INVALID_VALUE, "blocks of %u x %u x %u, which the kernels are not made for", bx, by, bz);
  Op op{Work::kKernel};
  op.function = k, op.grid = gx;
  if (extra != nullptr) { /* CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END */
    if (params != nullptr || extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] != nullptr) return violation(INVALID_VALUE, "arguments");
    if (*(size_t *)extra[3] != args_of(k->name)) return violation(INVALID_VALUE, "%zu bytes of arguments of %s", *(size_t *)extra[3], k->name.c_str());
    op.args.assign((const char *)extra[1], args_of(k->name));
  } else if (params == nullptr || params[0] == nullptr) {
    return violation(INVALID_VALUE, "no arguments");
  } else {
    op.args.assign((const char *)params[0], args_of(k->name));
  }
  if (s->capture) return s->capture->ops.push_back(op), GOOD;
  return push(s, op), GOOD;
}
