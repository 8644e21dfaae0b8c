package op

var NOP = declare(Spec{
	Name:   "NOP",
	Doc:    "Does nothing.",
	Kernel: true,
	Forms:  []Form{{}},
})
