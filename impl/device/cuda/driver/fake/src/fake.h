/* A CUDA driver without a card, for tests: device memory is host memory, kernels run in the emulation, and each call's contract is checked. What
 * breaks a contract is recorded as a violation (control.cc), even where a real driver says nothing, and answered with the code that a
 * real one gives. Work is not done when it is queued: it is done as late as synchronisation allows, streams mixed at random (queue.cc), so that a
 * missing wait shows as old bytes.
 *
 * Stricter than a driver: only streams without the default stream's order; events are recorded before anyone waits for them; nothing that is
 * freed is in use by queued work; nothing is left when a context's last holder goes. Not modelled: speed, peer access between devices, memory
 * pools, managed memory, forks inside of captures, a card's reads of memory that a network card has written (see cuFlushGPUDirectRDMAWrites).
 *
 * One lock for all; the library keeps its state until the process ends. Read next: world.h, queue.cc, memory.cc. */
#ifndef KVF_FAKE_H
#define KVF_FAKE_H

#include <cstdint>

#include "table.h"

/* The functions of the driver, as the caller's table declares them. */
#define F(name, args, ...) extern "C" __attribute__((visibility("default"))) int name(__VA_ARGS__);
KD_PLAIN(F)
KD_IN_CONTEXT(F)
#undef F

namespace fake {

enum Code {
  GOOD = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  INVALID_DEVICE = 101,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  CANNOT_MAP = 205,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  NOT_READY = 600,
  ILLEGAL_ADDRESS = 700,
  CONTEXT_IS_DESTROYED = 709,
  ALREADY_REGISTERED = 712,
  NOT_REGISTERED = 713,
  MISALIGNED_ADDRESS = 716,
  LAUNCH_FAILED = 719,
  NOT_SUPPORTED = 801,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901,
  CAPTURE_UNMATCHED = 903,
  CAPTURE_ISOLATION = 905,
  CAPTURE_WRONG_THREAD = 908,
};

const uint64_t kGranularity = 2 << 20; /* of memory that processes share */
const uint64_t kPage = 4096;           /* of the host */
const int kFirstDevice = 0x100;        /* handle of device 0: a handle is no ordinal */

}  // namespace fake

#endif
