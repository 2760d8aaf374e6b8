/* Which functions of the driver are used, with their parameters: F(name, (arguments), parameters). */
#ifndef KVF_DRIVER_TABLE_H
#define KVF_DRIVER_TABLE_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t kd_ptr;              /* CUdeviceptr */
typedef unsigned long long kd_memory; /* CUmemGenericAllocationHandle */

struct kd_location { /* CUmemLocation */
  int type, id;
};
struct kd_prop { /* CUmemAllocationProp */
  int type, handle_types;
  struct kd_location location;
  void *security;
  unsigned char compression, rdma;
  unsigned short usage;
  unsigned char reserved[4];
};
struct kd_access { /* CUmemAccessDesc */
  struct kd_location location;
  int flags;
};
struct kd_ipc { /* CUipcMemHandle */
  char reserved[64];
};
struct kd_uuid { /* CUuuid */
  char bytes[16];
};

/* Calls that need no context. */
#define KD_PLAIN(F)                                                                          \
  F(cuInit, (flags), unsigned flags)                                                         \
  F(cuDriverGetVersion, (version), int *version)                                             \
  F(cuDeviceGetCount, (n), int *n)                                                           \
  F(cuDeviceGet, (device, ordinal), int *device, int ordinal)                                \
  F(cuDeviceGetName, (name, n, device), char *name, int n, int device)                       \
  F(cuDeviceGetPCIBusId, (id, n, device), char *id, int n, int device)                       \
  F(cuDeviceGetUuid_v2, (uuid, device), struct kd_uuid *uuid, int device)                    \
  F(cuDeviceGetAttribute, (v, attribute, device), int *v, int attribute, int device)         \
  F(cuDeviceTotalMem_v2, (n, device), size_t *n, int device)                                 \
  F(cuDevicePrimaryCtxRetain, (context, device), void **context, int device)                 \
  F(cuDevicePrimaryCtxRelease_v2, (device), int device)                                      \
  F(cuGetErrorName, (code, name), int code, const char **name)                               \
  F(cuCtxPushCurrent_v2, (context), void *context)                                           \
  F(cuCtxPopCurrent_v2, (context), void **context)                                           \
  F(cuThreadExchangeStreamCaptureMode, (mode), int *mode)

/* Calls for the current context. */
#define KD_IN_CONTEXT(F)                                                                                                    \
  F(cuCtxSynchronize, ())                                                                                                   \
  F(cuMemGetInfo_v2, (available, total), size_t *available, size_t *total)                                                  \
  F(cuMemAlloc_v2, (p, n), kd_ptr *p, size_t n)                                                                             \
  F(cuMemFree_v2, (p), kd_ptr p)                                                                                            \
  F(cuMemGetAllocationGranularity, (n, prop, option), size_t *n, const struct kd_prop *prop, int option)                    \
  F(cuMemCreate, (h, n, prop, flags), kd_memory *h, size_t n, const struct kd_prop *prop, unsigned long long flags)         \
  F(cuMemRelease, (h), kd_memory h)                                                                                         \
  F(cuMemExportToShareableHandle, (to, h, type, flags), void *to, kd_memory h, int type, unsigned long long flags)          \
  F(cuMemImportFromShareableHandle, (h, from, type), kd_memory *h, void *from, int type)                                    \
  F(cuMemAddressReserve, (p, n, align, at, flags), kd_ptr *p, size_t n, size_t align, kd_ptr at, unsigned long long flags)  \
  F(cuMemAddressFree, (p, n), kd_ptr p, size_t n)                                                                           \
  F(cuMemMap, (p, n, offset, h, flags), kd_ptr p, size_t n, size_t offset, kd_memory h, unsigned long long flags)           \
  F(cuMemUnmap, (p, n), kd_ptr p, size_t n)                                                                                 \
  F(cuMemSetAccess, (p, n, access, count), kd_ptr p, size_t n, const struct kd_access *access, size_t count)                \
  F(cuMemGetHandleForAddressRange, (to, p, n, type, flags), void *to, kd_ptr p, size_t n, int type, unsigned long long flags) \
  F(cuIpcGetMemHandle, (h, p), struct kd_ipc *h, kd_ptr p)                                                                  \
  F(cuIpcOpenMemHandle_v2, (p, h, flags), kd_ptr *p, struct kd_ipc h, unsigned flags)                                       \
  F(cuIpcCloseMemHandle, (p), kd_ptr p)                                                                                     \
  F(cuPointerGetAttributes, (n, which, data, p), unsigned n, int *which, void **data, kd_ptr p)                             \
  F(cuPointerSetAttribute, (value, which, p), const void *value, int which, kd_ptr p)                                       \
  F(cuFlushGPUDirectRDMAWrites, (target, scope), int target, int scope)                                                     \
  F(cuMemHostAlloc, (p, n, flags), void **p, size_t n, unsigned flags)                                                      \
  F(cuMemFreeHost, (p), void *p)                                                                                            \
  F(cuMemHostRegister_v2, (p, n, flags), void *p, size_t n, unsigned flags)                                                 \
  F(cuMemHostUnregister, (p), void *p)                                                                                      \
  F(cuMemHostGetDevicePointer_v2, (d, p, flags), kd_ptr *d, void *p, unsigned flags)                                        \
  F(cuMemcpyHtoD_v2, (to, from, n), kd_ptr to, const void *from, size_t n)                                                  \
  F(cuMemcpyDtoH_v2, (to, from, n), void *to, kd_ptr from, size_t n)                                                        \
  F(cuMemcpyHtoDAsync_v2, (to, from, n, stream), kd_ptr to, const void *from, size_t n, void *stream)                       \
  F(cuMemcpyDtoHAsync_v2, (to, from, n, stream), void *to, kd_ptr from, size_t n, void *stream)                             \
  F(cuMemcpyDtoDAsync_v2, (to, from, n, stream), kd_ptr to, kd_ptr from, size_t n, void *stream)                            \
  F(cuMemsetD8Async, (p, v, n, stream), kd_ptr p, unsigned char v, size_t n, void *stream)                                  \
  F(cuMemsetD32Async, (p, v, n, stream), kd_ptr p, unsigned v, size_t n, void *stream)                                      \
  F(cuStreamCreate, (stream, flags), void **stream, unsigned flags)                                                         \
  F(cuStreamDestroy_v2, (stream), void *stream)                                                                             \
  F(cuStreamSynchronize, (stream), void *stream)                                                                            \
  F(cuStreamQuery, (stream), void *stream)                                                                                  \
  F(cuStreamWaitEvent, (stream, event, flags), void *stream, void *event, unsigned flags)                                   \
  F(cuStreamBeginCapture_v2, (stream, mode), void *stream, int mode)                                                        \
  F(cuStreamEndCapture, (stream, graph), void *stream, void **graph)                                                        \
  F(cuEventCreate, (event, flags), void **event, unsigned flags)                                                            \
  F(cuEventDestroy_v2, (event), void *event)                                                                                \
  F(cuEventRecord, (event, stream), void *event, void *stream)                                                              \
  F(cuEventQuery, (event), void *event)                                                                                     \
  F(cuEventSynchronize, (event), void *event)                                                                               \
  F(cuEventElapsedTime, (ms, from, to), float *ms, void *from, void *to)                                                    \
  F(cuModuleLoadData, (module, image), void **module, const void *image)                                                    \
  F(cuModuleUnload, (module), void *module)                                                                                 \
  F(cuModuleGetFunction, (function, module, name), void **function, void *module, const char *name)                         \
  F(cuFuncGetParamInfo, (function, i, offset, n), void *function, size_t i, size_t *offset, size_t *n)                      \
  F(cuLaunchKernel, (f, gx, gy, gz, bx, by, bz, shared, stream, params, extra), void *f, unsigned gx, unsigned gy,          \
    unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **params, void **extra)         \
  F(cuGraphInstantiateWithFlags, (exec, graph, flags), void **exec, void *graph, unsigned long long flags)                  \
  F(cuGraphDestroy, (graph), void *graph)                                                                                   \
  F(cuGraphExecDestroy, (exec), void *exec)                                                                                 \
  F(cuGraphLaunch, (exec, stream), void *exec, void *stream)

#endif
