package codegen

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// intTypes are the largest values of the integer types that constants are declared with. A size_t holds every int.
var intTypes = map[string]int{"int": math.MaxInt32, "unsigned": math.MaxUint32, "size_t": math.MaxInt}

// checkNumbers refuses programs with a number that the type of its constant cannot hold, and those where the device
// code would compute one: what verify reads back is then always what the program says.
func (b *builder) checkNumbers() error {
	lists := [][]field{b.d.Machine, b.d.Exchange, b.d.Scratch, {
		{Type: "float", Name: "model.eps", Value: hexFloat(b.p.Model.Eps)},
	}}
	for _, f := range b.p.Model.Sizes() {
		lists = append(lists, []field{{Type: "int", Name: "model." + f.Key, Value: itoa(f.Value)}})
	}
	for _, v := range b.d.Variants {
		lists = append(lists, []field{{Type: "int", Name: v.EndName, Value: itoa(v.End)}})
	}
	for _, r := range b.d.Rotations {
		for _, f := range []*field{r.RotatedPairs, r.Factor} {
			if f != nil {
				lists = append(lists, []field{*f})
			}
		}
	}
	for _, s := range b.d.Descriptors {
		lists = append(lists, s.Fields)
	}
	for _, f := range b.d.Functions {
		lists = append(lists, f.numbers)
	}
	for _, f := range slices.Concat(lists...) {
		if err := checkLiteral(f); err != nil {
			return err
		}
	}
	return b.checkProducts()
}

// checkLiteral refuses a constant whose literal is not its value. Constants that the preprocessor chooses are no
// literals.
func checkLiteral(f field) error {
	if f.Type == "float" {
		v, err := strconv.ParseFloat(strings.TrimSuffix(f.Value, "f"), 64)
		if err != nil || !ir.IsSingle(v) {
			return diag.Errorf(codeLimit, "program", "%s is %s in float32; want %s", f.Name, f.Value, ir.SingleWant)
		}
		return nil
	}
	most, isInt := intTypes[f.Type]
	n, err := strconv.ParseInt(f.Value, 10, 64)
	if isInt && err == nil && (n < 0 || n > int64(most)) {
		return diag.Errorf(codeLimit, "program", "%s is %d; want 0 to %d, what %s holds", f.Name, n, most, f.Type)
	}
	return nil
}

// checkProducts holds what amk/*.cuh computes in 32 bits to that. Bounds of single numbers leave room for all other
// products.
func (b *builder) checkProducts() error {
	m := &b.p.Model
	block := b.cacheBytes(16)
	if most := math.MaxInt32 / max(1, block) * 16; m.MaxSeq > most {
		return diag.Errorf(codeLimit, "program",
			"the cache of a kv head has %d positions; at most %d are supported for heads of %d elements (--max-seq %d)",
			m.MaxSeq, most, m.Most(ir.HeadDimOf), most)
	}
	for _, s := range b.d.Descriptors {
		d := &s.IR.Dist
		if grains := (d.Extent + max(1, d.Grain) - 1) / max(1, d.Grain); grains >= math.MaxUint32/max(1, d.SMs) {
			return diag.Errorf(codeLimit, "stage "+s.IR.Name, "%d grains over %d SMs; their product must be below %d",
				grains, d.SMs, math.MaxUint32)
		}
		if columns, most := b.columnsOf(s.IR), math.MaxInt32/32-32; columns > most {
			return diag.Errorf(codeLimit, "stage "+s.IR.Name,
				"%d columns; at most %d are supported, for a tile of 8 rows", columns, most)
		}
	}
	return nil
}
