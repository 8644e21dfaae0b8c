package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"amkc/ir/half"
)

// A Type is how a file stores the elements of a tensor: blocks of a fixed number of elements of a row.
type Type struct {
	Name     string
	Elements int // of a block
	Bytes    int // of a block
	decode   func(dst []float32, block []byte)
}

// RowBytes is the size of a row of n elements, a multiple of those of a block.
func (t *Type) RowBytes(n int) int64 { return int64(n/t.Elements) * int64(t.Bytes) }

// Decode fills dst, whole blocks, with the values of their bytes. What a block means is computed in float32, in the
// order of operations of gguf-py: the same bits.
func (t *Type) Decode(dst []float32, data []byte) {
	for len(dst) > 0 {
		t.decode(dst[:t.Elements], data[:t.Bytes])
		dst, data = dst[t.Elements:], data[t.Bytes:]
	}
}

const super = 256 // elements of the larger blocks

// types are those that are read, by their numbers in files.
var types = map[uint32]*Type{
	0:  {"F32", 1, 4, half.DecodeF32},
	1:  {"F16", 1, 2, half.DecodeF16},
	2:  {"Q4_0", 32, 18, decodeQ40},
	3:  {"Q4_1", 32, 20, decodeQ41},
	6:  {"Q5_0", 32, 22, decodeQ50},
	7:  {"Q5_1", 32, 24, decodeQ51},
	8:  {"Q8_0", 32, 34, decodeQ80},
	10: {"Q2_K", super, 84, decodeQ2K},
	11: {"Q3_K", super, 110, decodeQ3K},
	12: {"Q4_K", super, 144, decodeQ4K},
	13: {"Q5_K", super, 176, decodeQ5K},
	14: {"Q6_K", super, 210, decodeQ6K},
	20: {"IQ4_NL", 32, 18, decodeIQ4NL},
	23: {"IQ4_XS", super, 136, decodeIQ4XS},
	30: {"BF16", 1, 2, half.DecodeBF16},
	39: {"MXFP4", 32, 17, decodeMXFP4},
}

// others are the names of types that are not read.
var others = map[uint32]string{9: "Q8_1", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
	21: "IQ3_S", 22: "IQ2_S", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0",
	35: "TQ2_0", 40: "NVFP4", 41: "Q1_0"}

// typeOf is the type of a number, or nil.
func typeOf(number uint32) *Type { return types[number] }

func typeName(number uint32) string {
	if name := others[number]; name != "" {
		return name
	}
	return fmt.Sprintf("%d, which is not known", number)
}

// typeNames lists the types that are read, in the order of their numbers.
func typeNames() string {
	var names []string
	for number := range uint32(64) {
		if t := types[number]; t != nil {
			names = append(names, t.Name)
		}
	}
	return strings.Join(names, ", ")
}

// TypeNamed is the type of a name, or nil.
func TypeNamed(name string) *Type {
	for _, t := range types {
		if t.Name == name {
			return t
		}
	}
	return nil
}

func f16(b []byte) float32 { return half.FromF16(binary.LittleEndian.Uint16(b)) }

// nibbles calls each with the elements of a block of 32: low nibbles are its first half.
func nibbles(dst []float32, q []byte, value func(i int, q byte) float32) {
	for i, b := range q {
		dst[i], dst[i+len(q)] = value(i, b&15), value(i+len(q), b>>4)
	}
}

func decodeQ40(dst []float32, b []byte) {
	d := f16(b)
	nibbles(dst, b[2:], func(_ int, q byte) float32 { return d * float32(int(q)-8) })
}

func decodeQ41(dst []float32, b []byte) {
	d, m := f16(b), f16(b[2:])
	nibbles(dst, b[4:], func(_ int, q byte) float32 { return float32(d*float32(q)) + m })
}

// fifth is the highest of five bits of element i.
func fifth(bits []byte, i int) byte { return bits[i/8] >> (i % 8) & 1 << 4 }

func decodeQ50(dst []float32, b []byte) {
	d := f16(b)
	nibbles(dst, b[6:], func(i int, q byte) float32 { return d * float32(int(q|fifth(b[2:], i))-16) })
}

func decodeQ51(dst []float32, b []byte) {
	d, m := f16(b), f16(b[2:])
	nibbles(dst, b[8:], func(i int, q byte) float32 { return float32(d*float32(q|fifth(b[4:], i))) + m })
}

func decodeQ80(dst []float32, b []byte) {
	d := f16(b)
	for i := range dst {
		dst[i] = d * float32(int8(b[2+i]))
	}
}

// decodeQ2K has 16 groups of 16 elements, each with 4 bits of a scale and 4 of a minimum. Of 32 bytes, the lowest two
// bits are the first 32 of 128 elements, and so on.
func decodeQ2K(dst []float32, b []byte) {
	scales, qs, d, dmin := b[:16], b[16:80], f16(b[80:]), f16(b[82:])
	for i := range dst {
		s := scales[i/16]
		q := qs[i/128*32+i%32] >> (i % 128 / 32 * 2) & 3
		dst[i] = float32(float32(d*float32(s&15))*float32(q)) - float32(dmin*float32(s>>4))
	}
}

// decodeQ3K has 16 groups of 16 elements with scales of 6 bits. Elements are as in Q2_K, less 4 where a bit of the mask
// is not set.
func decodeQ3K(dst []float32, b []byte) {
	mask, qs, packed, d := b[:32], b[32:96], b[96:108], f16(b[108:])
	for i := range dst {
		q := int(qs[i/128*32+i%32] >> (i % 128 / 32 * 2) & 3)
		if mask[i%32]>>(i/32)&1 == 0 {
			q -= 4
		}
		dst[i] = float32(d*float32(ScaleOfQ3K(packed, i/16))) * float32(q)
	}
}

// ScaleOfQ3K is the scale of 6 bits of one of the 16 groups of Q3_K.
func ScaleOfQ3K(packed []byte, g int) int8 {
	return int8(packed[g%8]>>(g/8*4)&15|packed[8+g%4]>>(g/4*2)&3<<4) - 32
}

// ScaleAndMin are the 6 bits each of one of the 8 groups of Q4_K and Q5_K.
func ScaleAndMin(packed []byte, g int) (scale, least byte) {
	if g < 4 {
		return packed[g] & 63, packed[4+g] & 63
	}
	return packed[4+g]&15 | packed[g-4]>>2&48, packed[4+g]>>4 | packed[g]>>2&48
}

// fours decodes 8 groups of 32 elements with scales and minima, where high is what elements have above four bits.
func fours(dst []float32, b, qs []byte, high func(i int) byte) {
	d, dmin := f16(b), f16(b[2:])
	for g := range 8 {
		s, m := ScaleAndMin(b[4:16], g)
		scale, least := d*float32(s), dmin*float32(m)
		for k := range 32 {
			i := g*32 + k
			q := qs[g/2*32+k]>>(g%2*4)&15 | high(i)
			dst[i] = float32(scale*float32(q)) - least
		}
	}
}

func decodeQ4K(dst []float32, b []byte) {
	fours(dst, b, b[16:], func(int) byte { return 0 })
}

func decodeQ5K(dst []float32, b []byte) {
	fours(dst, b, b[48:], func(i int) byte { return b[16+i%32] >> (i / 32) & 1 << 4 })
}

// decodeQ6K has 16 groups of 16 elements with signed scales. Of 64 bytes, the low nibbles are the first 64 of 128
// elements; the two bits above them are as in Q2_K.
func decodeQ6K(dst []float32, b []byte) {
	low, high, scales, d := b[:128], b[128:192], b[192:208], f16(b[208:])
	for i := range dst {
		q := low[i/128*64+i%64]>>(i%128/64*4)&15 | high[i/128*32+i%32]>>(i%128/32*2)&3<<4
		dst[i] = float32(d*float32(int8(scales[i/16]))) * float32(int(q)-32)
	}
}

// Uneven are the values that the nibbles of IQ4 types stand for.
var Uneven = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

func decodeIQ4NL(dst []float32, b []byte) {
	d := f16(b)
	nibbles(dst, b[2:], func(_ int, q byte) float32 { return d * float32(Uneven[q]) })
}

func decodeIQ4XS(dst []float32, b []byte) {
	d, high := f16(b), binary.LittleEndian.Uint16(b[2:])
	for g := range 8 {
		scale := int(b[4+g/2]>>(g%2*4)&15) | int(high>>(2*g)&3)<<4
		dl := d * float32(scale-32)
		nibbles(dst[g*32:(g+1)*32], b[8+g*16:8+(g+1)*16], func(_ int, q byte) float32 {
			return dl * float32(Uneven[q])
		})
	}
}

// TwiceE2M1 are twice the values of a number of four bits.
var TwiceE2M1 = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// HalfOfE8M0 is half of a power of two, of which the first two are subnormal.
func HalfOfE8M0(exponent byte) float32 {
	if exponent < 2 {
		return math.Float32frombits(uint32(0x00200000) << exponent)
	}
	return math.Float32frombits(uint32(exponent-1) << 23)
}

func decodeMXFP4(dst []float32, b []byte) {
	d := HalfOfE8M0(b[0])
	nibbles(dst, b[1:], func(_ int, q byte) float32 { return d * float32(TwiceE2M1[q]) })
}

// spell prints a value for a message.
func spell(v Value) string {
	const most = 60
	switch v := v.(type) {
	case nil:
		return "missing"
	case string:
		if len(v) > most {
			v = v[:most] + "…"
		}
		return strconv.Quote(v)
	case *Array:
		return fmt.Sprintf("an array of %d", v.Len())
	}
	return fmt.Sprint(v)
}
