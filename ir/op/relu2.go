package op

var ReLU2 = activation(25, "RELU2", "relu2", "max(x, 0)².")
