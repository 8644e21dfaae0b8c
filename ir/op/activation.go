package op

// activation declares the middle of an MLP without a gate: a function of each element. function computes it in the
// device runtime.
func activation(code int, name, function, doc string) *Spec {
	return declare(Spec{
		Code:      code,
		Name:      name,
		Doc:       doc,
		Pointwise: true,
		Kernel:    true,
		Finisher:  &Finisher{Func: function, Result: "act"},
		Forms:     []Form{{In: []Operand{{Name: "x", Shape: "[n*]"}}, Out: results("[n]"), Shape: asFirst}},
	})
}
