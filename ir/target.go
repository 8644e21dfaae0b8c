package ir

import (
	"maps"
	"slices"
	"strings"
)

// Target is a GPU described as data. Features are separate switches, so that a fallback can be chosen on a newer chip.
type Target struct {
	Name        string  `json:"name"`
	Arch        string  `json:"arch"`       // sm_90a
	SMs         int     `json:"sms"`        // streaming multiprocessors
	SMemOptin   int     `json:"smem_optin"` // bytes of shared memory one block can have
	L2Bytes     int     `json:"l2_bytes"`   //
	HBMBytes    int     `json:"hbm_bytes"`  //
	HBMGBs      float64 `json:"hbm_gbs"`    // data-sheet bandwidth, 10^9 bytes per second
	BulkCopy    bool    `json:"bulk_copy"`  // cp.async.bulk and mbarrier transactions (sm_90)
	AsyncCopy   bool    `json:"async_copy"` // cp.async (sm_80)
	TensorCores bool    `json:"mma16816"`   // mma.m16n8k16 for bf16 and fp16 (sm_80)
}

// MaxTargetSMs is the most multiprocessors that a target may have. The largest GPUs have about 200; a package of five
// such dies would still fit. It bounds what is computed for every SM, or for every pair of an SM and a task.
const MaxTargetSMs = 1024

// RunsOnTensorCores reports whether matrix products of a dtype run on the tensor cores of the target.
func (t *Target) RunsOnTensorCores(d DType) bool { return t.TensorCores && d.Bits() == 16 }

// capability fills in the features that a compute capability has.
func capability(t Target, cc int) Target {
	t.BulkCopy, t.AsyncCopy, t.TensorCores = cc >= 90, cc >= 80, cc >= 80
	return t
}

// FindTarget returns a copy of the target with the given name, or nil. Case, spaces, hyphens and underscores do not
// matter: RTX 4090 is rtx4090.
func FindTarget(name string) *Target {
	i := slices.IndexFunc(Targets, func(t Target) bool { return plainName(t.Name) == plainName(name) })
	if i < 0 {
		return nil
	}
	t := Targets[i]
	return &t
}

func plainName(name string) string {
	return strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(name))
}

// sharedMemory is the bytes of shared memory that a block can have, by compute capability: those that the kernel can
// be compiled for. CUDA C++ Programming Guide 13.0, technical specifications per compute capability.
var sharedMemory = map[int]int{75: 64 << 10, 80: 163 << 10, 86: 99 << 10, 87: 163 << 10, 89: 99 << 10, 90: 227 << 10,
	100: 227 << 10, 103: 227 << 10, 110: 227 << 10, 120: 99 << 10, 121: 99 << 10}

// Capabilities returns the compute capabilities (90 for sm_90) that ArchTarget knows, in order.
func Capabilities() []int { return slices.Sorted(maps.Keys(sharedMemory)) }

// ArchTarget describes a GPU of which only the architecture number (90 for sm_90) and the SM count are known. It
// returns nil for an architecture that amkc does not compile for, and if the number of SMs is not 1 to MaxTargetSMs.
func ArchTarget(cc, sms int) *Target {
	bytes, known := sharedMemory[cc]
	if !known || sms < 1 || sms > MaxTargetSMs {
		return nil
	}
	t := capability(Target{Name: archName(cc), Arch: archName(cc), SMs: sms, SMemOptin: bytes}, cc)
	return &t
}

func archName(cc int) string {
	name := "sm_" + itoa(cc)
	if cc == 90 {
		name += "a" // the only one whose kernels use architecture-specific instructions
	}
	return name
}
