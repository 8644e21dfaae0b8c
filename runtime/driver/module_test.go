package driver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestModule(t *testing.T) {
	f := newFake(t)
	d := f.open(t, 64)
	m, err := d.LoadFatbin([]byte("xFAKE     ")[1:], Built{}) // at an odd address
	require.NoError(t, err)

	p, n, err := m.Global("variable")
	require.NoError(t, err)
	require.Equal(t, 16, n)
	require.NoError(t, d.CopyHtoD(p, make([]byte, n), nil))
	_, _, err = m.Global("other")
	require.ErrorContains(t, err, `the module has no variable "other": cuModuleGetGlobal`)
	_, err = m.Function("other")
	require.ErrorContains(t, err, `the module has no kernel "other": cuModuleGetFunction`)

	k := function(t, m, "by_args")
	require.NoError(t, k.SetMaxDynamicShared(200<<10))
	require.ErrorContains(t, k.SetMaxDynamicShared(228<<10), "(GPU 0 (Fake A) allows 232448 per block)")
	a, err := k.Attributes()
	require.NoError(t, err)
	require.Equal(t, Attributes{Registers: 104, Local: 103, Shared: 101, Constant: 102, MaxThreads: 100,
		MaxDynamic: 200 << 10, BinaryArch: 106, VirtualArch: 105}, a)
	blocks, err := k.Occupancy(512, 200<<10)
	require.NoError(t, err)
	require.Equal(t, 1, blocks)
	f.fail("cuFuncGetAttribute", 1, 3)
	_, err = k.Attributes()
	require.ErrorContains(t, err, "attribute 2 of kernel by_args")
	require.NoError(t, m.Close())
}

func TestLoadErrors(t *testing.T) {
	hopper := Built{Targets: []string{"sm_100a", "compute_100"}, CUDA: 13000}
	for _, c := range []struct {
		code    result
		built   Built
		version int
		kind    error
		text    string
	}{
		{errNoBinaryForGPU, hopper, 13000, ErrNoBinary,
			"the build is for sm_100a, compute_100, made with CUDA 13.0, and " +
				"GPU 0 (Fake A) is sm_90 with a driver for CUDA 13.0; build again for target sm_90"},
		{errNoBinaryForGPU, Built{}, 13000, ErrNoBinary, "the build is for an unknown target, and"},
		{errNoBinaryForGPU, hopper, 12040, ErrDriverTooOld, "supports CUDA 12.4, and CUDA 13.0 is needed"},
		{errInvalidImage, hopper, 13000, ErrNoBinary, "ptxas error: not a fake"},
		{errUnsupportedPTXVersion, Built{CUDA: 12080}, 12040, ErrDriverTooOld,
			"supports CUDA 12.4, and CUDA 12.8 is needed"},
		{errUnsupportedPTXVersion, Built{}, 12040, ErrDriverTooOld, "PTX of a newer one"},
		{errOutOfMemory, hopper, 13000, ErrOutOfMemory, "no room for the code"},
		{1, hopper, 13000, nil, "cuModuleLoadDataEx: CUDA_ERROR_INVALID_VALUE (1): invalid argument: ptxas " +
			"error: not a fake"},
	} {
		t.Run(fmt.Sprintf("%d/%d", c.code, c.version), func(t *testing.T) {
			d := newFake(t, fmt.Sprintf("-DFAKE_VERSION=%d", c.version)).open(t, 64)
			_, err := d.LoadFatbin(fmt.Appendf(nil, "%d\x00", c.code), c.built)
			require.ErrorContains(t, err, c.text)
			require.Equal(t, c.code, codeOf(err))
			if c.kind != nil {
				require.ErrorIs(t, err, c.kind)
			}
		})
	}
	d := newFake(t).open(t, 64)
	_, err := d.LoadFatbin(nil, hopper)
	require.ErrorContains(t, err, "empty")
}
