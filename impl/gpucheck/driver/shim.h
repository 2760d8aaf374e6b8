/* The driver's functions by pointer, found with dlopen: no header and no library of CUDA is needed to build. Types and numbers are those of
 * NVIDIA's published driver interface. Each function here returns the driver's code, 0 for success. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t kd_ptr;

struct kd_location {
  int type, id;
};
struct kd_prop {
  int type, handle_types;
  struct kd_location location;
  void *security;
  unsigned char compression, rdma;
  unsigned short usage;
  unsigned char reserved[4];
};
struct kd_access {
  struct kd_location location;
  int flags;
};

#define KD_FUNCTIONS(F)                                                                                                             \
  F(cuInit, (unsigned))                                                                                                             \
  F(cuDriverGetVersion, (int *))                                                                                                    \
  F(cuDeviceGet, (int *, int))                                                                                                      \
  F(cuDeviceGetName, (char *, int, int))                                                                                            \
  F(cuDeviceGetAttribute, (int *, int, int))                                                                                        \
  F(cuDevicePrimaryCtxRetain, (void **, int))                                                                                       \
  F(cuCtxSetCurrent, (void *))                                                                                                      \
  F(cuGetErrorName, (int, const char **))                                                                                           \
  F(cuModuleLoadData, (void **, const void *))                                                                                      \
  F(cuModuleGetFunction, (void **, void *, const char *))                                                                           \
  F(cuMemAlloc_v2, (kd_ptr *, size_t))                                                                                              \
  F(cuMemFree_v2, (kd_ptr))                                                                                                         \
  F(cuMemcpyHtoD_v2, (kd_ptr, const void *, size_t))                                                                                \
  F(cuMemcpyDtoH_v2, (void *, kd_ptr, size_t))                                                                                      \
  F(cuMemcpyDtoDAsync_v2, (kd_ptr, kd_ptr, size_t, void *))                                                                         \
  F(cuStreamCreate, (void **, unsigned))                                                                                            \
  F(cuStreamSynchronize, (void *))                                                                                                  \
  F(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))       \
  F(cuEventCreate, (void **, unsigned))                                                                                             \
  F(cuEventRecord, (void *, void *))                                                                                                \
  F(cuEventSynchronize, (void *))                                                                                                   \
  F(cuEventElapsedTime, (float *, void *, void *))                                                                                  \
  F(cuStreamBeginCapture_v2, (void *, int))                                                                                         \
  F(cuStreamEndCapture, (void *, void **))                                                                                          \
  F(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long))                                                             \
  F(cuGraphLaunch, (void *, void *))                                                                                                \
  F(cuMemGetAllocationGranularity, (size_t *, const struct kd_prop *, int))                                                         \
  F(cuMemCreate, (unsigned long long *, size_t, const struct kd_prop *, unsigned long long))                                        \
  F(cuMemExportToShareableHandle, (void *, unsigned long long, int, unsigned long long))                                            \
  F(cuMemImportFromShareableHandle, (unsigned long long *, void *, int))                                                            \
  F(cuMemAddressReserve, (kd_ptr *, size_t, size_t, kd_ptr, unsigned long long))                                                    \
  F(cuMemMap, (kd_ptr, size_t, size_t, unsigned long long, unsigned long long))                                                     \
  F(cuMemSetAccess, (kd_ptr, size_t, const struct kd_access *, size_t))

struct kd_table {
#define F(name, args) int(*name) args;
  KD_FUNCTIONS(F)
#undef F
  void *library, *context, *stream;
  int device;
};

/* Opens the library and fills the table; NULL, or what is missing. */
static const char *kd_open(struct kd_table *t, const char *path) {
  t->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (t->library == NULL) return dlerror();
#define F(name, args) \
  *(void **)&t->name = dlsym(t->library, #name); \
  if (t->name == NULL) return "it has no " #name;
  KD_FUNCTIONS(F)
#undef F
  return NULL;
}

static int kd_start(struct kd_table *t, char *name, int n, int *major, int *minor, int *version) {
  int r = t->cuInit(0);
  if (r == 0) r = t->cuDriverGetVersion(version);
  if (r == 0) r = t->cuDeviceGet(&t->device, 0);
  if (r == 0) r = t->cuDeviceGetName(name, n, t->device);
  if (r == 0) r = t->cuDeviceGetAttribute(major, 75, t->device);
  if (r == 0) r = t->cuDeviceGetAttribute(minor, 76, t->device);
  if (r == 0) r = t->cuDevicePrimaryCtxRetain(&t->context, t->device);
  if (r == 0) r = t->cuCtxSetCurrent(t->context);
  /* A stream that the default stream's work goes before: a plain copy from ordinary memory may return while its last bytes are on their way. */
  if (r == 0) r = t->cuStreamCreate(&t->stream, 0);
  return r;
}

static const char *kd_error(struct kd_table *t, int code) {
  const char *s = NULL;
  return t->cuGetErrorName(code, &s) == 0 && s != NULL ? s : "unknown";
}

static int kd_load(struct kd_table *t, const void *image, const char *kernel, void **function) {
  void *module = NULL;
  int r = t->cuModuleLoadData(&module, image);
  return r != 0 ? r : t->cuModuleGetFunction(function, module, kernel);
}

static int kd_alloc(struct kd_table *t, kd_ptr *p, size_t n) { return t->cuMemAlloc_v2(p, n); }
static int kd_free(struct kd_table *t, kd_ptr p) { return t->cuMemFree_v2(p); }
static int kd_write(struct kd_table *t, kd_ptr p, const void *b, size_t n) { return t->cuMemcpyHtoD_v2(p, b, n); }
static int kd_read(struct kd_table *t, void *b, kd_ptr p, size_t n) { return t->cuMemcpyDtoH_v2(b, p, n); }
static int kd_copy(struct kd_table *t, kd_ptr to, kd_ptr from, size_t n) { return t->cuMemcpyDtoDAsync_v2(to, from, n, t->stream); }
static int kd_sync(struct kd_table *t) { return t->cuStreamSynchronize(t->stream); }

static int kd_launch(struct kd_table *t, void *function, unsigned grid, unsigned block, void *args) {
  void *params[1] = {args};
  return t->cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, t->stream, params, NULL);
}

static int kd_event(struct kd_table *t, void **e) { return t->cuEventCreate(e, 0); }
static int kd_record(struct kd_table *t, void *e) { return t->cuEventRecord(e, t->stream); }
static int kd_elapsed(struct kd_table *t, void *a, void *b, float *ms) {
  int r = t->cuEventSynchronize(b);
  return r != 0 ? r : t->cuEventElapsedTime(ms, a, b);
}

static int kd_capture(struct kd_table *t) { return t->cuStreamBeginCapture_v2(t->stream, 1); }
static int kd_captured(struct kd_table *t, void **exec) {
  void *graph = NULL;
  int r = t->cuStreamEndCapture(t->stream, &graph);
  return r != 0 ? r : t->cuGraphInstantiateWithFlags(exec, graph, 0);
}
static int kd_replay(struct kd_table *t, void *exec) { return t->cuGraphLaunch(exec, t->stream); }

static struct kd_prop kd_shared(struct kd_table *t) {
  struct kd_prop p;
  memset(&p, 0, sizeof p);
  p.type = 1;         /* pinned */
  p.handle_types = 1; /* file descriptor */
  p.location.type = 1;
  p.location.id = t->device;
  return p;
}

/* Maps a handle of n bytes with access. */
static int kd_map(struct kd_table *t, unsigned long long handle, size_t n, int access, kd_ptr *at) {
  struct kd_access a = {{1, t->device}, access};
  int r = t->cuMemAddressReserve(at, n, 0, 0, 0);
  if (r == 0) r = t->cuMemMap(*at, n, 0, handle, 0);
  return r != 0 ? r : t->cuMemSetAccess(*at, n, &a, 1);
}

/* Makes memory that another process can map: n is rounded up; fd is the caller's to close. */
static int kd_export(struct kd_table *t, size_t *n, kd_ptr *at, int *fd) {
  struct kd_prop p = kd_shared(t);
  size_t granularity = 0;
  unsigned long long handle = 0;
  int r = t->cuMemGetAllocationGranularity(&granularity, &p, 0);
  if (r != 0) return r;
  *n = (*n + granularity - 1) / granularity * granularity;
  r = t->cuMemCreate(&handle, *n, &p, 0);
  if (r == 0) r = kd_map(t, handle, *n, 3, at);
  return r != 0 ? r : t->cuMemExportToShareableHandle(fd, handle, 1, 0);
}

static int kd_import(struct kd_table *t, int fd, size_t n, int access, kd_ptr *at) {
  unsigned long long handle = 0;
  int r = t->cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, 1);
  return r != 0 ? r : kd_map(t, handle, n, access, at);
}
