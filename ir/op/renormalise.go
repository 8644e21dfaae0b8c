package op

var RENORMALISE = declare(Spec{
	Code: 30,
	Name: "RENORMALISE",
	Doc: "x / Σ x, over the last dimension. Elements are added in their order, and extra after them; the sum is " +
		"taken for least where it is below that.",
	Params: []Param{{Key: "extra", Real: true, Sign: NotNegative, Doc: "added to the sum"},
		{Key: "least", Real: true, Sign: NotNegative, Doc: "a lower bound of the sum"}},
	Kernel: true,
	Forms:  []Form{{In: []Operand{{Name: "x", Shape: "[n*]"}}, Out: results("[n]"), Shape: asFirst}},
})
