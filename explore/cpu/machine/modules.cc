#include "modules.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <memory>
#include <vector>

#include "sites.h"

namespace machine {

struct Module {
  void* handle = nullptr;
  int file = -1;  // open as long as it is loaded: the loader knows objects by their paths
  std::string name;
  ~Module() {
    if (handle) dlclose(handle);
    if (file >= 0) close(file);
  }
  uintptr_t begin = 0, end = 0;  // of what is mapped
  std::list<Kernel> kernels;
};

namespace {

std::vector<std::unique_ptr<Module>> modules;
u32 loads = 0;

// The size of an ELF image is the end of its section headers, or of what is loaded.
u64 image_bytes(const void* image) {
  const auto* header = static_cast<const Elf64_Ehdr*>(image);
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) return 0;
  const auto* at = static_cast<const u8*>(image);
  u64 end = header->e_shoff + u64(header->e_shnum) * header->e_shentsize;
  for (u32 i = 0; i < header->e_phnum; ++i) {
    const auto* p = reinterpret_cast<const Elf64_Phdr*>(at + header->e_phoff) + i;
    end = std::max<u64>(end, p->p_offset + p->p_filesz);
  }
  return end;
}

void describe(Module& m) {
  link_map* map = nullptr;
  if (dlinfo(m.handle, RTLD_DI_LINKMAP, &map) != 0) return;
  const char* strings = nullptr;
  u64 soname = 0;
  for (const ElfW(Dyn)* d = map->l_ld; d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(d->d_un.d_ptr);
    if (d->d_tag == DT_SONAME) soname = d->d_un.d_val;
  }
  if (strings && soname) m.name = strings + soname;
  m.begin = map->l_addr;
  struct Search {
    uintptr_t base, end;
  } search{map->l_addr, 0};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        if (info->dlpi_addr != s.base) return 0;
        for (u32 i = 0; i < info->dlpi_phnum; ++i) {
          const auto& p = info->dlpi_phdr[i];
          if (p.p_type == PT_LOAD) s.end = std::max<uintptr_t>(s.end, s.base + p.p_vaddr + p.p_memsz);
        }
        return 1;
      },
      &search);
  m.end = search.end;
}

// A kernel has one parameter, a struct by value that is larger than two registers: it lies on the
// stack, or a pointer refers to it, and more bytes after it do no harm.
struct Parameters {
  u64 words[kParameterBytes / 8];
};
}  // namespace

Module* load_module(const void* image, std::string& why) {
  const u64 bytes = image_bytes(image);
  if (!bytes) {
    why = "the image is not a 64-bit ELF file: kernels for libamkcpu.so are shared objects";
    return nullptr;
  }
  auto m = std::make_unique<Module>();
  m->file = memfd_create("amk-kernels", MFD_CLOEXEC);
  const auto* at = static_cast<const u8*>(image);
  for (u64 done = 0; done < bytes;) {
    const ssize_t n = write(m->file, at + done, bytes - done);
    if (n <= 0) {
      why = "the image could not be written to a memory file";
      return nullptr;
    }
    done += u64(n);
  }
  const std::string path = "/proc/self/fd/" + std::to_string(m->file);
  m->handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!m->handle) {
    const char* text = dlerror();
    why = text ? text : "the image could not be loaded";
    return nullptr;
  }
  m->name = "module " + std::to_string(loads++);
  describe(*m);
  modules.push_back(std::move(m));
  return modules.back().get();
}

void unload_module(Module* module) {
  for (auto m = modules.begin(); m != modules.end(); ++m) {
    if (m->get() != module) continue;
    modules.erase(m);
    forget_addresses();
    return;
  }
}

Kernel* find_kernel(Module* module, const char* name) {
  for (Kernel& k : module->kernels) {
    if (k.name == name) return &k;
  }
  void* function = dlsym(module->handle, name);
  if (!function) return nullptr;
  module->kernels.push_back({name, function});
  return &module->kernels.back();
}

void call_kernel(const Kernel& kernel, const void* parameters) {
  const auto function = reinterpret_cast<void (*)(Parameters)>(kernel.function);
  function(*static_cast<const Parameters*>(parameters));
}

void* find_global(Module* module, const char* name, u64& bytes) {
  void* p = dlsym(module->handle, name);
  if (!p) return nullptr;
  Dl_info info;
  const ElfW(Sym)* symbol = nullptr;
  if (!dladdr1(p, &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)), RTLD_DL_SYMENT) ||
      !symbol) {
    return nullptr;
  }
  bytes = symbol->st_size;
  return p;
}

bool is_in_module(const void* p, u64 bytes) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  for (const auto& m : modules) {
    if (at >= m->begin && at + bytes <= m->end) return true;
  }
  return false;
}

const void* instruction_at(u32 low) {
  for (const auto& m : modules) {
    const uintptr_t p = m->begin + u32(low - u32(m->begin));
    if (p < m->end) return reinterpret_cast<const void*>(p);
  }
  return nullptr;
}

std::string module_of(const void* pc, u64& offset) {
  const auto p = reinterpret_cast<uintptr_t>(pc);
  for (const auto& m : modules) {
    if (p < m->begin || p >= m->end) continue;
    offset = p - m->begin;
    return m->name;
  }
  offset = p;
  return "";
}

}  // namespace machine
