package driver

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOneThreadForAllCalls(t *testing.T) {
	f := newFake(t)
	d := f.open(t, 4096)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				p, err := d.Alloc(64)
				require.NoError(t, err)
				require.NoError(t, d.CopyHtoD(p, make([]byte, 64), nil))
				_, _, err = d.MemInfo()
				require.NoError(t, err)
				require.NoError(t, d.Free(p))
			}
		})
	}
	wg.Wait()
	require.Equal(t, d.thread, f.count(countThread))
	require.Zero(t, f.count(countForeign))
	require.Zero(t, f.count(countAllocations))
}

func TestDoRunsInline(t *testing.T) {
	f := newFake(t)
	d := f.open(t, 4096)
	broken := errors.New("broken")
	require.ErrorIs(t, d.Do(func() error {
		require.Equal(t, d.thread, threadID())
		_, _, err := d.MemInfo() // would wait for itself if it hopped
		require.NoError(t, err)
		return broken
	}), broken)
	require.ErrorIs(t, d.Do(func() error { return d.CopyHtoD(0, make([]byte, 1), nil) }), errInsideDo)
	require.ErrorIs(t, d.Do(d.Close), errInsideDo)
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []struct {
		name, call string
		code       result
		kind       error
		text       string
	}{
		{"exclusive", "cuDevicePrimaryCtxRetain", errDeviceUnavailable, ErrUnavailable, "has it to itself"},
		{"full", "cuDevicePrimaryCtxRetain", errOutOfMemory, ErrOutOfMemory, "GPU 1 (Fake B) has no room"},
		{"unknown code", "cuDevicePrimaryCtxRetain", 888, nil, "cuDevicePrimaryCtxRetain: error 888"},
		{"current", "cuCtxSetCurrent", 1, nil, "cuCtxSetCurrent: CUDA_ERROR_INVALID_VALUE (1): invalid argument"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			lib := f.library(t)
			f.fail(c.call, int32(c.code), 0)
			_, err := lib.open(1)
			require.ErrorContains(t, err, c.text)
			if c.kind != nil {
				require.ErrorIs(t, err, c.kind)
			}
			require.Zero(t, f.count(countRetained), "a context was kept")
		})
	}
	f := newFake(t)
	for _, gpu := range []int{-1, 2} {
		_, err := f.library(t).open(gpu)
		require.ErrorIs(t, err, ErrNoDevice)
		require.ErrorContains(t, err, "choose one from 0 to 1")
	}
}

func TestClose(t *testing.T) {
	f := newFake(t)
	d, err := f.library(t).open(0)
	require.NoError(t, err)
	d.stage.size = 1024
	s, err := d.NewStream()
	require.NoError(t, err)
	p, err := d.Alloc(2048)
	require.NoError(t, err)
	require.NoError(t, d.CopyHtoD(p, make([]byte, 2048), nil))
	require.Equal(t, 2, f.count(countPinned))

	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	require.Zero(t, f.count(countRetained))
	require.Zero(t, f.count(countPinned))
	require.Zero(t, f.count(countEvents))
	require.Zero(t, f.count(countForeign))

	_, err = d.Alloc(8)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, s.Synchronize(), ErrClosed)
	require.ErrorIs(t, d.CopyHtoD(p, make([]byte, 8), nil), ErrClosed)
	require.ErrorIs(t, d.Do(func() error { return nil }), ErrClosed)
}

func TestCloseWhileOthersCall(t *testing.T) {
	f := newFake(t)
	d, err := f.library(t).open(0)
	require.NoError(t, err)
	d.stage.size = 64
	p, err := d.Alloc(4096)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				if err := d.CopyHtoD(p, make([]byte, 4096), nil); err != nil {
					require.ErrorIs(t, err, ErrClosed)
					return
				}
			}
		})
	}
	time.Sleep(5 * time.Millisecond)
	for range 2 {
		wg.Go(func() { require.NoError(t, d.Close()) })
	}
	wg.Wait()
	require.Zero(t, f.count(countRetained))
	require.Zero(t, f.count(countPinned))
}

func TestStickyErrors(t *testing.T) {
	f := newFake(t)
	d := f.open(t, 64) // the clean-up closes it, and must not fail
	s, err := d.NewStream()
	require.NoError(t, err)
	p, err := d.Alloc(64)
	require.NoError(t, err)
	require.NoError(t, d.CopyHtoD(p, make([]byte, 64), nil))
	f.sticky(int32(errIllegalAddress))
	err = s.Synchronize()
	require.True(t, IsSticky(err))
	require.EqualError(t, err, "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access "+
		"was encountered")
	require.True(t, IsSticky(d.CopyHtoD(p, make([]byte, 64), nil)))

	for _, code := range []int{700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 214, 220, 226} {
		require.True(t, IsSticky(&Problem{Kind: ErrUnavailable, Err: &Error{Code: code}}), code)
	}
	for _, code := range []int{1, 2, 100, 209, 500, 600, 701, 720, 999} {
		require.False(t, IsSticky(&Error{Code: code}), code)
	}
	require.False(t, IsSticky(nil))
	require.False(t, IsSticky(ErrClosed))
}
