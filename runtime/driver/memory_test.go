package driver

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutOfMemory(t *testing.T) {
	f := newFake(t)
	d := f.open(t, 64)
	_, err := d.Alloc(3 << 30)
	require.ErrorIs(t, err, ErrOutOfMemory)
	require.ErrorContains(t, err, "GPU 0 (Fake A) has 1.0 GiB of 4.0 GiB free, and 3.0 GiB were asked for")
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, Error{"cuMemAlloc", 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}, *e)
	require.False(t, IsSticky(err))
	for _, n := range []int{0, -1} {
		_, err = d.Alloc(n)
		require.ErrorContains(t, err, "must be positive")
		_, err = d.AllocPinned(n)
		require.ErrorContains(t, err, "must be positive")
	}
	require.NoError(t, d.Free(0))
}

// Sizes around the chunk size and its multiples: the fake copies late, so a buffer filled again too early shows.
func TestCopyRoundTrip(t *testing.T) {
	const chunk = 1000
	f := newFake(t)
	d := f.open(t, chunk)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 999, 1000, 1001, 1999, 2000, 2001, 3000, 7321} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			src, back := make([]byte, n), make([]byte, n)
			for i := range src {
				src[i] = byte(rng.Uint32())
			}
			p, err := d.Alloc(n)
			require.NoError(t, err)
			up, down := []int{}, []int{}
			require.NoError(t, d.CopyHtoD(p, src, func(done, total int) {
				require.Equal(t, n, total)
				up = append(up, done)
			}))
			require.True(t, bytes.Equal(src, hostView(p, n)))
			require.NoError(t, d.CopyDtoH(back, p, func(done, _ int) { down = append(down, done) }))
			require.True(t, bytes.Equal(src, back))

			want := []int{}
			for i := chunk; i < n; i += chunk {
				want = append(want, i)
			}
			want = append(want, n)
			require.Equal(t, want, up)
			require.Equal(t, want, down)
			require.NoError(t, d.Free(p))
		})
	}
	require.NoError(t, d.CopyHtoD(0, nil, func(int, int) { t.Error("progress of nothing") }))
}

// The host fills the second buffer before it waits for the first.
func TestCopyUsesBothBuffers(t *testing.T) {
	f := newFake(t)
	d := f.open(t, 16)
	p, err := d.Alloc(64)
	require.NoError(t, err)
	require.NoError(t, d.CopyHtoD(p, make([]byte, 64), nil)) // makes the buffers
	f.clear()
	require.NoError(t, d.CopyDtoH(make([]byte, 48), p, nil))
	require.Equal(t, []string{
		"cuMemcpyDtoHAsync", "cuEventRecord",
		"cuMemcpyDtoHAsync", "cuEventRecord", "cuEventSynchronize",
		"cuMemcpyDtoHAsync", "cuEventRecord", "cuEventSynchronize",
		"cuEventSynchronize", "cuStreamSynchronize",
	}, f.calls())
}

// Buffers are no larger than copies so far have filled: pinning memory takes long.
func TestBuffersGrowWithCopies(t *testing.T) {
	f := newFake(t)
	d := f.open(t, 64)
	p, err := d.Alloc(256)
	require.NoError(t, err)
	for _, c := range []struct{ bytes, first, second int }{
		{1, 1, 0}, {9, 16, 0}, {3, 16, 0}, {64, 64, 0}, {65, 64, 64}, {256, 64, 64}, {5, 64, 64},
	} {
		src, back := bytes.Repeat([]byte{byte(c.bytes)}, c.bytes), make([]byte, c.bytes)
		require.NoError(t, d.CopyHtoD(p, src, nil))
		require.NoError(t, d.CopyDtoH(back, p, nil))
		require.Equal(t, src, back)
		for i, want := range []int{c.first, c.second} {
			got := 0
			if buf := d.stage.slots[i].buf; buf != nil {
				got = len(buf.Bytes)
			}
			require.Equal(t, want, got, "buffer %d after %d bytes", i, c.bytes)
		}
	}
	require.Equal(t, 2, f.count(countPinned))
}

// An error in the middle is reported, and the next copy works.
func TestCopyErrors(t *testing.T) {
	f := newFake(t)
	d := f.open(t, 16)
	p, err := d.Alloc(64)
	require.NoError(t, err)
	for _, call := range []string{"cuStreamCreate", "cuMemHostAlloc", "cuMemHostGetDevicePointer", "cuEventCreate",
		"cuMemcpyHtoDAsync", "cuEventRecord", "cuEventSynchronize", "cuStreamSynchronize"} {
		f.fail(call, 1, 0)
		require.ErrorContains(t, d.CopyHtoD(p, make([]byte, 64), nil), call+": CUDA_ERROR_INVALID_VALUE")
		want := bytes.Repeat([]byte(call), 10)[:64]
		require.NoError(t, d.CopyHtoD(p, want, nil), call)
		require.Equal(t, want, hostView(p, 64))
		if call < "cuMemcpy" || call == "cuStreamCreate" { // while the buffers are being made: make them again
			d.stage.mu.Lock()
			require.NoError(t, d.stage.close())
			d.stage.mu.Unlock()
			require.Zero(t, f.count(countPinned)+f.count(countEvents)+f.count(countStreams))
		}
	}
}

func TestCopyParallel(t *testing.T) {
	src := make([]byte, 5<<20+3)
	for i := range src {
		src[i] = byte(i * 7 >> 3)
	}
	dst := make([]byte, len(src))
	copyParallel(dst, src)
	require.True(t, bytes.Equal(src, dst))
}

func TestMemsetAndCopies(t *testing.T) {
	f := newFake(t)
	d := f.open(t, 64)
	s, err := d.NewStream()
	require.NoError(t, err)
	p, err := d.Alloc(16)
	require.NoError(t, err)
	require.NoError(t, s.MemsetD8(p, 0xAB, 8))
	require.NoError(t, s.MemsetD32(p+8, 0x01020304, 2))
	idle, err := s.Query()
	require.NoError(t, err)
	require.False(t, idle)
	require.NoError(t, s.Synchronize())
	idle, err = s.Query()
	require.NoError(t, err)
	require.True(t, idle)
	require.Equal(t, []byte{0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 4, 3, 2, 1, 4, 3, 2, 1}, hostView(p, 16))
	require.NoError(t, s.CopyDtoD(p, p+8, 4))
	require.NoError(t, s.Synchronize())
	require.Equal(t, []byte{4, 3, 2, 1, 0xAB, 0xAB, 0xAB, 0xAB, 4, 3, 2, 1, 4, 3, 2, 1}, hostView(p, 16))
	require.NoError(t, s.Close())
	require.Zero(t, f.count(countStreams))
}

func TestPinned(t *testing.T) {
	f := newFake(t)
	d := f.open(t, 64)
	p, err := d.AllocPinned(64)
	require.NoError(t, err)
	require.Equal(t, make([]byte, 64), p.Bytes, "not cleared")
	p.Store32(12, 0xCAFEF00D)
	require.Equal(t, []byte{0x0D, 0xF0, 0xFE, 0xCA}, p.Bytes[12:16])
	require.Equal(t, []byte{0x0D, 0xF0, 0xFE, 0xCA}, hostView(p.Ptr+12, 4))
	copy(hostView(p.Ptr+60, 4), []byte{1, 0, 0, 0})
	require.Equal(t, uint32(1), p.Load32(60))
	require.Panics(t, func() { p.Load32(64) })
	require.NoError(t, p.Free())
	require.NoError(t, p.Free())
	require.NoError(t, (*Pinned)(nil).Free())
	require.Zero(t, f.count(countPinned))

	f.fail("cuMemHostAlloc", 2, 0)
	_, err = d.AllocPinned(4 << 20)
	require.ErrorContains(t, err, "4.0 MiB of pinned host memory: cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY")
}

func TestFormatBytes(t *testing.T) {
	require.Equal(t, "1023 bytes", formatBytes(1023))
	require.Equal(t, "1.5 KiB", formatBytes(1536))
	require.Equal(t, "139.8 GiB", formatBytes(150109880320))
}
