package modeltest

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A GGUFField is a field of a GGUF file: its value is a bool, string, uint32, int32, uint16, uint64, float32, []string,
// []int32, []float32 or []bool.
type GGUFField struct {
	Key   string
	Value any
}

// A GGUFTensor is a tensor of a GGUF file, its shape with the outermost dimension first.
type GGUFTensor struct {
	Name  string
	Type  uint32
	Shape []int
	Data  []byte
}

// GGUF returns the bytes of a GGUF file of version 3.
func GGUF(fields []GGUFField, tensors []GGUFTensor) []byte {
	const alignment = 32
	le := binary.LittleEndian
	b := le.AppendUint32([]byte("GGUF"), 3)
	b = le.AppendUint64(le.AppendUint64(b, uint64(len(tensors))), uint64(len(fields)))
	text := func(s string) { b = append(le.AppendUint64(b, uint64(len(s))), s...) }
	array := func(kind uint32, n int) { b = le.AppendUint64(le.AppendUint32(le.AppendUint32(b, 9), kind), uint64(n)) }
	for _, f := range fields {
		text(f.Key)
		switch v := f.Value.(type) {
		case uint16:
			b = le.AppendUint16(le.AppendUint32(b, 2), v)
		case uint32:
			b = le.AppendUint32(le.AppendUint32(b, 4), v)
		case int32:
			b = le.AppendUint32(le.AppendUint32(b, 5), uint32(v))
		case float32:
			b = le.AppendUint32(le.AppendUint32(b, 6), math.Float32bits(v))
		case bool:
			b = append(le.AppendUint32(b, 7), boolean(v))
		case string:
			b = le.AppendUint32(b, 8)
			text(v)
		case uint64:
			b = le.AppendUint64(le.AppendUint32(b, 10), v)
		case []string:
			array(8, len(v))
			for _, s := range v {
				text(s)
			}
		case []int32:
			array(5, len(v))
			for _, n := range v {
				b = le.AppendUint32(b, uint32(n))
			}
		case []float32:
			array(6, len(v))
			for _, x := range v {
				b = le.AppendUint32(b, math.Float32bits(x))
			}
		case []bool:
			array(7, len(v))
			for _, x := range v {
				b = append(b, boolean(x))
			}
		default:
			panic(fmt.Sprintf("field %s is a %T", f.Key, v))
		}
	}
	padded := func(n int) int { return (n + alignment - 1) / alignment * alignment }
	at := 0
	for _, t := range tensors {
		text(t.Name)
		b = le.AppendUint32(b, uint32(len(t.Shape)))
		for i := range t.Shape {
			b = le.AppendUint64(b, uint64(t.Shape[len(t.Shape)-1-i]))
		}
		b = le.AppendUint64(le.AppendUint32(b, t.Type), uint64(at))
		at += padded(len(t.Data))
	}
	for _, t := range tensors {
		b = append(b, make([]byte, padded(len(b))-len(b))...)
		b = append(b, t.Data...)
	}
	return b
}

func boolean(v bool) byte {
	if v {
		return 1
	}
	return 0
}
