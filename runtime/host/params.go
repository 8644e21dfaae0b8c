package host

import (
	"encoding/binary"

	"amkc/runtime/driver"
)

// launchParams is the argument of the kernels, amk::Launch (amk/launch.cuh). A zero pointer switches its feature off.
// Trace is where a traced kernel writes values, and the instrumented one its spans.
type launchParams struct {
	Weights, Cache, Exchange, Logits, Trace, Forced, Tokens, HostTokens, Abort, AbortDevice, Stalls, StopIDs driver.Ptr
	SpinLimitNS, FirstEpoch                                                                                  uint64
	Steps, Position, Token, NStop                                                                            int
}

// launchSize is sizeof(amk::Launch).
const launchSize = 8*14 + 4*4

// encode lays the struct out as the device compiler does.
func (p *launchParams) encode() []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, launchSize)
	for _, ptr := range []driver.Ptr{p.Weights, p.Cache, p.Exchange, p.Logits, p.Trace, p.Forced, p.Tokens,
		p.HostTokens,
		p.Abort, p.AbortDevice, p.Stalls, p.StopIDs} {
		b = le.AppendUint64(b, uint64(ptr))
	}
	b = le.AppendUint64(b, p.SpinLimitNS)
	b = le.AppendUint64(b, p.FirstEpoch)
	for _, v := range []int{p.Steps, p.Position, p.Token, p.NStop} {
		b = le.AppendUint32(b, uint32(int32(v)))
	}
	return b
}

// words lays token ids out as the kernel's int arrays.
func words(ids []int) []byte {
	b := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(int32(id)))
	}
	return b
}
