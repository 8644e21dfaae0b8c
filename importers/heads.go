package importers

import (
	"slices"
	"strings"

	"amkc/ir/diag"
)

// A head is what stands instead of the language-model head, in a model of which amkc compiles the layers.
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
