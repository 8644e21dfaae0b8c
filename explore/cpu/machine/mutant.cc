#include "mutant.h"

#include <cstring>

unsigned amk_mutant = 0;
unsigned amk_mutant_reached[machine::kMostMutantSites];

namespace machine {

void set_mutant(u32 number) {
  amk_mutant = number;
  memset(amk_mutant_reached, 0, sizeof amk_mutant_reached);
}

std::string reached_sites() {
  std::string text;
  for (u32 i = 0; i < kMostMutantSites; ++i) {
    if (amk_mutant_reached[i]) text += (text.empty() ? "" : ",") + std::to_string(i);
  }
  return "[" + text + "]";
}

}  // namespace machine
