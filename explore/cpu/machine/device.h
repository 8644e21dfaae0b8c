// What the imaginary GPU says of itself.
#pragma once

#include <string>

#include "machine.h"

namespace machine {

struct Device {
  std::string name = "CPU";
  u32 arch = 90;  // compute capability, 10 * major + minor
  u32 sms = 4;
  u32 gpus = 1;  // that the blocks of a cooperative launch are on, as many on each: `sms` are of all
  u32 shared_per_block = 227 << 10;
  u32 shared_per_sm = 228 << 10;
  u32 threads_per_block = 1024;
  u32 registers = 65536;
  u32 l2_bytes = 50 << 20;
};
extern Device device;

// Takes what JSON says. Returns false, and what is wrong.
bool set_device(const char* json, std::string& why);

}  // namespace machine
