/* The driver's functions by pointer, found with dlopen: no header and no library of CUDA is needed to build. Types and numbers are those of
 * NVIDIA's published driver interface (cuda.h of CUDA 13.0); header_test.go compares them where that header is at hand. Each call here returns
 * the driver's code, 0 for success. */
#ifndef KVF_DRIVER_SHIM_H
#define KVF_DRIVER_SHIM_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "table.h"

struct kd_table {
#define F(name, args, ...) int (*name)(__VA_ARGS__);
  KD_PLAIN(F)
  KD_IN_CONTEXT(F)
#undef F
  void *library;
};

/* Opens the library and fills the table; NULL, or what is missing. */
static inline const char *kd_open(struct kd_table *t, const char *path) {
  t->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (t->library == NULL) return dlerror();
#define F(name, args, ...)                       \
  *(void **)&t->name = dlsym(t->library, #name); \
  if (t->name == NULL) return "it has no " #name;
  KD_PLAIN(F)
  KD_IN_CONTEXT(F)
#undef F
  return NULL;
}

#define F(name, args, ...) \
  static inline int kd_##name(struct kd_table *t, ##__VA_ARGS__) { return t->name args; }
KD_PLAIN(F)
#undef F

/* Before each call its context goes on this thread's stack of contexts, and after it off again: goroutines wander between threads, and a
 * thread may be a serving engine's own, with a context that must be as before. One call from Go stays on one thread, so nothing locks
 * threads. In between the thread ignores captures of others: by default a serving engine's capture in any thread would forbid
 * allocations here, and fail for them. */
static inline int kd_enter(struct kd_table *t, void *context, int *mode) {
  *mode = 1; /* CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */
  int r = t->cuCtxPushCurrent_v2(context);
  if (r != 0) return r;
  r = t->cuThreadExchangeStreamCaptureMode(mode);
  if (r != 0) t->cuCtxPopCurrent_v2(&context);
  return r;
}

/* What came of the call stands above what came of putting things back. */
static inline int kd_leave(struct kd_table *t, int mode, int said) {
  void *context = NULL;
  int a = t->cuThreadExchangeStreamCaptureMode(&mode);
  int b = t->cuCtxPopCurrent_v2(&context);
  return said != 0 ? said : a != 0 ? a : b;
}

#define F(name, args, ...)                                                        \
  static inline int in_##name(struct kd_table *t, void *context, ##__VA_ARGS__) { \
    int kd_mode, kd_code = kd_enter(t, context, &kd_mode);                        \
    return kd_code != 0 ? kd_code : kd_leave(t, kd_mode, t->name args);           \
  }
KD_IN_CONTEXT(F)
#undef F

static inline const char *kd_name(struct kd_table *t, int code) {
  const char *s = NULL;
  return t->cuGetErrorName(code, &s) == 0 && s != NULL ? s : "unknown";
}

/* One struct by value. */
static inline int kd_launch(struct kd_table *t, void *context, void *f, unsigned grid, unsigned block, void *stream, void *args) {
  void *params[1];
  params[0] = args;
  return in_cuLaunchKernel(t, context, f, grid, 1, 1, block, 1, 1, 0, stream, params, NULL);
}

/* Memory of the device that other processes can map, and with rdma network cards reach. */
static inline struct kd_prop kd_shared(int device, int rdma) {
  struct kd_prop p;
  memset(&p, 0, sizeof p);
  p.type = 1;          /* CU_MEM_ALLOCATION_TYPE_PINNED */
  p.handle_types = 1;  /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
  p.location.type = 1; /* CU_MEM_LOCATION_TYPE_DEVICE */
  p.location.id = device;
  p.rdma = (unsigned char)(rdma != 0);
  return p;
}

static inline int kd_granularity(struct kd_table *t, void *context, int device, int rdma, size_t *n) {
  struct kd_prop p = kd_shared(device, rdma);
  return in_cuMemGetAllocationGranularity(t, context, n, &p, 0);
}

static inline int kd_create(struct kd_table *t, void *context, int device, int rdma, size_t n, kd_memory *h) {
  struct kd_prop p = kd_shared(device, rdma);
  return in_cuMemCreate(t, context, h, n, &p, 0);
}

static inline int kd_import(struct kd_table *t, void *context, int fd, kd_memory *h) {
  return in_cuMemImportFromShareableHandle(t, context, h, (void *)(intptr_t)fd, 1);
}

static inline int kd_export(struct kd_table *t, void *context, kd_memory h, int *fd) {
  return in_cuMemExportToShareableHandle(t, context, fd, h, 1, 0);
}

static inline int kd_set_access(struct kd_table *t, void *context, int device, kd_ptr p, size_t n, int flags) {
  struct kd_access a = {{1, device}, flags};
  return in_cuMemSetAccess(t, context, p, n, &a, 1);
}

/* Attributes of a pointer, each in a word of its own: the driver writes 1, 4 or 8 bytes of it. */
enum { KD_MEMORY_TYPE, KD_BUFFER, KD_MANAGED, KD_ORDINAL, KD_IPC, KD_START, KD_SIZE, KD_MAPPED, KD_HANDLES, KD_POINTER_WORDS };
static inline int kd_pointer(struct kd_table *t, void *context, kd_ptr p, uint64_t *words) {
  int which[KD_POINTER_WORDS] = {2, 7, 8, 9, 10, 11, 12, 13, 14};
  void *data[KD_POINTER_WORDS];
  for (int k = 0; k < KD_POINTER_WORDS; k++) {
    words[k] = 0;
    data[k] = &words[k];
  }
  return in_cuPointerGetAttributes(t, context, KD_POINTER_WORDS, which, data, p);
}

static inline int kd_sync_memops(struct kd_table *t, void *context, kd_ptr p) {
  int on = 1;
  return in_cuPointerSetAttribute(t, context, &on, 6, p);
}

#endif
