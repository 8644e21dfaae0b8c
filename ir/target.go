package ir

import "slices"

// Target is a GPU described as data. Features are separate switches, so that a fallback can be chosen on a newer chip.
type Target struct {
	Name        string  `json:"name"`
	Arch        string  `json:"arch"`       // sm_90a
	SMs         int     `json:"sms"`        // streaming multiprocessors
	SMemOptin   int     `json:"smem_optin"` // bytes of shared memory one block can have
	L2Bytes     int     `json:"l2_bytes"`   //
	HBMBytes    int     `json:"hbm_bytes"`  //
	HBMGBs      float64 `json:"hbm_gbs"`    // data-sheet bandwidth, 10^9 bytes a second
	BulkCopy    bool    `json:"bulk_copy"`  // cp.async.bulk and mbarrier transactions (sm_90)
	AsyncCopy   bool    `json:"async_copy"` // cp.async (sm_80)
	TensorCores bool    `json:"mma16816"`   // mma.m16n8k16 for bf16 and fp16 (sm_80)
}

// RunsOnTensorCores reports whether matrix products of a dtype run on the tensor cores of the target.
func (t *Target) RunsOnTensorCores(d DType) bool { return t.TensorCores && d.Bits() == 16 }

// capability fills in the features that a compute capability has.
func capability(t Target, cc int) Target {
	t.BulkCopy, t.AsyncCopy, t.TensorCores = cc >= 90, cc >= 80, cc >= 80
	return t
}

// Targets are the GPUs amkc knows by name. Sizes are from the vendors' data sheets and the AMK target records; those of
// h200 were read off a device.
var Targets = []Target{
	capability(Target{Name: "a100", Arch: "sm_80", SMs: 108, SMemOptin: 166912, L2Bytes: 41943040, HBMBytes: 42949672960, HBMGBs: 1555}, 80),
	capability(Target{Name: "a10g", Arch: "sm_86", SMs: 80, SMemOptin: 101376, L2Bytes: 6291456, HBMBytes: 25769803776, HBMGBs: 600}, 86),
	capability(Target{Name: "b200", Arch: "sm_100", SMs: 148, SMemOptin: 232448, L2Bytes: 52428800, HBMBytes: 206158430208, HBMGBs: 8000}, 100),
	capability(Target{Name: "h100", Arch: "sm_90a", SMs: 132, SMemOptin: 232448, L2Bytes: 52428800, HBMBytes: 85899345920, HBMGBs: 3350}, 90),
	capability(Target{Name: "h200", Arch: "sm_90a", SMs: 132, SMemOptin: 232448, L2Bytes: 62914560, HBMBytes: 150754820096, HBMGBs: 4800}, 90),
	capability(Target{Name: "l4", Arch: "sm_89", SMs: 58, SMemOptin: 101376, L2Bytes: 50331648, HBMBytes: 25769803776, HBMGBs: 300}, 89),
	capability(Target{Name: "l40s", Arch: "sm_89", SMs: 142, SMemOptin: 101376, L2Bytes: 100663296, HBMBytes: 51539607552, HBMGBs: 864}, 89),
	capability(Target{Name: "rtx5090", Arch: "sm_120", SMs: 170, SMemOptin: 101376, L2Bytes: 100663296, HBMBytes: 34359738368, HBMGBs: 1792}, 120),
	capability(Target{Name: "t4", Arch: "sm_75", SMs: 40, SMemOptin: 65536, L2Bytes: 4194304, HBMBytes: 17179869184, HBMGBs: 320}, 75),
}

// FindTarget returns a copy of the target with the given name, or nil.
func FindTarget(name string) *Target {
	i := slices.IndexFunc(Targets, func(t Target) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	t := Targets[i]
	return &t
}

// ArchTarget describes a GPU of which only the architecture number (90 for sm_90) and the SM count are known.
func ArchTarget(cc, sms int) *Target {
	smem := map[int]int{75: 65536, 80: 166912, 86: 101376, 87: 166912, 89: 101376, 90: 232448, 100: 232448, 101: 232448, 103: 232448, 110: 232448, 120: 101376, 121: 101376}
	bytes, known := smem[cc]
	if !known || sms < 1 {
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
