// Loads that sampling.cuh makes, for the CPU.
#pragma once

namespace amk {
template <class T> T load_constant(const T* p) { return *p; }
}  // namespace amk
