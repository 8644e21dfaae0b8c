package op

var GELU = activation(10, "GELU", "gelu",
	"x · Φ(x), where Φ is the distribution function of the normal distribution; not the tanh form.")
