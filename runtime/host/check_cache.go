package host

import (
	"encoding/binary"

	"amkc/runtime/driver"
)

// fillBytes is the period of the made-up cache: not a multiple of the size of any row, head or layer.
const fillBytes = 8<<20 - 4*1009

// setCache prepares the cache for decoding from a position on: rows that nothing decoded are made up, and without any
// the cache is cleared. Padding gets values too, finite ones; it is multiplied by zeros.
func (s *Session) setCache(position int) error {
	total := int(s.info.CacheBytes)
	if position == 0 {
		if err := s.stream.MemsetD8(s.mem.cache, 0, total); err != nil {
			return err
		}
		return s.stream.Synchronize()
	}
	pattern := madeUp(min(fillBytes, total), s.facts.Model.DType)
	for at := 0; at < total; at += len(pattern) {
		if err := s.dev.CopyHtoD(s.mem.cache+driver.Ptr(at), pattern[:min(len(pattern), total-at)], nil); err != nil {
			return err
		}
	}
	return nil
}

// madeUp returns elements of magnitude 1/8 to 1 and either sign.
func madeUp(n int, dtype string) []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, n+8)
	for i := uint64(0); len(b) < n; i++ {
		r := mix(i)
		exponent := uint32(r>>32) % 3
		switch dtype {
		case "F32":
			b = le.AppendUint32(b, uint32(r)&0x807FFFFF|(124+exponent)<<23)
		case "F16":
			b = le.AppendUint16(b, uint16(r)&0x83FF|uint16(12+exponent)<<10)
		default:
			b = le.AppendUint16(b, uint16(r)&0x807F|uint16(124+exponent)<<7)
		}
	}
	return b[:n]
}
