// Modules: shared objects that take the place of fat binaries.
#pragma once

#include <string>

#include "machine.h"

namespace machine {

struct Module;
struct Kernel {
  std::string name;
  void* function;
  int dynamic_shared = 48 << 10;
};

// Loads an image. On failure null, with what is wrong in `why`.
Module* load_module(const void* image, std::string& why);
void unload_module(Module* module);
Kernel* find_kernel(Module* module, const char* name);            // null: there is none
void* find_global(Module* module, const char* name, u64& bytes);  // likewise
bool is_in_module(const void* p, u64 bytes);
// Calls a kernel whose one parameter is a struct, with kParameterBytes, of which it takes the first.
constexpr u32 kParameterBytes = 1024;
void call_kernel(const Kernel& kernel, const void* parameters);

// The instruction of a loaded module whose address has these low bits. Null: there is none.
const void* instruction_at(u32 low);
// Which module an instruction is in, by its soname or else by its number, and where.
std::string module_of(const void* pc, u64& offset);

}  // namespace machine
