package op

var NOP = declare(Spec{
	Code:   0,
	Name:   "NOP",
	Doc:    "Does nothing.",
	Kernel: true,
	Forms:  []Form{{}},
})
