package importers

import (
	"maps"
	"math"
	"slices"
	"strings"

	"amkc/ir"
)

// importGemma builds the graph of a Gemma, the first: a Llama whose embedding is scaled, whose norms multiply by 1 + w,
// and whose MLP has the tanh form of GELU. Defaults of absent fields are those of transformers' GemmaConfig.
func importGemma(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	return m.decoder(&decoder{architecture: "GemmaForCausalLM",
		modelled: llamaModelled, inert: gemmaInert,
		layers: 28, hidden: 3072, intermediate: 24576, heads: 16, kvHeads: 16, headDim: 256, vocab: 256000,
		positions: 8192, tied: true,
		check: (*importer).refuseOfGemma, gate: m.gateOf("hidden_act", append([]string{"gelu"}, tanhGELU...)),
		biased: projections{heads: attention, o: attention}, unitOffset: true, embedScale: rootOfHidden})
}

// tanhGELU are the names that transformers has for the tanh form of GELU. The class of the first Gemma takes "gelu" for
// it too, which its first releases say.
var tanhGELU = []string{"gelu_pytorch_tanh", "gelu_new", "gelu_fast", "gelu_accurate", "gelu_python_tanh"}

// gateOf reads the activation of an MLP of which the tanh form of GELU is modelled, and returns its node.
func (m *importer) gateOf(field string, accepted []string) string {
	if act := m.text(field, tanhGELU[0]); !slices.Contains(accepted, act) {
		m.fail(codeNotModelled, field, "%s is not modelled; accepted: %s", spell(act), quoted(accepted))
	}
	return "gelu_tanh_mul"
}

// rootOfHidden is what a Gemma multiplies rows of its embedding by, in the dtype of these.
func rootOfHidden(model *ir.Model) float64 {
	return float64(roundTo(model.Weights, float32(math.Sqrt(float64(model.Hidden)))))
}

func quoted(words []string) string { return `"` + strings.Join(words, `", "`) + `"` }

// gemmaInert are the inert fields of a Gemma. Former versions of its class read hidden_activation, and took the tanh
// form of GELU where it is null.
var gemmaInert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	inert["hidden_activation"] = isText(tanhGELU[0]).does("the activation may be another one")
	inert["use_bidirectional_attention"] = isFalse.does(bothWays)
	return inert
}()

// refuseOfGemma refuses what the class of a Gemma reads and a decoder does not model, and what only others have.
func (m *importer) refuseOfGemma() {
	m.refuseTrue("mlp_bias", "use_sliding_window")
	if v, ok := m.value("sliding_window"); ok {
		m.fail(codeNotModelled, "sliding_window", "is %s, and a Gemma has no windows; accepted: null", spell(v))
	}
	m.refuseLayerTypes(fullAttention)
	m.refusePartial()
}
