package quantised

import (
	"amkc/importers/checkpoint"
	"amkc/ir/diag"
)

// readFP8 reads the config of transformers' FineGrainedFP8Config, which DeepSeek and Qwen publish.
func readFP8(scheme *Scheme, s *settings) {
	s.only("quant_method", "activation_scheme", "weight_block_size", "modules_to_not_convert", "modules_to_convert",
		"ignored_layers", "fmt", "scale_fmt", "dequantize", "expert_dtype")
	if fmt := s.text("fmt", "e4m3"); fmt != "e4m3" && fmt != "float8_e4m3fn" {
		s.fail(NotRead, "fmt", "is %s, which is not read; accepted: \"e4m3\", \"float8_e4m3fn\"",
			checkpoint.Spell(fmt))
	}
	if dtype := s.text("expert_dtype", "fp8"); dtype != "fp8" {
		s.fail(NotRead, "expert_dtype", "is %s, which is not read; accepted: \"fp8\"", checkpoint.Spell(dtype))
	}
	scheme.Inputs = true
	r := recipe{form: scaleInv, bits: 8, float: true, symmetric: true, targets: linears()}
	if _, stated := s.object.Get("weight_block_size"); !stated {
		r.rows, r.group = 128, 128
	} else if block := s.integers("weight_block_size", 2); block != nil {
		r.rows, r.group = block[0], block[1]
	}
	left := "modules_to_not_convert"
	if !s.has(left) {
		left = "ignored_layers" // what MiniMax calls them
	}
	scheme.recipes, scheme.loose = []recipe{r}, s.modules(left)
}

// openFP8 finds the tensors of a module.
func (o *opener) openFP8(r *recipe) *diag.Diagnostic {
	t, ok := o.tensor("weight")
	switch {
	case !ok || t.DType != e4m3:
		return nil
	case r == nil:
		return o.unsaid()
	case len(t.Shape) != 2:
		return o.bad("has shape %v; want two dimensions", t.Shape)
	}
	m := &o.m
	m.rows, m.cols = t.Shape[0], t.Shape[1]
	m.codes = byteRows{t, m.cols}
	o.takeIfThere("activation_scale")
	return o.scales(r, "weight_scale_inv")
}
