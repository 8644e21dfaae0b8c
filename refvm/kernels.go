package refvm

import "amkc/ir"

// kernels computes each opcode; NOP computes nothing, FUSED is listed as its ops. Package ir/op says what they mean.
var kernels = [...]kernel{
	ir.NOP:              nop,
	ir.COPY:             copyElements,
	ir.EMBED:            embed,
	ir.RMSNORM:          rmsnorm,
	ir.LAYERNORM:        layernorm,
	ir.GEMV:             gemv,
	ir.GEMM:             gemv,
	ir.ATTENTION:        attention,
	ir.ROPE:             rope,
	ir.SiluMul:          siluMul,
	ir.GELU:             gelu,
	ir.ADD:              add,
	ir.MUL:              mul,
	ir.DEQUANT:          dequant,
	ir.SOFTMAX:          softmax,
	ir.ALLREDUCE:        allreduce,
	ir.KVAppend:         kvAppend,
	ir.ArgMax:           argmax,
	ir.AttentionCombine: attentionCombine,
}
