// Kernels that are compiled from mutated sources (package explore/mutant) ask which of their mutants
// is on, and count where they come. Must not know what a mutant is.
#pragma once

#include <string>

#include "machine.h"

namespace machine {

constexpr u32 kMostMutantSites = 1 << 14;  // mutant.mostSites of the generator

// Makes a mutant the one that is on, 0: none, and forgets where kernels have come.
void set_mutant(u32 number);
// Sites that kernels have come to, as a list of JSON.
std::string reached_sites();

}  // namespace machine

extern "C" {
extern unsigned amk_mutant;
extern unsigned amk_mutant_reached[machine::kMostMutantSites];
}
