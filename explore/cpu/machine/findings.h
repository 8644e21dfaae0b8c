// What went wrong in a run. Each is reported once for each pair of places, until report_again().
#pragma once

#include <string>
#include <vector>

#include "machine.h"

namespace machine {

// A place in the code: a call site, or an instruction of a module. report() looks the module up, and
// keeps names that stay when it is unloaded.
struct CodePlace {
  Site site = {};
  const void* pc = nullptr;
  u32 block = 0, thread = 0;
  std::string module = {};
  u64 offset = 0;  // of the instruction in it
};

struct Report {
  const char* kind;  // one word of those below, or of the memory model
  std::string message;
  std::vector<CodePlace> places;
};

// Kinds of the machine itself.
constexpr const char* kCollectives = "collective";     // lanes of a warp do not meet
constexpr const char* kParticipants = "participants";  // a barrier with other threads than it is for
constexpr const char* kArrivals = "arrivals";    // more arrivals than a barrier counts, or bytes
constexpr const char* kBarriers = "barrier";     // a barrier that is none
constexpr const char* kCopies = "copy";          // a copy that is not aligned, or outlives its block
constexpr const char* kWide = "wgmma";           // one that is not fenced, or not waited for
constexpr const char* kStall = "stall";          // nobody can go on
constexpr const char* kEndless = "endless";      // more steps than a run may have
constexpr const char* kRoom = "room";            // more memory than the machine has
constexpr const char* kCrash = "crash";          // an access to memory that is not there

void report(const char* kind, std::string message, std::vector<CodePlace> places);
// One after which nothing can run: ends the launch.
[[noreturn]] void report_fatal(const char* kind, std::string message, std::vector<CodePlace> places);
// Where the thread that runs is.
CodePlace here(Site site);

const std::vector<Report>& reports();
// What has been reported is reported once more if it happens again: the host may leave out what was
// reported until now, as that of a launch that was aborted.
void report_again();
void clear_reports();

}  // namespace machine
