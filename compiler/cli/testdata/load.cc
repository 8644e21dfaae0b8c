// Loads a program as kernels of a build are loaded, and runs its amk_main.
#include <stdio.h>
#include <stdlib.h>

extern "C" {
int cuInit(unsigned);
int cuModuleLoadDataEx(void**, const void*, unsigned, const int*, void**);
int cuModuleGetGlobal_v2(void**, size_t*, void*, const char*);
}

int main(int argc, char** argv) {
  FILE* file = argc > 1 ? fopen(argv[1], "rb") : nullptr;
  if (!file || fseek(file, 0, SEEK_END) != 0) return fprintf(stderr, "no program\n"), 2;
  const long bytes = ftell(file);
  rewind(file);
  void* image = malloc(bytes);
  if (fread(image, 1, bytes, file) != size_t(bytes)) return fprintf(stderr, "the program cannot be read\n"), 2;
  char why[256] = "";
  const int options[] = {5, 6};  // CU_JIT_ERROR_LOG_BUFFER and its size
  void* values[] = {why, reinterpret_cast<void*>(sizeof why)};
  void *module = nullptr, *begin = nullptr;
  if (cuModuleLoadDataEx(&module, image, 2, options, values) != 0 ||
      cuModuleGetGlobal_v2(&begin, nullptr, module, "amk_main") != 0)
    return fprintf(stderr, "the program cannot be loaded: %s\n", why), 2;
  free(image);
  return reinterpret_cast<int (*)(void*, int, char**)>(begin)(module, argc - 1, argv + 1);
}
