package driver

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func loadFake(t *testing.T, d *Device) (*Module, *Stream) {
	t.Helper()
	m, err := d.LoadFatbin([]byte("FAKE    "), Built{})
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	return m, s
}

func function(t *testing.T, m *Module, name string) *Function {
	t.Helper()
	f, err := m.Function(name)
	require.NoError(t, err)
	return f
}

func TestLaunchStruct(t *testing.T) {
	f := newFake(t)
	d := f.open(t, 64)
	m, s := loadFake(t, d)
	arg := make([]byte, 49)[1:] // 48 bytes at an odd address
	for i := range arg {
		arg[i] = byte(i + 1)
	}
	require.NoError(t, s.LaunchCooperative(function(t, m, "by_struct"), Dim{X: 132}, Dim{X: 288}, 1<<16, arg))
	args, shape, cooperative := f.lastLaunch()
	require.Equal(t, arg, args)
	require.Equal(t, []int{132, 1, 1, 288, 1, 1, 1 << 16}, shape)
	require.True(t, cooperative)
}

func TestLaunchArguments(t *testing.T) {
	f := newFake(t)
	d := f.open(t, 64)
	m, s := loadFake(t, d)
	k := function(t, m, "by_args")
	require.NoError(t, s.Launch(k, Dim{2, 3, 4}, Dim{5, 6, 7}, 8,
		Ptr(0x1122334455667788), int32(-2), float32(1.5), int64(-3), uint32(9)))
	args, shape, cooperative := f.lastLaunch()
	le := binary.LittleEndian
	want := le.AppendUint64(nil, 0x1122334455667788)
	want = le.AppendUint32(want, 0xFFFFFFFE)
	want = le.AppendUint32(want, 0x3FC00000)
	want = le.AppendUint64(want, 0xFFFFFFFFFFFFFFFD)
	want = le.AppendUint32(want, 9)
	require.Equal(t, want, args)
	require.Equal(t, []int{2, 3, 4, 5, 6, 7, 8}, shape)
	require.False(t, cooperative)

	require.NoError(t, s.Launch(k, Dim{}, Dim{X: 32}, 0, uint64(1), uint32(2), []byte{1, 2, 3, 4}, float64(2),
		float32(0)))
	require.NoError(t, s.Launch(function(t, m, "no_args"), Dim{}, Dim{X: 32}, 0))
}

func TestLaunchRefusesArguments(t *testing.T) {
	f := newFake(t)
	d := f.open(t, 64)
	m, s := loadFake(t, d)
	for _, c := range []struct {
		kernel string
		args   []any
		text   string
	}{
		{"by_struct", []any{make([]byte, 47)}, "kernel by_struct, parameter 0: it is 48 bytes, and 47 were given"},
		{"by_struct", []any{make([]byte, 0)},
			"kernel by_struct, parameter 0: an empty []byte; a struct has at least one byte"},
		{"by_struct", nil, "kernel by_struct: it has 1 parameters, and 0 were given"},
		{"no_args", []any{int32(1)}, "kernel no_args: it has 0 parameters, and 1 were given"},
		{"by_args", []any{Ptr(1), 2, float32(0), int64(0), uint32(0)},
			"kernel by_args, parameter 1: a int; give a Ptr, " +
				"a sized integer of 32 or 64 bits, a float, or a struct as []byte"},
		{"by_args", []any{Ptr(1), int64(2), float32(0), int64(0), uint32(0)},
			"kernel by_args, parameter 1: it is 4 bytes, and 8 were given"},
	} {
		err := s.Launch(function(t, m, c.kernel), Dim{}, Dim{}, 0, c.args...)
		require.EqualError(t, err, c.text)
		var p *ParamError
		require.ErrorAs(t, err, &p)
	}
	require.NotContains(t, f.calls(), "cuLaunchKernel")
}

// Drivers before CUDA 12.4 do not tell the sizes of parameters: launching works, unchecked.
func TestLaunchWithoutParamInfo(t *testing.T) {
	f := newFake(t, "-DFAKE_NO_PARAM_INFO", "-DFAKE_VERSION=12000")
	d := f.open(t, 64)
	m, s := loadFake(t, d)
	arg := make([]byte, 48)
	arg[47] = 7
	require.NoError(t, s.Launch(function(t, m, "by_struct"), Dim{}, Dim{}, 0, arg))
	args, _, _ := f.lastLaunch()
	require.Equal(t, arg, args)
}

func TestLaunchErrors(t *testing.T) {
	f := newFake(t)
	d := f.open(t, 64)
	m, s := loadFake(t, d)
	k := function(t, m, "no_args")
	require.EqualError(t, s.LaunchCooperative(k, Dim{X: 265}, Dim{X: 1024}, 0),
		"kernel no_args with a grid of 265 × 1 × 1, blocks of 1024 × 1 × 1 and 0 bytes of shared memory: "+
			"cuLaunchCooperativeKernel: error 720")
	f.fail("cuLaunchKernel", int32(errIllegalAddress), 0)
	err := s.Launch(k, Dim{}, Dim{}, 0)
	require.True(t, IsSticky(err))
	require.NotContains(t, err.Error(), "no_args", "an earlier kernel failed, not this one")
}

func TestEvents(t *testing.T) {
	f := newFake(t)
	d := f.open(t, 64)
	_, s := loadFake(t, d)
	a, err := d.NewEvent()
	require.NoError(t, err)
	b, err := d.NewEvent()
	require.NoError(t, err)
	require.NoError(t, a.Synchronize()) // never recorded
	require.NoError(t, s.Record(a))
	require.NoError(t, s.Record(b))
	require.NoError(t, a.Synchronize())
	passed, err := a.Query()
	require.NoError(t, err)
	require.True(t, passed)
	passed, err = b.Query()
	require.NoError(t, err)
	require.False(t, passed)
	_, err = ElapsedMS(a, b)
	require.ErrorContains(t, err, "cuEventElapsedTime: error 600")
	require.NoError(t, s.Synchronize())
	ms, err := ElapsedMS(a, b)
	require.NoError(t, err)
	require.Equal(t, 1.5, ms)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	require.Zero(t, f.count(countEvents))
	f.fail("cuStreamQuery", 1, 0)
	_, err = s.Query()
	require.ErrorContains(t, err, "cuStreamQuery: CUDA_ERROR_INVALID_VALUE")
}
