package op

var KVAppend = declare(Spec{
	Code: 16,
	Name: "KV_APPEND",
	Doc: "x, to rows of a cache. Where the view that it writes is empty, nothing is done. Each dimension of that " +
		"view may have one element at some positions and none at others.",
	Kernel: true,
	Forms: []Form{{
		In:    []Operand{{Name: "x", Shape: "[n*]"}},
		Out:   []Operand{{Name: "rows", Shape: "[n], or empty", Role: Appended}},
		Shape: asFirst,
	}},
})
