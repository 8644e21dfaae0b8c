package passes

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir/diag"
	"amkc/passes/checkpoint"
)

// A head is what stands in the place of the language-model head, in a model of which amkc compiles the layers.
type head struct {
	class  string // how the name of its class ends
	tensor string // a tensor that tells it, where the config does not name the class
	what   string
}

var otherHeads = []head{
	{"ForSequenceClassification", "score.weight", "it classifies a text, or scores it as a reward model does"},
	{"ForTokenClassification", "classifier.weight", "it classifies each token"},
	{"ForQuestionAnswering", "qa_outputs.weight", "it marks a stretch of the text"},
	{"ForMultipleChoice", "", "it chooses among texts"},
	{"ForRewardModel", "v_head.summary.weight", "it scores a text"},
	{"Model", "embed_tokens.weight", "it is the layers alone, which yield a vector and no token"},
}

// checkArchitecture demands the class that the checkpoint was saved from, where the config names one. Where it does
// not, model_type decides, and the tensors must fit. alias is another name of the class, or none.
func (m *importer) checkArchitecture(want, alias string) {
	v, ok := m.value("architectures")
	if !ok {
		return
	}
	list, _ := v.([]any)
	if len(list) != 1 {
		m.fail(codeArchitecture, "architectures", "want an array of one name, [%q]", want)
		return
	}
	class, _ := list[0].(string)
	if class == want || class == alias && alias != "" {
		return
	}
	reason := ""
	if i := slices.IndexFunc(otherHeads, func(h head) bool { return strings.HasSuffix(class, h.class) }); i >= 0 {
		reason = ": " + otherHeads[i].what
	}
	m.fail(codeArchitecture, "architectures", "[%s] is not supported%s; accepted: [%q], which generates text",
		spell(list[0]), reason, want)
}

// otherHead returns what is wrong with tensors that show the head of another class, or nil.
func (m *importer) otherHead() *diag.Diagnostic {
	for _, h := range otherHeads {
		if _, ok := m.src.Weights.Tensor(h.tensor); ok && h.tensor != "" {
			return diag.Errorf(codeArchitecture, "tensor "+h.tensor,
				"the files hold a model without a language-model head: %s; "+
					"accepted: a model that generates text, with lm_head.weight or tied embeddings", h.what)
		}
	}
	return nil
}

// refuseQuantised checks the two fields in which configs say that the weights are quantised; MLX writes quantization.
func (m *importer) refuseQuantised() {
	for _, field := range []string{"quantization", "quantization_config"} {
		v, ok := m.value(field)
		if !ok {
			continue
		}
		m.fail(codeQuantised, field, "the weights are quantised (%s); accepted: weights in F32, F16 or BF16, which "+
			"the original model has",
			quantisation(v))
		return // MLX writes both
	}
}

// quantisation names the method that a config describes.
func quantisation(v any) string {
	o, ok := v.(*checkpoint.Object)
	if !ok {
		return "an unnamed method"
	}
	if method := get(o, "quant_method"); method != nil {
		return spell(method)
	}
	if bits, group := get(o, "bits"), get(o, "group_size"); bits != nil && group != nil {
		return fmt.Sprintf("MLX, %s bits in groups of %s", spell(bits), spell(group))
	}
	return "an unnamed method"
}

// quantisedParts are endings of tensors that hold the scales, zero points and packed integers of quantised weights.
var quantisedParts = map[string]string{
	".scales": "MLX", ".biases": "MLX", ".qweight": "GPTQ or AWQ", ".qzeros": "GPTQ or AWQ", ".g_idx": "GPTQ",
	".absmax": "bitsandbytes",
	".SCB":    "bitsandbytes", ".weight_scale": "FP8 or compressed-tensors", ".weight_scale_inv": "FP8",
	".weight_packed": "compressed-tensors",
}

// quantisedTensors returns what is wrong with tensors of a quantised checkpoint whose config does not say so, or nil.
func (m *importer) quantisedTensors() *diag.Diagnostic {
	for _, t := range m.src.Weights.Tensors() {
		for ending, method := range quantisedParts {
			if strings.HasSuffix(t.Name, ending) {
				return diag.Errorf(codeQuantised, "tensor "+t.Name,
					"the weights are quantised: tensors with this ending are of %s; "+
						"accepted: weights in F32, F16 or BF16, which the original model has", method)
			}
		}
	}
	return nil
}
