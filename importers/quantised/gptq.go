package quantised

import (
	"strings"

	"amkc/importers/checkpoint"
	"amkc/ir/diag"
)

// readGPTQ reads the config of AutoGPTQ, GPTQModel and transformers' GPTQConfig. The sources are
// gptqmodel/quantization/config.py and transformers/utils/quantization_config.py.
func readGPTQ(scheme *Scheme, s *settings) {
	s.only("bits", "group_size", "desc_act", "sym", "quant_method", "checkpoint_format", "format", "dynamic",
		"pack_dtype", "is_marlin_format", "method", "quantizer", "version", "lm_head",
		// How the numbers were found, and how others run them.
		"damp_percent", "damp_auto_increment", "static_groups", "true_sequential", "act_group_aware", "mse", "meta",
		"model_name_or_path", "model_file_base_name", "dataset", "tokenizer", "batch_size", "pad_token_id",
		"block_name_to_quantize", "cache_block_outputs", "disable_exllama", "exllama_config", "max_input_length",
		"model_seqlen", "module_name_preceding_first_block", "modules_in_block_to_quantize", "use_cuda_fp16",
		"use_exllama", "backend", "offload_to_disk", "offload_to_disk_path", "parallel_packing", "uuid", "device",
		"calibration", "auto_forward_data_parallel", "hyb_act", "failsafe", "fallback", "gptaq", "foem", "adapter",
		"process", "pack_impl", "desc_act_order", "wait_for_submodule_finalizers", "vram_strategy", "moe", "hessian",
		"compute_device_filter", "dense_vram_strategy", "dense_vram_strategy_devices", "moe_vram_strategy",
		"moe_vram_strategy_devices", "gc_mode", "rotation", "activation", "preprocessors", "v2",
		"v2_alpha")
	for _, field := range []string{"adapter", "rotation", "activation"} {
		if s.has(field) {
			s.fail(NotRead, field, "is %s, which is not modelled; accepted: null", s.spelt(field))
		}
	}
	if s.truth("is_marlin_format", false) {
		s.fail(NotRead, "is_marlin_format", "is true; accepted: false")
	}
	scheme.head = s.truth("lm_head", false)
	r := recipe{form: gptq, rows: 1}
	format := s.text("checkpoint_format", s.text("format", "gptq"))
	switch strings.ToLower(format) {
	case "gptq":
	case "gptq_v2":
		r.form = gptq2
	default:
		s.fail(NotRead, "checkpoint_format", "is %s, which is not read; accepted: \"gptq\", \"gptq_v2\"",
			checkpoint.Spell(format))
	}
	if pack := s.text("pack_dtype", "int32"); pack != "int32" {
		s.fail(NotRead, "pack_dtype", "is %s, which is not read; accepted: \"int32\"", checkpoint.Spell(pack))
	}
	r.symmetric = true
	s.gptqRecipe(&r, true)
	if dynamic := s.within("dynamic"); dynamic != nil {
		for _, text := range dynamic.object.Keys() {
			dynamic.gptqModules(scheme, text, r)
		}
	}
	r.targets = linears()
	scheme.recipes = append(scheme.recipes, r)
}

// gptqRecipe reads the fields that a matrix may have of its own.
func (s *settings) gptqRecipe(r *recipe, mandatory bool) {
	if mandatory || s.has("bits") {
		r.bits = s.integer("bits", 0, 1)
	}
	if mandatory || s.has("group_size") {
		r.group = max(0, s.integer("group_size", 128, -1))
	}
	r.symmetric = s.truth("sym", r.symmetric)
	if r.bits != 4 && r.bits != 8 {
		s.fail(NotRead, "bits", "is %d, which is not read; accepted: 4, 8", r.bits)
	}
}

// gptqModules reads an entry of dynamic: an expression for modules that are not quantised, or otherwise than the rest.
func (s *settings) gptqModules(scheme *Scheme, text string, rest recipe) {
	if expr, skip := strings.CutPrefix(text, "-:"); skip {
		scheme.skipped.exprs = append(scheme.skipped.exprs, s.expression(text, expr)...)
		return
	}
	own := s.within(text)
	if own == nil {
		return
	}
	own.only("bits", "group_size", "sym", "desc_act", "static_groups", "mse", "damp_percent", "damp_auto_increment",
		"act_group_aware")
	own.gptqRecipe(&rest, false)
	rest.targets = modules{exprs: s.expression(text, strings.TrimPrefix(text, "+:"))}
	scheme.recipes = append(scheme.recipes, rest)
}

// openGPTQ finds the tensors of a module: elements packed along the columns, and everything with rows as columns.
func (o *opener) openGPTQ(r *recipe) *diag.Diagnostic {
	t, there, d := o.packedWords(r)
	if !there || d != nil {
		return d
	}
	m := &o.m
	m.rows, m.cols = t.Shape[1], t.Shape[0]*(32/r.bits)
	if order, ok := o.c.Tensor(o.module + ".g_idx"); ok && len(order.Shape) == 1 && order.Shape[0] > 0 &&
		(order.Shape[0]*r.bits+31)/32 == t.Shape[0] {
		m.cols = order.Shape[0] // the last word may have columns to spare
	}
	m.codes = wordColumns{t, r.bits, m.rows, m.cols}
	if d := o.columnScales(r); d != nil {
		return d
	}
	zeros, d := o.packedZeros((m.rows*r.bits + 31) / 32)
	if d != nil {
		return d
	}
	m.zeros = &columnZeros{t: zeros, bits: r.bits, less: r.form == gptq}
	m.Zeros = !r.symmetric
	return o.columnOrder("g_idx")
}
