//go:build cuda && cgo && linux

package fake

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

struct kf {
  size_t (*kvf_fake_violations)(char *, size_t);
  void (*kvf_fake_forget)(void);
  void (*kvf_fake_quiet)(void);
  void (*kvf_fake_seed)(uint64_t);
  void (*kvf_fake_fault)(const char *, uint64_t, int, int);
  uint64_t (*kvf_fake_faults_left)(void);
  void (*kvf_fake_no_faults)(void);
  uint64_t (*kvf_fake_calls)(const char *);
  uint64_t (*kvf_fake_pending)(void);
  void (*kvf_fake_progress)(uint32_t);
  void (*kvf_fake_devices)(uint64_t);
  void (*kvf_fake_attribute)(int, int, int);
  void (*kvf_fake_memory)(int, uint64_t);
  int (*kvf_fake_host_touch)(const void *, size_t, int);
  void *library;
  uint64_t cells[16];
};

static const char *kf_open(struct kf *k, const char *path) {
  k->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (k->library == NULL) return dlerror();
#define F(name) if ((*(void **)&k->name = dlsym(k->library, #name)) == NULL) return "it has no " #name;
  F(kvf_fake_violations) F(kvf_fake_forget) F(kvf_fake_quiet) F(kvf_fake_seed) F(kvf_fake_fault) F(kvf_fake_faults_left) F(kvf_fake_no_faults)
  F(kvf_fake_calls) F(kvf_fake_pending) F(kvf_fake_progress) F(kvf_fake_devices) F(kvf_fake_attribute) F(kvf_fake_memory) F(kvf_fake_host_touch)
#undef F
  return NULL;
}

static size_t kf_violations(struct kf *k, char *text, size_t n) { return k->kvf_fake_violations(text, n); }
static void kf_forget(struct kf *k) { k->kvf_fake_forget(); }
static void kf_quiet(struct kf *k) { k->kvf_fake_quiet(); }
static void kf_seed(struct kf *k, uint64_t seed) { k->kvf_fake_seed(seed); }
static void kf_fault(struct kf *k, const char *call, uint64_t nth, int code, int sticky) { k->kvf_fake_fault(call, nth, code, sticky); }
static uint64_t kf_faults_left(struct kf *k) { return k->kvf_fake_faults_left(); }
static void kf_no_faults(struct kf *k) { k->kvf_fake_no_faults(); }
static uint64_t kf_calls(struct kf *k, const char *call) { return k->kvf_fake_calls(call); }
static uint64_t kf_pending(struct kf *k) { return k->kvf_fake_pending(); }
static void kf_progress(struct kf *k, uint32_t steps) { k->kvf_fake_progress(steps); }
static void kf_devices(struct kf *k, uint64_t n) { k->kvf_fake_devices(n); }
static void kf_attribute(struct kf *k, int ordinal, int attribute, int v) { k->kvf_fake_attribute(ordinal, attribute, v); }
static void kf_memory(struct kf *k, int ordinal, uint64_t total) { k->kvf_fake_memory(ordinal, total); }
static int kf_touch(struct kf *k, const void *p, size_t n, int writes) { return k->kvf_fake_host_touch(p, n, writes); }

// Words for each parameter: on the platforms that this runs on a function takes from more words what it has parameters for.
static int kf_raw(struct kf *k, const char *name, const uint64_t *a) {
  typedef int (*any)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
  any f;
  *(void **)&f = dlsym(k->library, name);
  return f == NULL ? -1 : f(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
}
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"kvfence/impl/device/cuda/driver"
)

// Control asks and sets what a test needs of one loaded copy of the library. Safe for concurrent use, but for Raw's cells.
type Control struct{ k *C.struct_kf }

// Load loads a library of Build: the same copy that driver.Open loads from this path. From then on it says violations only when asked.
func Load(library string) (*Control, error) {
	c := &Control{(*C.struct_kf)(C.calloc(1, C.sizeof_struct_kf))} // as the library, it stays
	p := C.CString(library)
	defer C.free(unsafe.Pointer(p))
	if missing := C.kf_open(c.k, p); missing != nil {
		return nil, fmt.Errorf("%w: %s", driver.ErrNoDriver, C.GoString(missing))
	}
	C.kf_quiet(c.k)
	return c, nil
}

// Violations are what broke a contract so far, each with the function's name in front.
func (c *Control) Violations() []string {
	for n := C.size_t(1 << 12); ; {
		text := (*C.char)(C.malloc(n))
		need := C.kf_violations(c.k, text, n)
		all := C.GoString(text)
		C.free(unsafe.Pointer(text))
		if need > n {
			n = need
			continue
		}
		if all == "" {
			return nil
		}
		return strings.Split(strings.TrimSuffix(all, "\n"), "\n")
	}
}

// Forget forgets the violations so far.
func (c *Control) Forget() { C.kf_forget(c.k) }

// Seed sets the order of work from now on; with 0 all happens as late as it can.
func (c *Control) Seed(seed uint64) { C.kf_seed(c.k, C.uint64_t(seed)) }

// Fault makes the nth call from now, from 1, of a function do nothing and return code. "*" is any function but those that every call of the
// wrapper makes around it. With sticky, every later call of that context returns the code too, and what was queued happens late or never.
func (c *Control) Fault(call string, nth int, code driver.Code, sticky bool) {
	s, f := C.CString(call), C.int(0)
	defer C.free(unsafe.Pointer(s))
	if sticky {
		f = 1
	}
	C.kf_fault(c.k, s, C.uint64_t(nth), C.int(code), f)
}

// FaultsLeft is how many faults have not happened; NoFaults takes those back.
func (c *Control) FaultsLeft() int { return int(C.kf_faults_left(c.k)) }

// NoFaults: see FaultsLeft.
func (c *Control) NoFaults() { C.kf_no_faults(c.k) }

// Calls is how often a function was called.
func (c *Control) Calls(call string) int {
	s := C.CString(call)
	defer C.free(unsafe.Pointer(s))
	return int(C.kf_calls(c.k, s))
}

// Pending is how many operations are queued, and Progress lets some of them happen, as chance has it: for who polls memory, not the driver.
func (c *Control) Pending() int { return int(C.kf_pending(c.k)) }

// Progress: see Pending.
func (c *Control) Progress(steps int) { C.kf_progress(c.k, C.uint32_t(steps)) }

// Devices sets how many devices there are, before driver.Open.
func (c *Control) Devices(n int) { C.kf_devices(c.k, C.uint64_t(n)) }

// Attribute sets what a device has, and Memory how much, after driver.Open.
func (c *Control) Attribute(ordinal int, a driver.Attribute, v int) {
	C.kf_attribute(c.k, C.int(ordinal), C.int(a), C.int(v))
}

// Memory: see Attribute.
func (c *Control) Memory(ordinal int, total uint64) {
	C.kf_memory(c.k, C.int(ordinal), C.uint64_t(total))
}

// Touch says that the host is about to read, or write, these bytes of pinned memory: a violation, and false, while queued work uses them.
func (c *Control) Touch(b []byte, writes bool) bool {
	if len(b) == 0 {
		return true
	}
	w := C.int(0)
	if writes {
		w = 1
	}
	return C.kf_touch(c.k, unsafe.Pointer(&b[0]), C.size_t(len(b)), w) == 0
}

// Raw calls a function of the driver as no wrapper would: parameters as words, without a context around it. The caller keeps its
// thread. Results go into cells.
func (c *Control) Raw(call string, args ...uint64) driver.Code {
	var a [11]C.uint64_t
	for i, v := range args {
		a[i] = C.uint64_t(v)
	}
	s := C.CString(call)
	defer C.free(unsafe.Pointer(s))
	return driver.Code(C.kf_raw(c.k, s, &a[0]))
}

// Cell is the address of a word outside of Go's memory, and Word what is in it. SetWord sets it.
func (c *Control) Cell(i int) uint64 { return uint64(uintptr(unsafe.Pointer(&c.k.cells[i]))) }

// Word: see Cell.
func (c *Control) Word(i int) uint64 { return uint64(c.k.cells[i]) }

// SetWord: see Cell.
func (c *Control) SetWord(i int, v uint64) { c.k.cells[i] = C.uint64_t(v) }
