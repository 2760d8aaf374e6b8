/* Rows of abi_table.cc: field is empty for the struct itself. */
#ifndef KVF_EMULATION_ABI_TABLE_H
#define KVF_EMULATION_ABI_TABLE_H
#include <stddef.h>
struct AbiRow {
  const char *type, *field;
  size_t offset, size;
};
extern const AbiRow kAbi[];
extern const size_t kAbiRows;
#endif
