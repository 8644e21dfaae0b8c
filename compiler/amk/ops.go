package amk

// An Op is an opcode; its value is the code on the device.
type Op uint8

const (
	Nop Op = iota
	Copy
	Embed
	RMSNorm
	LayerNorm
	GEMVTile
	GEMMTile
	AttentionTile
	RoPE
	SiluMul
	GELU
	Add
	Mul
	Dequant
	Softmax
	AllReduceShard
	KVAppend
	SampleArgmax
	AttentionCombine
	Fused
)

// An OpSpec is the arity of an opcode and the parameters that it cannot do without.
type OpSpec struct {
	MinInputs int
	MaxInputs int // -1: as many as the ABI holds
	Outputs   int
	Params    []string
}

var (
	opNames = []string{
		"NOP", "COPY", "EMBED", "RMSNORM", "LAYERNORM", "GEMV_TILE", "GEMM_TILE", "ATTENTION_TILE", "ROPE", "SILU_MUL",
		"GELU", "ADD", "MUL", "DEQUANT", "SOFTMAX", "ALLREDUCE_SHARD", "KV_APPEND", "SAMPLE_ARGMAX",
		"ATTENTION_COMBINE", "FUSED",
	}
	opSpecs = []OpSpec{
		Nop:              {0, 0, 0, nil},
		Copy:             {1, 1, 1, nil},
		Embed:            {2, 2, 1, []string{"hidden"}},
		RMSNorm:          {2, 2, 1, []string{"eps", "hidden"}},
		LayerNorm:        {2, 3, 1, []string{"eps", "hidden"}},
		GEMVTile:         {2, 3, 1, []string{"K", "N_tile", "n_off"}},
		GEMMTile:         {2, 3, 1, []string{"M_tile", "K", "N_tile", "n_off"}},
		AttentionTile:    {3, 4, 1, []string{"head_dim", "kv_start", "kv_len", "scale", "n_heads", "n_kv_heads"}},
		RoPE:             {2, 2, 1, []string{"head_dim", "theta"}},
		SiluMul:          {2, 2, 1, nil},
		GELU:             {1, 1, 1, nil},
		Add:              {2, 2, 1, nil},
		Mul:              {1, 2, 1, nil},
		Dequant:          {2, 3, 1, []string{"qdtype", "group"}},
		Softmax:          {1, 1, 1, nil},
		AllReduceShard:   {1, 8, 1, nil},
		KVAppend:         {2, 2, 1, []string{"pos"}},
		SampleArgmax:     {1, 1, 1, nil},
		AttentionCombine: {2, 8, 1, nil},
		Fused:            {1, -1, 1, []string{"recipe"}},
	}
)

func (o Op) String() string { return enumName(opNames, int(o)) }

// Spec returns the registry entry of the opcode, which must be one of the constants above. The result is shared: do
// not modify it.
func (o Op) Spec() OpSpec { return opSpecs[o] }

// A ParamType is how a parameter travels to the device.
type ParamType uint8

const (
	ParamInt32 ParamType = iota
	ParamFloat
)

// A ParamField is one scalar of the device's parameter block.
type ParamField struct {
	Name string
	Type ParamType
}

// ParamFields lists the parameter block in the order of its fields. A parameter that is not in it (FUSED's recipe) does
// not reach the device.
func ParamFields() []ParamField {
	return []ParamField{
		{"K", ParamInt32}, {"N", ParamInt32}, {"M", ParamInt32}, {"N_tile", ParamInt32}, {"M_tile", ParamInt32},
		{"n_off", ParamInt32}, {"m_off", ParamInt32}, {"hidden", ParamInt32}, {"vocab", ParamInt32},
		{"head_dim", ParamInt32}, {"n_heads", ParamInt32}, {"n_kv_heads", ParamInt32}, {"kv_start", ParamInt32},
		{"kv_len", ParamInt32}, {"pos", ParamInt32}, {"qdtype", ParamInt32}, {"group", ParamInt32},
		{"flags", ParamInt32}, {"dim", ParamInt32},
		{"eps", ParamFloat}, {"scale", ParamFloat}, {"theta", ParamFloat},
	}
}

// Bits of the flags parameter.
const (
	FlagCausal        = 1 << 0 // no opcode reads it
	FlagSplitKV       = 1 << 1 // ATTENTION_TILE writes the partial (acc, m, l) of its key range
	FusedPatternShift = 16     // bits 16 to 31: the pattern of a FUSED task
)
