/* The kernels of this repository by name. */
#include <cstring>

#include "machine.h"

#define KVF_EACH_KERNEL(X)            \
  X(kvf_digest, kvf_move_args)        \
  X(kvf_gather, kvf_move_args)        \
  X(kvf_scatter, kvf_move_args)       \
  X(kvf_convert, kvf_move_args)       \
  X(kvf_tagverify, kvf_verify_args)   \
  X(kvf_scrub, kvf_scrub_args)        \
  X(kvf_tagput, kvf_put_args)

#define KVF_DECLARE(name, args) extern "C" void name(const args a);
KVF_EACH_KERNEL(KVF_DECLARE)

namespace emu {

const Kernel *find_kernel(const char *name) {
#define KVF_ENTRY(name, args) {#name, sizeof(args), [](const void *p) { ::name(*(const args *)p); }},
  static const Kernel kernels[] = {KVF_EACH_KERNEL(KVF_ENTRY)};
  for (const Kernel &k : kernels) {
    if (strcmp(k.name, name) == 0) return &k;
  }
  return nullptr;
}

}  // namespace emu
