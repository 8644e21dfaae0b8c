package op

var ReLU = activation(24, "RELU", "relu", "max(x, 0).")
