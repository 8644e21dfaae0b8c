package op

var GeluTanhMul = gated(22, "GELU_TANH_MUL", "gelu_tanh_mul",
	"gelu(gate) · up, where gelu is the tanh form, g/2 · (1 + tanh(√(2/π) · (g + 0.044715 · g³))). One operand "+
		"holds the two interleaved.")
