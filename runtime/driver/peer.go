package driver

import (
	"errors"
	"fmt"
)

// ErrNoPeer is the kind of [Problem] of GPUs that cannot work together.
var ErrNoPeer = errors.New("GPUs that do not reach each other's memory")

// What cuDeviceGetP2PAttribute tells of a pair of GPUs: numbers of cuda.h.
const p2pNativeAtomics = 3

// joined is what to do about GPUs that do not reach each other.
const joined = "choose GPUs that NVLink joins: nvidia-smi topo -m shows them, and CUDA_VISIBLE_DEVICES chooses"

const (
	errPeerUnsupported result = 217
	errPeerEnabled     result = 704
)

// EnablePeer lets kernels of the device read and write the memory of another one at the addresses that this has there,
// and add to words of it. Where the hardware has no way to do so the error is [ErrNoPeer]. It ends when one of the two
// is closed.
func (d *Device) EnablePeer(peer *Device) error {
	return d.Do(func() error {
		api := &d.lib.api
		var can, atomics int32
		if err := d.lib.check("cuDeviceCanAccessPeer", api.CanAccessPeer(&can, d.handle, peer.handle)); err != nil {
			return err
		}
		if can == 0 {
			return &Problem{Kind: ErrNoPeer, What: fmt.Sprintf("%s cannot reach the memory of %s", d, peer),
				Remedy: joined + "; in a virtual machine, peer access may be switched off"}
		}
		if err := d.lib.check("cuDeviceGetP2PAttribute",
			api.P2PAttribute(&atomics, p2pNativeAtomics, d.handle, peer.handle)); err != nil {
			return err
		}
		if atomics == 0 {
			return &Problem{Kind: ErrNoPeer, What: fmt.Sprintf("%s reaches the memory of %s over a link without "+
				"atomic operations, which PCIe is", d, peer), Remedy: joined}
		}
		err := d.lib.check("cuCtxEnablePeerAccess", api.EnablePeer(peer.context, 0))
		switch codeOf(err) {
		case errPeerEnabled: // by another session of this process
			return nil
		case errPeerUnsupported:
			return &Problem{Kind: ErrNoPeer, What: fmt.Sprintf("%s cannot reach the memory of %s", d, peer),
				Remedy: joined, Err: err}
		}
		return err
	})
}
