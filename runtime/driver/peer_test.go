package driver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEnablePeer(t *testing.T) {
	f := newFake(t)
	lib, gpus := f.library(t), make([]*Device, 2)
	for i := range gpus {
		var err error
		gpus[i], err = lib.open(i)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, gpus[i].Close()) })
	}
	one, other := gpus[0], gpus[1]
	require.NoError(t, one.EnablePeer(other))
	require.NoError(t, other.EnablePeer(one))
	f.fail("cuCtxEnablePeerAccess", int32(errPeerEnabled), 0)
	require.NoError(t, one.EnablePeer(other), "another session of the process has done it")
	f.peers(1)
	require.EqualError(t, one.EnablePeer(other), "GPUs that do not reach each other's memory: GPU 0 (Fake A) reaches "+
		"the memory of GPU 1 (Fake B) over a link without atomic operations, which PCIe is; choose GPUs that NVLink "+
		"joins: nvidia-smi topo -m shows them, and CUDA_VISIBLE_DEVICES chooses")
	f.peers(0)
	err := one.EnablePeer(other)
	require.ErrorIs(t, err, ErrNoPeer)
	require.ErrorContains(t, err, "GPU 0 (Fake A) cannot reach the memory of GPU 1 (Fake B)")
	f.peers(2)
	f.fail("cuCtxEnablePeerAccess", int32(errPeerUnsupported), 0)
	require.ErrorIs(t, one.EnablePeer(other), ErrNoPeer)
	f.fail("cuDeviceGetP2PAttribute", 1, 0)
	require.ErrorContains(t, one.EnablePeer(other), "cuDeviceGetP2PAttribute")
}
