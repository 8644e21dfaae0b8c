package driver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// livePTX holds two kernels in a version of PTX that every driver for CUDA 12 or newer compiles. fill writes
// value + index to n words; its argument is a struct {out, value, n} by value. wait spins, at most 2^28 times, until
// a word of host memory is not zero, and adds 1 to the word after it.
const livePTX = `
.version 6.4
.target sm_75
.address_size 64
.visible .entry fill(.param .align 8 .b8 arg[16]) {
  .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<3>;
  ld.param.u64 %d0, [arg]; ld.param.u32 %r0, [arg+8]; ld.param.u32 %r1, [arg+12];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r4, %r2, %r3, %r4;
  setp.ge.u32 %p, %r4, %r1;
  @%p bra DONE;
  mul.wide.u32 %d1, %r4, 4; add.u64 %d1, %d0, %d1;
  add.u32 %r5, %r0, %r4; st.global.u32 [%d1], %r5;
DONE:
  ret;
}
.visible .entry wait(.param .u64 word, .param .u32 unused) {
  .reg .pred %p; .reg .b32 %r<3>; .reg .b64 %d;
  ld.param.u64 %d, [word]; mov.u32 %r0, 0;
LOOP:
  ld.volatile.global.u32 %r1, [%d];
  setp.ne.u32 %p, %r1, 0;
  @%p bra DONE;
  add.u32 %r0, %r0, 1;
  setp.lt.u32 %p, %r0, 268435456;
  @%p bra LOOP;
DONE:
  ld.volatile.global.u32 %r2, [%d+4]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%d+4], %r2;
  ret;
}
`

// TestLive runs against the machine's own driver and first GPU.
func TestLive(t *testing.T) {
	facts, err := Probe()
	if errors.Is(err, ErrNoDriver) || errors.Is(err, ErrNoDevice) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Logf("%+v", facts)
	n, err := Count()
	require.NoError(t, err)
	require.Len(t, facts, n)

	d, err := Open(0)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	free, total, err := d.MemInfo()
	require.NoError(t, err)
	t.Logf("%s free of %s", formatBytes(free), formatBytes(total))
	m, err := d.LoadFatbin([]byte(livePTX+"\x00"), Built{Targets: []string{"compute_75"}})
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)

	t.Run("copy", func(t *testing.T) { liveCopy(t, d) })
	t.Run("struct", func(t *testing.T) { liveFill(t, d, m, s) })
	t.Run("pinned", func(t *testing.T) { liveWait(t, d, m, s) })
	t.Run("errors", func(t *testing.T) {
		_, err := d.LoadFatbin([]byte(".version 99.0\n.target sm_75\n.address_size 64\n\x00"), Built{CUDA: 99000})
		t.Log(err)
		require.ErrorIs(t, err, ErrDriverTooOld)
		_, err = d.LoadFatbin([]byte(".version 6.4\n.target sm_75\n.address_size 64\nnonsense\n\x00"), Built{})
		t.Log(err)
		require.ErrorIs(t, err, ErrNoBinary)
		_, err = d.Alloc(int(total) * 2)
		t.Log(err)
		require.ErrorIs(t, err, ErrOutOfMemory)
		_, err = m.Function("missing")
		require.ErrorContains(t, err, "no kernel")
		_, err = Open(n)
		require.ErrorIs(t, err, ErrNoDevice)
	})
}

func liveCopy(t *testing.T, d *Device) {
	src := make([]byte, 3*stagingBytes+12345)
	for i := range src {
		src[i] = byte(i ^ i>>9)
	}
	p, err := d.Alloc(len(src))
	require.NoError(t, err)
	require.NoError(t, d.CopyHtoD(p, src, nil)) // makes the buffers
	start := time.Now()
	require.NoError(t, d.CopyHtoD(p, src, nil))
	up := time.Since(start)
	back := make([]byte, len(src))
	start = time.Now()
	require.NoError(t, d.CopyDtoH(back, p, nil))
	down := time.Since(start)
	require.True(t, bytes.Equal(src, back))
	size := float64(len(src)) / 1e9
	t.Logf("up %.1f GB/s, down %.1f GB/s", size/up.Seconds(), size/down.Seconds())
	require.NoError(t, d.Free(p))
}

func liveFill(t *testing.T, d *Device, m *Module, s *Stream) {
	const n = 5000
	k := function(t, m, "fill")
	t.Logf("parameter sizes known: %v %v", k.known, k.params)
	a, err := k.Attributes()
	require.NoError(t, err)
	t.Logf("%+v", a)
	blocks, err := k.Occupancy(256, 0)
	require.NoError(t, err)
	require.Positive(t, blocks)
	p, err := d.Alloc(4*n + 4)
	require.NoError(t, err)
	begin, err := d.NewEvent()
	require.NoError(t, err)
	end, err := d.NewEvent()
	require.NoError(t, err)
	require.NoError(t, s.MemsetD8(p, 0xFF, 4*n+4))
	le := binary.LittleEndian
	arg := le.AppendUint32(le.AppendUint32(le.AppendUint64(nil, uint64(p)), 1000), n)
	require.NoError(t, s.Record(begin))
	require.NoError(t, s.LaunchCooperative(k, Dim{X: (n + 255) / 256}, Dim{X: 256}, 0, arg))
	require.NoError(t, s.Record(end))
	require.NoError(t, s.Synchronize())
	ms, err := ElapsedMS(begin, end)
	require.NoError(t, err)
	require.Positive(t, ms)
	out := make([]byte, 4*n+4)
	require.NoError(t, d.CopyDtoH(out, p, nil))
	q, err := d.Alloc(4*n + 4)
	require.NoError(t, err)
	require.NoError(t, s.CopyDtoD(q, p, 4*n+4))
	require.NoError(t, s.Synchronize())
	again := make([]byte, len(out))
	require.NoError(t, d.CopyDtoH(again, q, nil))
	require.Equal(t, out, again)
	require.NoError(t, d.Free(q))
	for i := range n {
		require.Equal(t, uint32(1000+i), le.Uint32(out[4*i:]))
	}
	require.Equal(t, uint32(0xFFFFFFFF), le.Uint32(out[4*n:]))
	require.ErrorContains(t, s.LaunchCooperative(k, Dim{X: 1 << 20}, Dim{X: 1024}, 0, arg),
		"COOPERATIVE_LAUNCH_TOO_LARGE")
}

func liveWait(t *testing.T, d *Device, m *Module, s *Stream) {
	words, err := d.AllocPinned(8)
	require.NoError(t, err)
	k := function(t, m, "wait")
	require.NoError(t, s.Launch(k, Dim{}, Dim{}, 0, words.Ptr, uint32(0)))
	idle, err := s.Query()
	require.NoError(t, err)
	require.False(t, idle)
	require.Zero(t, words.Load32(4))
	words.Store32(0, 1)
	require.NoError(t, s.Synchronize())
	require.Equal(t, uint32(1), words.Load32(4))

	const rounds = 1000
	start := time.Now()
	require.NoError(t, d.Do(func() error {
		for range rounds {
			if err := s.Launch(k, Dim{}, Dim{}, 0, words.Ptr, uint32(0)); err != nil {
				return err
			}
		}
		return s.Synchronize()
	}))
	t.Logf("%v per launch, inside Do", time.Since(start)/rounds)
	start = time.Now()
	for range rounds {
		require.NoError(t, s.Launch(k, Dim{}, Dim{}, 0, words.Ptr, uint32(0)))
	}
	require.NoError(t, s.Synchronize())
	t.Logf("%v per launch, with a hop to the thread", time.Since(start)/rounds)
	require.Equal(t, uint32(1+2*rounds), words.Load32(4))
	require.NoError(t, words.Free())
}
