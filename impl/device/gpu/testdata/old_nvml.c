/*
 * A management library as old as can be, for TestOpen_OldestLibrary: one card, the functions that the package needs and no other, each in its
 * first version. A call of any other ends the process, as it would with a driver that lacks it.
 */
#include <stddef.h>
#include <string.h>

typedef int ret;
enum { OK = 0 };
struct memory { unsigned long long total, free, used; };
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };

static int card;

ret nvmlInit(void) { return OK; }
ret nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(ret r) { return r ? "an error" : "Success"; }
ret nvmlSystemGetDriverVersion(char *s, unsigned n) { strncpy(s, "418.0", n); return OK; }
ret nvmlSystemGetNVMLVersion(char *s, unsigned n) { strncpy(s, "10.418.0", n); return OK; }
ret nvmlSystemGetCudaDriverVersion(int *v) { *v = 10010; return OK; }
ret nvmlDeviceGetCount(unsigned *n) { *n = 1; return OK; }
ret nvmlDeviceGetHandleByIndex(unsigned i, void **d) { *d = &card; return i ? 6 : OK; }
ret nvmlDeviceGetUUID(void *d, char *s, unsigned n) { strncpy(s, "GPU-old", n); return d == &card ? OK : 2; }
ret nvmlDeviceGetName(void *d, char *s, unsigned n) { strncpy(s, "old card", n); return OK; }
ret nvmlDeviceGetPciInfo(void *d, struct pci *p) { memset(p, 0, sizeof *p); strcpy(p->bus_id, "00000000:3B:00.0"); return OK; }
ret nvmlDeviceGetComputeMode(void *d, int *mode) { *mode = 3; return OK; }
ret nvmlDeviceGetMemoryInfo(void *d, struct memory *m) { m->total = 16ull << 30; m->free = 15ull << 30; m->used = 1ull << 30; return OK; }
