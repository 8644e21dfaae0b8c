package readback

import (
	"slices"

	"amkc/ir"
	"amkc/ir/format"
)

// enumerators are those of weight_format.cuh.
var enumerators = func() map[string]ir.DType {
	all := map[string]ir.DType{}
	for name, enum := range format.Enumerators {
		all[enum], _ = ir.ParseDType(name)
	}
	return all
}()

// readStorage takes how the matrix of a stage is stored, where the descriptor says that it is quantised.
func (b *builder) readStorage(d *descriptor) {
	const constant = "kWeights"
	r, s := &b.schedule, d.scope
	if s.byName[constant] == nil {
		return
	}
	v := r.take(s, constant, "WeightFormat", list).list
	const least, most = 4, 6
	if len(v) != least && len(v) != most {
		r.wrong(s, constant, "%d values; want an element type, the columns of a group, the type of scales, and "+
			"whether there are zero points, and for the last two whether there are minima, and steps", len(v))
		return
	}
	for len(v) < most {
		v = append(v, value{kind: boolean})
	}
	kinds := []valueKind{name, integer, name, boolean, boolean, boolean}
	is := slices.EqualFunc(v, kinds, func(v value, k valueKind) bool { return v.kind == k })
	element, isElement := enumerators[v[0].name]
	scale, isScale := enumerators[v[2].name]
	d.storage = ir.Storage{DType: element, Scales: ir.Scales{Group: v[1].n, DType: scale, Zeros: v[3].n == 1,
		Mins: v[4].n == 1, Steps: v[5].n == 1}}
	if !is || !isElement || !isScale || !d.storage.Quantised() || d.storage.Format() == nil {
		r.wrong(s, constant, "no format of quantised matrices; want those of weight_format.cuh that amkc packs")
		d.storage = ir.Storage{}
	}
}

// A matrixOf is the matrix that stages of a kind of layers read, or those of all layers.
type matrixOf struct {
	name string
	kind int
}

// storages notes how each matrix is stored. All stages that read one take it for the same; stages of several kinds of
// layers may not where the layers have a list of offsets.
func (b *builder) storages() {
	b.storage = map[matrixOf]ir.Storage{}
	listed, first := map[string]bool{}, map[string]*descriptor{}
	for _, c := range b.config.order {
		if w, known := b.weight(c.name); known && c.array {
			listed[w.Name] = true
		}
	}
	for _, d := range b.stages {
		at := d.body.Matrix(&d.Stage)
		if at == nil || *at == "" {
			continue
		}
		matrix := b.outside(d, *at)
		of := matrixOf{matrix, 0}
		if listed[matrix] {
			of.kind = d.kind
		}
		before, seen := b.storage[of]
		if seen && before != d.storage || listed[matrix] && first[matrix] != nil &&
			(d.kind == 0) != (first[matrix].kind == 0) {
			b.schedule.fail(d.at, "struct %s takes %s for another format than the stages before; want the same",
				d.scope.name, matrix)
		}
		if b.storage[of] = d.storage; first[matrix] == nil {
			first[matrix] = d
		}
	}
}
