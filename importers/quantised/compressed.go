package quantised

import (
	"strings"

	"amkc/importers/checkpoint"
	"amkc/ir/diag"
)

// readCompressed reads the config of compressed-tensors, which llm-compressor writes. The source is
// compressed_tensors/quantization/quant_config.py, quant_scheme.py and quant_args.py.
func readCompressed(scheme *Scheme, s *settings) {
	s.only("config_groups", "format", "ignore", "quant_method", "quantization_status", "global_compression_ratio",
		"kv_cache_scheme", "sparsity_config", "transform_config", "version", "run_compressed", "moe_sparsity_config")
	for _, field := range []string{"kv_cache_scheme", "moe_sparsity_config"} {
		if s.has(field) {
			s.fail(NotRead, field, "is not null, which is not modelled; accepted: null")
		}
	}
	for _, field := range []string{"sparsity_config", "transform_config"} {
		if t := s.within(field); t != nil && len(t.object.Keys()) > 0 && t.text("format", "") != "dense" {
			s.fail(NotRead, field, "is not empty, which is not modelled; accepted: {}")
		}
	}
	scheme.head = true // unless it is ignored
	format := s.text("format", "")
	scheme.skipped = s.modules("ignore")
	groups := s.within("config_groups")
	if groups == nil {
		s.fail(codeSetting, "config_groups", "is missing; want an object of groups, each with targets and weights")
		return
	}
	const most = 256 // each is asked of every module
	if n := len(groups.object.Keys()); n > most {
		s.fail(codeSetting, "config_groups", "has %d groups; want at most %d", n, most)
		return
	}
	for _, name := range groups.object.Keys() {
		group := groups.within(name)
		if group == nil {
			groups.fail(codeSetting, name, "is not an object; want one with targets and weights")
			return
		}
		group.only("targets", "weights", "input_activations", "output_activations", "format")
		if group.has("output_activations") {
			group.fail(NotRead, "output_activations", "is not null, which is not modelled; accepted: null")
		}
		scheme.Inputs = scheme.Inputs || group.has("input_activations")
		if weights := group.within("weights"); weights != nil {
			r := weights.compressed(group.text("format", format))
			r.targets = group.modules("targets")
			scheme.recipes = append(scheme.recipes, r)
		}
	}
}

// compressed reads the weights of a group.
func (s *settings) compressed(format string) recipe {
	s.only("num_bits", "type", "symmetric", "group_size", "strategy", "block_structure", "dynamic", "actorder",
		"scale_dtype", "zp_dtype", "observer", "observer_kwargs")
	if _, is := fourBitFloats[format]; is {
		return s.fourBits(format)
	}
	r := recipe{form: plainBytes, bits: s.integer("num_bits", 8, 1), rows: 1,
		float: strings.EqualFold(s.text("type", "int"), "float"), symmetric: s.truth("symmetric", true)}
	if format == "pack-quantized" {
		r.form = packedRows
	}
	switch {
	case r.form == packedRows && (r.float || r.bits != 4 && r.bits != 8):
		s.fail(NotRead, "num_bits", "%d bits of type %s are not read; accepted: 4 or 8 bits of type \"int\"", r.bits,
			checkpoint.Spell(s.text("type", "int")))
	case r.form == packedRows:
	case format != "int-quantized" && format != "float-quantized" && format != "naive-quantized":
		s.fail(NotRead, "format", "weights in format %s are not read; accepted: \"pack-quantized\", "+
			"\"int-quantized\", \"float-quantized\", \"naive-quantized\", \"nvfp4-pack-quantized\", "+
			"\"mxfp4-pack-quantized\"",
			checkpoint.Spell(format))
	case r.bits != 8 && r.float || r.bits > 8:
		s.fail(NotRead, "num_bits", "%d bits in format %s are not read; accepted: 8", r.bits, checkpoint.Spell(format))
	}
	if r.float && !r.symmetric {
		s.fail(NotRead, "symmetric", "is false, and type \"float\"; accepted: true")
	}
	absent := "tensor"
	if group := s.integer("group_size", -1, -1); s.has("group_size") {
		absent, r.group = "channel", max(group, 0)
		if group > 0 {
			absent = "group"
		}
	}
	switch strategy := strings.ToLower(s.text("strategy", absent)); strategy {
	case "tensor":
		r.rows, r.group = 0, 0
	case "channel":
		r.group = 0
	case "group":
		if r.group == 0 {
			s.fail(codeSetting, "group_size", "is missing, and the strategy is \"group\"; want a positive integer")
		}
	case "block":
		if block := s.integers("block_structure", 2); block != nil {
			r.rows, r.group = block[0], block[1]
		} else {
			s.fail(codeSetting, "block_structure",
				"is missing, and the strategy is \"block\"; want two positive integers")
		}
	default:
		s.fail(NotRead, "strategy", "is %s, which is not read; accepted: \"tensor\", \"channel\", \"group\", \"block\"",
			checkpoint.Spell(strategy))
	}
	return r
}

// openCompressed finds the tensors of a module in either form, nil if it has none.
func (o *opener) openCompressed(r *recipe) *diag.Diagnostic {
	packed, isPacked := o.tensor("weight_packed")
	plain, isPlain := o.tensor("weight")
	isPlain = isPlain && (plain.DType == i8 || plain.DType == e4m3)
	switch {
	case !isPacked && !isPlain:
		return nil
	case r == nil:
		return o.unsaid()
	case isPacked && r.form == nvfp4:
		o.takeIfThere("input_global_scale")
		return o.openNVFP4(r, packed, "weight_global_scale", true)
	case isPacked && r.form == mxfp4:
		o.takeIfThere("input_global_scale")
		return o.openPackedMXFP4(r, packed)
	case isPacked != (r.form == packedRows):
		return o.bad("is not stored in the format that quantization_config says")
	}
	m := &o.m
	if isPacked {
		shape, d := o.storedShape()
		if d != nil {
			return d
		}
		m.rows, m.cols = shape[0], shape[1]
		words := (m.cols*r.bits + 31) / 32
		if d := o.want(packed, "weight_packed", i32, m.rows, words); d != nil {
			return d
		}
		m.codes = wordRows{packed, r.bits, m.cols}
	} else {
		if len(plain.Shape) != 2 {
			return o.bad("has shape %v; want two dimensions", plain.Shape)
		}
		want := i8
		if r.float {
			want = e4m3
		}
		m.rows, m.cols = plain.Shape[0], plain.Shape[1]
		if d := o.want(plain, "weight", want, m.rows, m.cols); d != nil {
			return d
		}
		m.codes = byteRows{plain, m.cols}
	}
	if d := o.scales(r, "weight_scale"); d != nil {
		return d
	}
	if d := o.compressedZeros(r); d != nil {
		return d
	}
	o.takeIfThere("input_scale", "input_zero_point")
	return o.columnOrder("weight_g_idx")
}

// storedShape reads weight_shape, of a matrix whose columns are packed.
func (o *opener) storedShape() ([2]int, *diag.Diagnostic) {
	var shape [2]int
	t, ok := o.tensor("weight_shape")
	if !ok {
		return shape, o.bad("weight_shape is missing")
	}
	size := map[checkpoint.DType]int{i32: 4, i64: 8}[t.DType]
	if size == 0 || len(t.Shape) != 1 || t.Shape[0] != 2 {
		return shape, o.bad("weight_shape is %s %v; want two integers", t.DType, t.Shape)
	}
	raw := make([]byte, 2*size)
	if err := t.ReadPieces(raw, 0, len(raw), 0); err != nil {
		return shape, asDiagnostic(err)
	}
	for i := range shape {
		n := int64(0)
		for k := size - 1; k >= 0; k-- {
			n = n<<8 | int64(raw[i*size+k])
		}
		if n < 1 || n > mostColumns {
			return shape, o.bad("weight_shape has %d; want 1 to %d", n, mostColumns)
		}
		shape[i] = int(n)
	}
	return shape, nil
}

// compressedZeros finds zero points: packed along the rows where the elements are packed along the columns, else bytes
// in the order of the scales. Older files have those of symmetric matrices too.
func (o *opener) compressedZeros(r *recipe) *diag.Diagnostic {
	m := &o.m
	t, ok := o.tensor("weight_zero_point")
	if !ok {
		if !r.symmetric {
			return o.bad("weight_zero_point is missing, and quantization_config says that the matrix is not symmetric")
		}
		return nil
	}
	if r.form == packedRows && t.DType == i32 {
		if d := o.want(t, "weight_zero_point", i32, (m.rows*r.bits+31)/32, m.scales.cols); d != nil {
			return d
		}
		m.zeros = &wordZeros{t: t, bits: r.bits, cols: m.scales.cols}
	} else {
		if !m.scales.sameShape(t.Shape) || t.DType != i8 {
			return o.bad("weight_zero_point is %s %v; want I8 in the shape of weight_scale", t.DType, t.Shape)
		}
		m.zeros = &byteZeros{t: t, of: &m.scales}
	}
	m.Zeros = !r.symmetric
	return nil
}
