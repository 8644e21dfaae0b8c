package op

import "fmt"

const xieluWeights = 4

var XIELU = declare(Spec{
	Code: 27,
	Name: "XIELU",
	Doc: "Of w = (p, n, beta, eps), as checkpoints have them: softplus(p) · x² + beta · x where x is above 0, and " +
		"else (beta + softplus(n)) · (expm1(min(x, eps)) − x) + beta · x.",
	Kernel:   true,
	Finisher: &Finisher{Func: "xielu", Result: "act", Shape: "Xielu", Weights: xieluWeights},
	Forms: []Form{{
		In:  []Operand{{Name: "x", Shape: "[n*]"}, {Name: "w", Shape: fmt.Sprintf("[%d]", xieluWeights), Role: Gain}},
		Out: results("[n]"),
		Shape: func(c *Call) (n, last int) {
			if w := c.In[1].N(); w != xieluWeights {
				c.Fail("w has %d elements, want %d", w, xieluWeights)
			}
			return asFirst(c)
		},
	}},
})
