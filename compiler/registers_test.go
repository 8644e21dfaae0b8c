package compiler

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

func TestRegistersOfPtxas(t *testing.T) {
	text := `ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'amk_decode' for 'sm_90a'
ptxas info    : Function properties for amk_decode
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 16 bytes cumulative stack size
ptxas info    : Compiling entry function 'amk_ceiling' for 'sm_90a'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 90 registers, used 1 barriers
`
	require.Equal(t, []Registers{{"amk_decode", 168, 8, 12}, {"amk_ceiling", 90, 0, 0}}, parseRegisters(text))
	require.Empty(t, parseRegisters("Used 90 registers"))
}

func TestCountRegisters(t *testing.T) {
	if os.Getenv("AMKC_LONG") == "" || !CanCompileCUDA() {
		t.Skip("takes nvcc and a minute: AMKC_LONG=1")
	}
	target := ir.Targets[0]
	o := Options{Model: "../testdata/models/pycoder-5m", Name: "model", Target: &target}
	l, err := RunPasses(o)
	require.NoError(t, err)
	defer l.Close()
	e, err := Emit(l, o)
	require.NoError(t, err)
	kernels, err := CountRegisters(t.Context(), l, e, 0)
	require.NoError(t, err)
	registers := map[string]int{}
	for _, k := range kernels {
		registers[k.Kernel] = k.Registers
	}
	require.Positive(t, registers["amk_decode"])
}
