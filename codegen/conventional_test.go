package codegen

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// Buffers of one name are numbered, those that rules have named before the others, in time that does not grow with the
// square of how many there are.
func TestBuffersAreToldApart(t *testing.T) {
	n := &namer{p: &ir.Program{}}
	add := func(named bool, name string) {
		n.p.Buffers = append(n.p.Buffers, ir.Buffer{Name: name})
		n.names.Buffers, n.named = append(n.names.Buffers, name), append(n.named, named)
	}
	add(false, "x2")
	for range 3 {
		add(true, "x")
	}
	add(true, "y")
	const many = 30_000
	for range many {
		add(true, "z")
	}
	n.tellApart()
	require.Equal(t, []string{"x22", "x", "x2", "x3", "y", "z", "z2"}, n.names.Buffers[:7])
	require.Equal(t, "z"+itoa(many), n.names.Buffers[4+many])
}
