package ir

// Opcode names an operation. Names and codes are those of the AMK IR (IR specification, section 7; the registry in
// AutoMegaKernel 0.4.0 adds FUSED). Operands are views: the elements an op touches are exactly those its views name, so
// that a footprint needs no parameter beyond them.
type Opcode int

// What each op computes on its views. All arithmetic is float32. docs/ir.md has the shapes that each takes; [B,n]
// stands for B rows of n elements in a view of any rank.
const (
	NOP   Opcode = iota // nothing
	COPY                // out = in, element by element
	EMBED               // ids[B], table[V,n...] -> out[B,n]: row ids[i] of the table
	// x[B,n], w[n] -> x*rsqrt(mean(x²)+eps)*w                                  params eps
	RMSNORM
	LAYERNORM // x[B,n], w[n][, b[n]]                                                      params eps
	// x[B,K], W[n,K][, bias[n] | scales[n,g][, zeros[n,g]]] -> out[B,n] = x·Wᵀ   params [qdtype, group]
	GEMV
	GEMM             // as GEMV, for B > 1
	ATTENTION        // q[nh,hd], k[rows,nkv,hd], v[rows,nkv,hd][, k_row[hd], v_row[hd]] -> out    see AttentionParams
	ROPE             // x, inv_freq[hd/2] (order=1) or x[B,heads,hd], pos[B] (order=0)            see RopeParams
	SiluMul          // gate[n], up[n] -> silu(gate)*up; or one operand [2n] with the two interleaved
	GELU             // in -> gelu(in), the tanh form is not used
	ADD              // x, y -> x + y
	MUL              // x, y -> x * y; or x -> x * scale                                          params [scale]
	DEQUANT          // q[n,K], scales[n,g][, zeros[n,g]] -> (q - zero) * scale                   params qdtype, group
	SOFTMAX          // in[..., n] -> softmax over the last dimension
	ALLREDUCE        // sum of all operands, in operand order
	KVAppend         // row -> rows of the cache (the out view); a no-op when that view is empty
	ArgMax           // see ArgMaxParams
	AttentionCombine // partials of ATTENTION -> out                                              see CombineParams
	FUSED            // recipe of the AMK profile; native programs list the ops of a task instead
	numOpcodes
)

var opcodeNames = [...]string{"NOP", "COPY", "EMBED", "RMSNORM", "LAYERNORM", "GEMV_TILE", "GEMM_TILE",
	"ATTENTION_TILE", "ROPE",
	"SILU_MUL", "GELU", "ADD", "MUL", "DEQUANT", "SOFTMAX", "ALLREDUCE_SHARD", "KV_APPEND", "SAMPLE_ARGMAX",
	"ATTENTION_COMBINE", "FUSED"}

func (o Opcode) String() string { return enumName(opcodeNames[:], int(o)) }

// ParseOpcode returns the opcode with the given name.
func ParseOpcode(s string) (Opcode, error) {
	i, err := enumCode(opcodeNames[:], s, "opcode")
	return Opcode(i), err
}

// OpSpec is what an opcode accepts: operand counts (MaxIn < 0: no bound), the parameters it must have and those it
// may have.
type OpSpec struct {
	MinIn, MaxIn   int
	MinOut, MaxOut int
	Required       []string
	Optional       []string
}

// Attention parameters. The query view has n_heads heads and the key and value views n_kv_heads. With k_row and v_row,
// the row being appended takes part as an operand: it is the caller's position `row`, and belongs to the task whose
// share of the rows it falls into, (row/block) % parts == part; other tasks ignore it. flags=2 asks for the partial
// result (acc[hd], m, l) a head: acc is not divided by l, and m is the maximum of the scaled scores in natural units.
// A task with no row at all yields acc = 0, m = -Inf, l = 0.
var attentionOptional = []string{"flags", "row", "block", "part", "parts"}

// Ops is the registry: arity and parameters of every opcode as native programs use it.
var Ops = [numOpcodes]OpSpec{
	NOP:       {0, 0, 0, 0, nil, nil},
	COPY:      {1, 1, 1, 4, nil, nil},
	EMBED:     {2, 2, 1, 4, nil, nil},
	RMSNORM:   {2, 2, 1, 4, []string{"eps"}, nil},
	LAYERNORM: {2, 3, 1, 4, []string{"eps"}, nil},
	GEMV:      {2, 4, 1, 4, nil, []string{"qdtype", "group"}},
	GEMM:      {2, 4, 1, 4, nil, []string{"qdtype", "group"}},
	ATTENTION: {3, 5, 1, 4, []string{"head_dim", "n_heads", "n_kv_heads", "scale"}, attentionOptional},
	// order=1: x holds rotation pairs side by side; its first element is row `first` of a vector whose rows below
	// `limit` are rotated by angle pos*inv_freq[(row % head_dim)/2] and whose other rows pass through. order=0:
	// rotate-half on whole heads, with theta, position taken from the second operand (the AMK profile).
	ROPE:      {2, 2, 1, 4, []string{"head_dim", "order"}, []string{"first", "limit", "pos", "theta"}},
	SiluMul:   {1, 2, 1, 4, nil, nil},
	GELU:      {1, 1, 1, 4, nil, nil},
	ADD:       {2, 2, 1, 4, nil, nil},
	MUL:       {1, 2, 1, 4, nil, []string{"scale"}},
	DEQUANT:   {2, 3, 1, 4, []string{"qdtype", "group"}, nil},
	SOFTMAX:   {1, 1, 1, 4, nil, nil},
	ALLREDUCE: {1, 8, 1, 4, nil, nil},
	KVAppend:  {1, 1, 1, 1, nil, nil},
	// partial=1: logits[n] -> value[1], index[1], the index counted from `first`; where there is no number among them
	// it yields -Inf and the largest int32, which is no index. partial=0, two operands: values[m], indices[m] ->
	// index of the largest value. One operand: logits[n] -> index, one for each row of n; neither may be empty. Ties
	// go to the lowest index; where there is none it yields 0.
	ArgMax: {1, 2, 1, 4, nil, []string{"partial", "first"}},
	// splits=n: acc[n,1,w], ml[n,1,2] -> out[w], the split partials of w elements of one head. Without splits: every
	// operand is a whole partial [nh,hd+2] (the AMK profile), with head_dim and n_heads.
	AttentionCombine: {1, -1, 1, 4, nil, []string{"splits", "head_dim", "n_heads", "n_kv_heads"}},
	FUSED:            {1, 8, 1, 1, []string{"recipe"}, nil},
}
