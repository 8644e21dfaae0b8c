package op

var SoftCap = declare(Spec{
	Code:      20,
	Name:      "SOFTCAP",
	Doc:       "cap · tanh(x / cap): nearly x where x is small compared with cap, and never beyond cap or −cap.",
	Params:    []Param{need(bound)},
	Pointwise: true,
	Kernel:    true,
	Finisher:  &Finisher{Func: "soft_cap", Result: "capped", Args: []string{"cap"}},
	Forms:     []Form{{In: []Operand{{Name: "x", Shape: "[n*]"}}, Out: results("[n]"), Shape: same}},
})
