package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// Targets are the GPUs amkc knows by name, by name. Shared memory follows from the compute capability (sharedMemory);
// the rest is from NVIDIA's publications, named above each record. A data sheet's GB of memory is taken as 2^30
// bytes, its GB/s as 10^9.
var Targets = []Target{
	// A100 datasheet and Ampere architecture whitepaper.
	capability(Target{Name: "a100", Arch: "sm_80", SMs: 108, SMemOptin: 163 << 10, L2Bytes: 40 << 20,
		HBMBytes: 40 << 30, HBMGBs: 1555}, 80),
	// A10 datasheet; the SMs as the driver of an A10G counts them.
	capability(Target{Name: "a10g", Arch: "sm_86", SMs: 80, SMemOptin: 99 << 10, L2Bytes: 6 << 20, HBMBytes: 24 << 30,
		HBMGBs: 600}, 86),
	// RTX A6000 datasheet; GA102 whitepaper for SMs and L2. Not the RTX 6000 Ada.
	capability(Target{Name: "a6000", Arch: "sm_86", SMs: 84, SMemOptin: 99 << 10, L2Bytes: 6 << 20, HBMBytes: 48 << 30,
		HBMGBs: 768}, 86),
	// DGX B200 datasheet (1,440 GB and 64 TB/s in eight); L2: Blackwell tuning guide; SMs as the driver counts them.
	capability(Target{Name: "b200", Arch: "sm_100", SMs: 148, SMemOptin: 227 << 10, L2Bytes: 126 << 20,
		HBMBytes: 180 << 30, HBMGBs: 8000}, 100),
	// GB200 superchip datasheet (372 GB and 16 TB/s in two); L2: Blackwell tuning guide; SMs as the driver counts them.
	capability(Target{Name: "gb200", Arch: "sm_100", SMs: 152, SMemOptin: 227 << 10, L2Bytes: 126 << 20,
		HBMBytes: 186 << 30, HBMGBs: 8000}, 100),
	// H100 datasheet and Hopper architecture whitepaper.
	capability(Target{Name: "h100", Arch: "sm_90a", SMs: 132, SMemOptin: 227 << 10, L2Bytes: 50 << 20,
		HBMBytes: 80 << 30, HBMGBs: 3350}, 90),
	// H200 datasheet; sizes read off a device.
	capability(Target{Name: "h200", Arch: "sm_90a", SMs: 132, SMemOptin: 227 << 10, L2Bytes: 60 << 20,
		HBMBytes: 150754820096, HBMGBs: 4800}, 90),
	// Jetson AGX Orin technical brief. The CPU shares the memory.
	capability(Target{Name: "jetson-orin", Arch: "sm_87", SMs: 16, SMemOptin: 163 << 10, L2Bytes: 4 << 20,
		HBMBytes: 64 << 30, HBMGBs: 204.8}, 87),
	// L4 datasheet and Ada architecture whitepaper.
	capability(Target{Name: "l4", Arch: "sm_89", SMs: 58, SMemOptin: 99 << 10, L2Bytes: 48 << 20, HBMBytes: 24 << 30,
		HBMGBs: 300}, 89),
	// L40 datasheet and Ada architecture whitepaper.
	capability(Target{Name: "l40", Arch: "sm_89", SMs: 142, SMemOptin: 99 << 10, L2Bytes: 96 << 20, HBMBytes: 48 << 30,
		HBMGBs: 864}, 89),
	// L40S datasheet and Ada architecture whitepaper.
	capability(Target{Name: "l40s", Arch: "sm_89", SMs: 142, SMemOptin: 99 << 10, L2Bytes: 96 << 20, HBMBytes: 48 << 30,
		HBMGBs: 864}, 89),
	// GA102 whitepaper. Not the 3090 Ti, which has 84 SMs.
	capability(Target{Name: "rtx3090", Arch: "sm_86", SMs: 82, SMemOptin: 99 << 10, L2Bytes: 6 << 20,
		HBMBytes: 24 << 30, HBMGBs: 936}, 86),
	// Ada architecture whitepaper. Not the 4080 SUPER, which has 80 SMs.
	capability(Target{Name: "rtx4080", Arch: "sm_89", SMs: 76, SMemOptin: 99 << 10, L2Bytes: 64 << 20,
		HBMBytes: 16 << 30, HBMGBs: 716.8}, 89),
	// Ada architecture whitepaper. Not the 4090 D, which has 114 SMs.
	capability(Target{Name: "rtx4090", Arch: "sm_89", SMs: 128, SMemOptin: 99 << 10, L2Bytes: 72 << 20,
		HBMBytes: 24 << 30, HBMGBs: 1008}, 89),
	// RTX Blackwell architecture whitepaper.
	capability(Target{Name: "rtx5080", Arch: "sm_120", SMs: 84, SMemOptin: 99 << 10, L2Bytes: 64 << 20,
		HBMBytes: 16 << 30, HBMGBs: 960}, 120),
	// RTX Blackwell architecture whitepaper.
	capability(Target{Name: "rtx5090", Arch: "sm_120", SMs: 170, SMemOptin: 99 << 10, L2Bytes: 96 << 20,
		HBMBytes: 32 << 30, HBMGBs: 1792}, 120),
	// T4 datasheet and Turing architecture whitepaper.
	capability(Target{Name: "t4", Arch: "sm_75", SMs: 40, SMemOptin: 64 << 10, L2Bytes: 4 << 20, HBMBytes: 16 << 30,
		HBMGBs: 320}, 75),
}

// Cards names the product that a record describes: some names are sold with several sizes of memory or chips.
var Cards = map[string]string{
	"a100":        "NVIDIA A100 SXM4, 40 GB",
	"a10g":        "NVIDIA A10G, 24 GB",
	"a6000":       "NVIDIA RTX A6000, 48 GB",
	"b200":        "NVIDIA B200, 180 GB",
	"gb200":       "NVIDIA GB200, one of its two GPUs, 186 GB",
	"h100":        "NVIDIA H100 SXM5, 80 GB",
	"h200":        "NVIDIA H200, 141 GB",
	"jetson-orin": "NVIDIA Jetson AGX Orin, 64 GB",
	"l4":          "NVIDIA L4, 24 GB",
	"l40":         "NVIDIA L40, 48 GB",
	"l40s":        "NVIDIA L40S, 48 GB",
	"rtx3090":     "NVIDIA GeForce RTX 3090, 24 GB",
	"rtx4080":     "NVIDIA GeForce RTX 4080, 16 GB",
	"rtx4090":     "NVIDIA GeForce RTX 4090, 24 GB",
	"rtx5080":     "NVIDIA GeForce RTX 5080, 16 GB",
	"rtx5090":     "NVIDIA GeForce RTX 5090, 32 GB",
	"t4":          "NVIDIA T4, 16 GB",
}

// unsupported are GPUs that amkc cannot compile for, by their architecture.
var unsupported = map[string]string{"v100": "sm_70", "p100": "sm_60"}

// Unsupported returns why amkc cannot compile for a GPU or an architecture (sm_70) that is not described here, in a
// sentence that begins with its name, or "" for unknown names.
func Unsupported(name string) (reason string, known bool) {
	subject, arch := strings.ToLower(name), strings.ToLower(name)
	if of, ok := unsupported[plainName(name)]; ok {
		subject, arch = plainName(name)+" is "+of+", which", of
	}
	digits, ok := strings.CutPrefix(arch, "sm_")
	cc, err := strconv.Atoi(digits)
	switch oldest := Capabilities()[0]; {
	case !ok || err != nil:
		return "", false
	case cc < oldest:
		return fmt.Sprintf("%s is below sm_%d, the oldest architecture that the kernel supports", subject, oldest), true
	case cc == 101:
		return subject + " is called sm_110 since CUDA 13", true
	}
	return "", false
}
