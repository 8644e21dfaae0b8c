package quantised

import (
	"math"
	"strings"

	"amkc/importers/checkpoint"
	"amkc/importers/gguf"
	"amkc/ir/diag"
	"amkc/ir/format"
)

// This file reads NVFP4: elements of e2m1, of which the low half of a byte is the first, and for each 16 of them a
// scale in e4m3, times one of the whole matrix. compressed-tensors stores what scales are divided by, and ModelOpt what
// they are multiplied by. Elements are streamed as integers, twice their values, with half the scale in fp32: the
// product that libraries round once.

const nvfp4Group = 16

// nvfp4Recipe is how both store matrices of some modules.
func nvfp4Recipe(targets modules) recipe {
	return recipe{form: nvfp4, targets: targets, bits: 4, group: nvfp4Group, rows: 1, float: true, symmetric: true}
}

// fourBitFloats are the formats of compressed-tensors whose elements are e2m1: how their matrices are stored, and the
// strategy that their settings state.
var fourBitFloats = map[string]struct {
	recipe   recipe
	strategy string
}{
	"nvfp4-pack-quantized": {nvfp4Recipe(modules{}), "tensor_group"},
	"mxfp4-pack-quantized": {mxfp4Recipe, "group"},
}

// fourBits reads the weights of a group in one of these formats.
func (s *settings) fourBits(format string) recipe {
	of := fourBitFloats[format]
	for _, want := range []struct {
		field, absent, is string
	}{{"type", "", "float"}, {"strategy", of.strategy, of.strategy}} {
		if have := s.text(want.field, want.absent); !strings.EqualFold(have, want.is) {
			s.fail(NotRead, want.field, "is %s in format %q; accepted: %q", checkpoint.Spell(have), format, want.is)
		}
	}
	bits, group := s.integer("num_bits", 4, 1), s.integer("group_size", of.recipe.group, 1)
	if bits != 4 || group != of.recipe.group || !s.truth("symmetric", true) {
		s.fail(NotRead, "num_bits", "%d bits in groups of %d, symmetric %t, in format %q are not read; accepted: 4 "+
			"bits in groups of %d, symmetric true", bits, group, s.truth("symmetric", true), format, of.recipe.group)
	}
	return of.recipe
}

// readModelOpt reads the config of NVIDIA's ModelOpt.
func readModelOpt(scheme *Scheme, s *settings) {
	s.only("quant_method", "quant_algo", "config_groups", "ignore", "exclude_modules", "group_size", "producer",
		"kv_cache_scheme", "kv_cache_quant_algo")
	for _, field := range []string{"kv_cache_scheme", "kv_cache_quant_algo"} {
		if s.has(field) {
			s.fail(NotRead, field, "is not null, which is not modelled; accepted: null")
		}
	}
	if algo := s.text("quant_algo", ""); algo != "NVFP4" {
		s.fail(NotRead, "quant_algo", "is %s, which is not read; accepted: \"NVFP4\"", checkpoint.Spell(algo))
	}
	if group := s.integer("group_size", nvfp4Group, 1); group != nvfp4Group {
		s.fail(NotRead, "group_size", "is %d, which is not read; accepted: %d", group, nvfp4Group)
	}
	if groups := s.within("config_groups"); groups != nil {
		for _, name := range groups.object.Keys() {
			if of := groups.within(name); of != nil {
				scheme.Inputs = scheme.Inputs || of.has("input_activations")
				if w := of.within("weights"); w != nil && w.integer("group_size", nvfp4Group, 1) != nvfp4Group {
					w.fail(NotRead, "group_size", "is not %d, which is not read", nvfp4Group)
				}
			}
		}
	}
	scheme.head = true // unless it is ignored
	scheme.skipped = s.globs("ignore")
	for name := range s.globs("exclude_modules").names {
		scheme.skipped.names[name] = true
	}
	scheme.skipped.exprs = append(scheme.skipped.exprs, s.globs("exclude_modules").exprs...)
	scheme.recipes = []recipe{nvfp4Recipe(linears())}
}

// openModelOpt finds the tensors of a module.
func (o *opener) openModelOpt(r *recipe) *diag.Diagnostic {
	t, ok := o.tensor("weight")
	switch {
	case !ok || t.DType != u8:
		return nil
	case r == nil:
		return o.unsaid()
	}
	o.takeIfThere("input_scale")
	return o.openNVFP4(r, t, "weight_scale_2", false)
}

// openNVFP4 finds the scales of a matrix whose elements are in a tensor. One number of the matrix multiplies or divides
// them.
func (o *opener) openNVFP4(r *recipe, t checkpoint.Tensor, ofMatrix string, divides bool) *diag.Diagnostic {
	m := &o.m
	scales, d := o.packedFloats(r, t, e4m3)
	if d != nil {
		return d
	}
	m.codes = twiceRows{nibbleRows{t, m.cols}}
	one, ok := o.tensor(ofMatrix)
	switch {
	case !ok:
		return o.bad("%s is missing", ofMatrix)
	case one.DType != checkpoint.F32 || len(one.Shape) > 1 || len(one.Shape) == 1 && one.Shape[0] != 1:
		return o.bad("%s is %s %v; want one F32", ofMatrix, one.DType, one.Shape)
	}
	var number [1]float32
	if err := one.ReadF32(number[:], 0); err != nil {
		return asDiagnostic(err)
	}
	if !finite(number[0]) || number[0] <= 0 {
		return diag.Errorf(codeValues, "tensor "+one.Name, "is %g; want a finite number above 0", number[0])
	}
	g := grid{t: scales, dtype: checkpoint.F32, rowsEach: 1, rows: m.rows, cols: 1, ofMatrix: number[0],
		divides: divides}
	return o.grouped(&g, r)
}

// packedFloats checks a tensor with two elements of e2m1 in a byte, and finds the scales of their groups.
func (o *opener) packedFloats(r *recipe, t checkpoint.Tensor, scale checkpoint.DType) (checkpoint.Tensor,
	*diag.Diagnostic) {
	m := &o.m
	if len(t.Shape) != 2 || t.DType != u8 || t.Shape[1]%(r.group/2) != 0 {
		return t, o.bad("%s is %s %v; want U8 of rows of groups of %d", t.Name, t.DType, t.Shape, r.group)
	}
	m.rows, m.cols = t.Shape[0], 2*t.Shape[1]
	if m.rows > mostColumns || m.cols > mostColumns {
		return t, o.bad("has shape [%d %d]; want at most %d rows and columns", m.rows, m.cols, mostColumns)
	}
	scales, ok := o.tensor("weight_scale")
	if !ok {
		return t, o.bad("weight_scale is missing")
	}
	return scales, o.want(scales, "weight_scale", scale, m.rows, m.cols/r.group)
}

// twiceRows are rows of e2m1, of which twice the values are integers.
type twiceRows struct{ nibbleRows }

func (t twiceRows) read(dst []byte, row0, n int) error {
	if err := t.nibbleRows.read(dst, row0, n); err != nil {
		return err
	}
	for i, q := range dst {
		dst[i] = byte(gguf.TwiceE2M1[q])
	}
	return nil
}

// halvesOfE4M3 fills dst with half of what scales in e4m3 are, times or over the number of the matrix.
func (g *grid) halvesOfE4M3(dst []float32, row0 int) error {
	raw := make([]byte, len(dst))
	if err := g.t.ReadPieces(raw, row0*g.cols, len(raw), 0); err != nil {
		return err
	}
	for i, bits := range raw {
		scale := format.FromE4M3(bits)
		switch {
		case bits&0x7f == 0x7f:
			scale = float32(math.NaN())
		case g.divides:
			scale /= g.ofMatrix
		default:
			scale *= g.ofMatrix
		}
		dst[i] = scale / 2
	}
	return nil
}
