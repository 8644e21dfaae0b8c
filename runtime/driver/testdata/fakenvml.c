// An NVML for tests: the two GPUs of fakecuda.c, seen at one moment that never changes. -DFAKE_OLD makes it one that knows
// the reasons by their name before driver 535 only; -DFAKE_TERSE one that tells as little as the library may.
// Build: cc -shared -fPIC -o libnvidia-ml.so.1 fakenvml.c
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int opened;

int nvmlInit_v2(void) { opened++; return 0; }
int nvmlShutdown(void) { return opened-- > 0 ? 0 : 1; }
int fake_opened(void) { return opened; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  if (!opened) return 1;
  if (strcmp(bus, "0000:0A:00.0") != 0) return 6;  // NVML_ERROR_NOT_FOUND
  *device = &opened;
  return 0;
}

int nvmlSystemGetDriverVersion(char* text, unsigned n) { snprintf(text, n, "580.1"); return 0; }

static int clocks(unsigned kind, unsigned sm, unsigned memory, unsigned* mhz) {
  if (kind != 1 && kind != 2) return 2;
  *mhz = kind == 1 ? sm : memory;
  return 0;
}

int nvmlDeviceGetClockInfo(void* device, unsigned kind, unsigned* mhz) { return clocks(kind, 1755, 3201, mhz); }

#ifdef FAKE_TERSE
enum { refused = 3 };  // NVML_ERROR_NOT_SUPPORTED
int nvmlDeviceGetMaxClockInfo(void* device, unsigned kind, unsigned* mhz) { return refused; }
int nvmlDeviceGetPowerUsage(void* device, unsigned* mw) { return refused; }
int nvmlDeviceGetEccMode(void* device, unsigned* current, unsigned* pending) { return refused; }
#else
int nvmlDeviceGetMaxClockInfo(void* device, unsigned kind, unsigned* mhz) { return clocks(kind, 1980, 3201, mhz); }
int nvmlDeviceGetPowerUsage(void* device, unsigned* mw) { *mw = 512500; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* mw) { *mw = 700000; return 0; }
int nvmlDeviceGetTemperature(void* device, unsigned sensor, unsigned* celsius) { *celsius = 61; return sensor ? 2 : 0; }
int nvmlDeviceGetEccMode(void* device, unsigned* current, unsigned* pending) { *current = 1; *pending = 0; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, uint64_t* reasons) { *reasons = 0x4; return 0; }
#ifndef FAKE_OLD
int nvmlDeviceGetCurrentClocksEventReasons(void* device, uint64_t* reasons) { *reasons = 0x204; return 0; }
#endif
#endif
