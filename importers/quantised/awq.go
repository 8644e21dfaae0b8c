package quantised

import (
	"strings"

	"amkc/importers/checkpoint"
	"amkc/ir/diag"
)

// readAWQ reads the config of AutoAWQ, GPTQModel and transformers' AwqConfig. The sources are awq/models/_config.py and
// transformers/utils/quantization_config.py.
func readAWQ(scheme *Scheme, s *settings) {
	s.only("bits", "w_bit", "group_size", "q_group_size", "zero_point", "sym", "version", "format", "checkpoint_format",
		"quant_method", "method", "modules_to_not_convert", "pack_dtype", "lm_head", "dynamic",
		// How the numbers were found, and how others run them.
		"backend", "do_fuse", "exllama_config", "fuse_max_seq_len", "modules_to_fuse", "meta", "desc_act", "quantizer",
		"damp_percent", "damp_auto_increment", "static_groups", "true_sequential", "act_group_aware", "mse", "uuid",
		"offload_to_disk", "offload_to_disk_path", "pack_impl", "parallel_packing", "rotation", "adapter", "activation")
	for _, field := range []string{"adapter", "rotation", "activation", "dynamic"} {
		if s.has(field) {
			s.fail(NotRead, field, "is %s, which is not modelled; accepted: null", s.spelt(field))
		}
	}
	for _, field := range []string{"version", "format", "checkpoint_format"} {
		if v := s.text(field, "gemm"); !strings.EqualFold(v, "gemm") {
			s.fail(NotRead, field, "is %s, which is not read; accepted: \"gemm\"", checkpoint.Spell(v))
		}
	}
	bits := s.integer("bits", s.integer("w_bit", 4, 1), 1)
	if bits != 4 {
		s.fail(NotRead, "bits", "is %d, which is not read; accepted: 4", bits)
	}
	scheme.loose = s.modules("modules_to_not_convert")
	scheme.recipes = []recipe{{form: awq, bits: bits, rows: 1, targets: linears(),
		group:     max(0, s.integer("group_size", s.integer("q_group_size", 128, -1), -1)),
		symmetric: !s.truth("zero_point", !s.truth("sym", false))}}
}

// openAWQ finds the tensors of a module, all of which have rows as columns.
func (o *opener) openAWQ(r *recipe) *diag.Diagnostic {
	t, there, d := o.packedWords(r)
	if !there || d != nil {
		return d
	}
	m := &o.m
	m.rows, m.cols = t.Shape[1]*awqRows, t.Shape[0]
	m.codes = awqColumns{t, m.cols}
	if d := o.columnScales(r); d != nil {
		return d
	}
	zeros, d := o.packedZeros(t.Shape[1])
	if d != nil {
		return d
	}
	m.zeros = &columnZeros{t: zeros, bits: r.bits, awq: true}
	m.Zeros = !r.symmetric
	return nil
}
