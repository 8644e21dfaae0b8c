package op

var GeluTanh = activation(23, "GELU_TANH", "gelu_tanh",
	"The tanh form of GELU, x/2 · (1 + tanh(√(2/π) · (x + 0.044715 · x³))).")
