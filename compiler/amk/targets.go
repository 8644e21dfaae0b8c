package amk

import "slices"

// targets are the GPUs that the profile knows, in its own order. Figures and notes are the profile's, wrong ones
// included (an A10G has 72 SMs in some machines): programs carry them, and a program must come back byte for byte.
var targets = []Target{
	{
		Name: "rtx5090", SMArch: 120, NumSMs: 82,
		SmemBytesPerSM: 102400, SmemBytesPerBlockOptin: 101376,
		RegsPerSM: 65536, MaxThreadsPerSM: 2048, MaxRegsPerThread: 255,
		L2Bytes: 67108864, HBMBytes: 25769803776,
		HBMBandwidthGBs: Float(896.0), FP16TFLOPS: Float(210.0), ClockGHz: Float(1.597), MeasuredBWGBs: Float(731.0),
		SupportsCooperative: true, WDDMTDR: true,
		Note: "Blackwell Laptop GB203, sm_120, 24GB, WDDM display GPU. THIS machine. measured_bw_gbs=731 via " +
			"eval/peak_bandwidth.py (D2D copy, best-boosted CUDA-event sample; median of three runs that read " +
			"753/731/633 GB/s as the SW power cap (throttle 0x4) modulates the 14001 MHz mem clock down to " +
			"~11001). The laptop part is power-limited so sustained HBM (~647-753 GB/s, ~731 representative) is " +
			"below the 896 desktop-spec figure, measured is the fair floor.",
	},
	{
		Name: "b200", SMArch: 100, NumSMs: 148,
		SmemBytesPerSM: 233472, SmemBytesPerBlockOptin: 232448,
		RegsPerSM: 65536, MaxThreadsPerSM: 2048, MaxRegsPerThread: 255,
		L2Bytes: 52428800, HBMBytes: 206158430208,
		HBMBandwidthGBs: Float(8000.0), FP16TFLOPS: Float(2250.0), ClockGHz: Float(1.86), MeasuredBWGBs: Float(0.0),
		SupportsCooperative: true, WDDMTDR: false,
		Note: "Datacenter Blackwell, HBM3e. Spec only.",
	},
	{
		Name: "h100", SMArch: 90, NumSMs: 132,
		SmemBytesPerSM: 233472, SmemBytesPerBlockOptin: 232448,
		RegsPerSM: 65536, MaxThreadsPerSM: 2048, MaxRegsPerThread: 255,
		L2Bytes: 52428800, HBMBytes: 85899345920,
		HBMBandwidthGBs: Float(3350.0), FP16TFLOPS: Float(989.0), ClockGHz: Float(1.98), MeasuredBWGBs: Float(3089.0),
		SupportsCooperative: true, WDDMTDR: false,
		Note: "Hopper SXM5, HBM3. MEASURED via Modal. measured_bw_gbs=3089 (STREAM triad, CUDA-event median≈peak, " +
			"clocks at max 1980/2619 MHz) = 92% of the 3350 spec.",
	},
	{
		Name: "a100", SMArch: 80, NumSMs: 108,
		SmemBytesPerSM: 167936, SmemBytesPerBlockOptin: 166912,
		RegsPerSM: 65536, MaxThreadsPerSM: 2048, MaxRegsPerThread: 255,
		L2Bytes: 41943040, HBMBytes: 42949672960,
		HBMBandwidthGBs: Float(1555.0), FP16TFLOPS: Float(312.0), ClockGHz: Float(1.41), MeasuredBWGBs: Float(1382.0),
		SupportsCooperative: true, WDDMTDR: false,
		Note: "Ampere SXM4 40GB, HBM2e. MEASURED via Modal. measured_bw_gbs=1382 (D2D copy, CUDA-event median≈peak," +
			" clocks at max 1410/1215 MHz) = 89% of the 1555 spec.",
	},
	{
		Name: "l4", SMArch: 89, NumSMs: 58,
		SmemBytesPerSM: 102400, SmemBytesPerBlockOptin: 101376,
		RegsPerSM: 65536, MaxThreadsPerSM: 1536, MaxRegsPerThread: 255,
		L2Bytes: 50331648, HBMBytes: 25769803776,
		HBMBandwidthGBs: Float(300.0), FP16TFLOPS: Float(242.0), ClockGHz: Float(2.04), MeasuredBWGBs: Float(0.0),
		SupportsCooperative: true, WDDMTDR: false,
		Note: "Ada L4 (sm_89), 24GB GDDR6, the dominant cloud INFERENCE GPU. Spec 300 GB/s. Low bandwidth => the " +
			"megakernel's per-tile cross-SM sync is a small fraction of the byte stream, so int8's ~0.5x weight " +
			"read beats cuBLAS bf16 here (measured via Modal).",
	},
	{
		Name: "t4", SMArch: 75, NumSMs: 40,
		SmemBytesPerSM: 65536, SmemBytesPerBlockOptin: 65536,
		RegsPerSM: 65536, MaxThreadsPerSM: 1024, MaxRegsPerThread: 255,
		L2Bytes: 4194304, HBMBytes: 17179869184,
		HBMBandwidthGBs: Float(320.0), FP16TFLOPS: Float(65.0), ClockGHz: Float(1.59), MeasuredBWGBs: Float(0.0),
		SupportsCooperative: true, WDDMTDR: false,
		Note: "Turing T4 (sm_75), 16GB GDDR6, the most-deployed cloud inference GPU. Spec 320 GB/s.",
	},
	{
		Name: "a10g", SMArch: 86, NumSMs: 80,
		SmemBytesPerSM: 102400, SmemBytesPerBlockOptin: 101376,
		RegsPerSM: 65536, MaxThreadsPerSM: 1536, MaxRegsPerThread: 255,
		L2Bytes: 6291456, HBMBytes: 25769803776,
		HBMBandwidthGBs: Float(600.0), FP16TFLOPS: Float(125.0), ClockGHz: Float(1.71), MeasuredBWGBs: Float(0.0),
		SupportsCooperative: true, WDDMTDR: false,
		Note: "Ampere A10G (sm_86, AWS), 24GB GDDR6, inference GPU. Spec 600 GB/s.",
	},
	{
		Name: "l40s", SMArch: 89, NumSMs: 142,
		SmemBytesPerSM: 102400, SmemBytesPerBlockOptin: 101376,
		RegsPerSM: 65536, MaxThreadsPerSM: 1536, MaxRegsPerThread: 255,
		L2Bytes: 100663296, HBMBytes: 51539607552,
		HBMBandwidthGBs: Float(864.0), FP16TFLOPS: Float(362.0), ClockGHz: Float(2.52), MeasuredBWGBs: Float(0.0),
		SupportsCooperative: true, WDDMTDR: false,
		Note: "Ada L40S (sm_89), 48GB GDDR6, current-gen datacenter INFERENCE flagship. Spec 864 GB/s " +
			"(mid-bandwidth: the bandwidth x size crossover law predicts int8 crosses cuBLAS only at larger " +
			"models ~7-13B, between A10G@600 and A100@1382). Shares sm_89 with L4 -> name-detected.",
	},
}

// Targets returns the GPUs that the profile knows.
func Targets() []Target { return slices.Clone(targets) }

// LookupTarget returns the target of that name, and whether there is one.
func LookupTarget(name string) (Target, bool) {
	for _, t := range targets {
		if t.Name == name {
			return t, true
		}
	}
	return Target{}, false
}

func targetNames() []string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Name
	}
	return names
}
