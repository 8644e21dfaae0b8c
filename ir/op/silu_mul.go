package op

var SiluMul = gated(9, "SILU_MUL", "silu_mul",
	"silu(gate) · up, where silu(g) = g / (1 + exp(−g)). One operand holds the two interleaved.")
