package readback

import (
	"slices"

	"amkc/ir"
)

// enumerators are those of weight_format.cuh.
var enumerators = map[string]ir.DType{"kFp32": ir.F32, "kFp16": ir.F16, "kBf16": ir.BF16, "kInt4": ir.I4,
	"kInt8": ir.I8, "kE4m3": ir.F8E4M3}

// readStorage takes how the matrix of a stage is stored, where the descriptor says that it is quantised.
func (b *builder) readStorage(d *descriptor) {
	const constant = "kWeights"
	r, s := &b.schedule, d.scope
	if s.byName[constant] == nil {
		return
	}
	v := r.take(s, constant, "WeightFormat", list).list
	if len(v) != 4 {
		r.wrong(s, constant, "%d values; want an element type, the columns of a group, the type of scales, and "+
			"whether there are zero points", len(v))
		return
	}
	kinds := []valueKind{name, integer, name, boolean}
	is := slices.EqualFunc(v, kinds, func(v value, k valueKind) bool { return v.kind == k })
	element, isElement := enumerators[v[0].name]
	scale, isScale := enumerators[v[2].name]
	d.storage = ir.Storage{DType: element, Scales: ir.Scales{Group: v[1].n, DType: scale, Zeros: v[3].n == 1}}
	if !is || !isElement || !isScale || !d.storage.Quantised() || d.storage.Format() == nil {
		r.wrong(s, constant, "no format of quantised matrices; want those of weight_format.cuh that amkc packs")
		d.storage = ir.Storage{}
	}
}

// storages notes how each matrix is stored. All stages that read one take it for the same.
func (b *builder) storages() {
	b.storage = map[string]ir.Storage{}
	seen := map[string]bool{}
	for _, d := range b.stages {
		matrix := d.matrix
		if d.body == embedBody || d.body == embedReplicatedBody {
			matrix = d.table
		}
		if matrix == "" {
			continue
		}
		matrix = b.outside(d, matrix)
		if seen[matrix] && b.storage[matrix] != d.storage {
			b.schedule.fail(d.at, "struct %s takes %s for another format than the stages before; want the same",
				d.scope.name, matrix)
		}
		if seen[matrix] = true; d.storage.Quantised() {
			b.storage[matrix] = d.storage
		}
	}
}
