package importers

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
	"amkc/ir"
)

// smallText is a small language model of a composite; the first of the model types it may have is what is left out.
func smallText(modelType string) fieldsOf {
	text := fieldsOf{"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
		"num_key_value_heads": 2, "vocab_size": 128, "max_position_embeddings": 512, "sliding_window": 16,
		"head_dim": 16}
	switch modelType {
	case "llama", "hunyuan_v1_dense", "hyperclovax", "granite", "glm4", "stablelm", "nemotron", "olmo", "olmo2":
		delete(text, "sliding_window")
	case "gemma4_text":
		text["hidden_size_per_layer_input"] = 0
	}
	return text
}

// compositeConfig is a small config of a composite whose language model has a default type.
func compositeConfig(modelType string) string {
	c := composites[modelType]
	return edit(fmt.Sprintf(`{"architectures": [%q], "model_type": %q, "vision_config": {}}`, c.class, modelType),
		fieldsOf{"text_config": smallText(c.texts[0])})
}

// Each composite is a family, and each language model of a composite is imported.
func TestComposites(t *testing.T) {
	for modelType, c := range composites {
		_, listed := familyOf(modelType)
		require.True(t, listed, modelType)
		for _, text := range c.texts {
			require.Contains(t, texts, text, modelType)
		}
		s, err := importConfig(t, compositeConfig(modelType), Source{MaxSeq: 64})
		require.NoError(t, err, modelType)
		require.Equal(t, c.class, s.Graph.Model.Architecture)
		require.Contains(t, s.Warnings.Error(),
			"config.json: vision_config: warning: the vision tower and its projector "+
				"are left out", modelType)
	}
}

// The tensors of a language model are found in each layout, those of the other parts are left out, and any other tensor
// is refused.
func TestLayoutsOfComposites(t *testing.T) {
	for modelType, c := range composites {
		config := compositeConfig(modelType)
		first := plainTensors(t, config)
		for _, l := range c.layouts {
			tensors := map[string]modeltest.Stored{}
			for name, tensor := range first {
				if part, ok := strings.CutPrefix(name, c.layouts[0].body); ok {
					name = l.body + part
				} else {
					name = strings.Replace(name, c.layouts[0].head, l.head, 1)
				}
				tensors[name] = tensor
			}
			for _, other := range c.others {
				for _, within := range []string{"", "model."} {
					tensors[within+strings.TrimSuffix(other, ".")+".weight"] = modeltest.Stored{DType: "I64",
						Shape: []int{1}, Data: make([]byte, 8)}
				}
			}
			s, err := importModel(t, modeltest.WriteModel(t, config, tensors))
			require.NoError(t, err, "%s in %v", modelType, l)
			require.Len(t, s.Consumed, len(tensors), "%s in %v", modelType, l)
			for _, stray := range []string{"other_tower.weight", "model.weight", l.body + "weight"} {
				more := maps.Clone(tensors)
				more[stray] = modeltest.Stored{DType: "F32", Shape: []int{1}, Data: modeltest.F32Bytes(1)}
				_, err = importModel(t, modeltest.WriteModel(t, config, more))
				require.ErrorContains(t, err, "AMK1111", "%s in %v: %s", modelType, l, stray)
			}
		}
	}
}

// Fields alongside those of the language model are known to have no effect, or copies of its own.
func TestFieldsBesideComposites(t *testing.T) {
	llava := compositeConfig("llava")
	for name, c := range map[string]struct {
		changes fieldsOf
		refusal string
	}{
		"as it is":     {},
		"of images":    {changes: fieldsOf{"image_token_index": 3, "vision_feature_layer": []int{-2, -5}}},
		"a copy":       {changes: fieldsOf{"hidden_size": 64.0, "max_position_embeddings": 512}},
		"no copy":      {changes: fieldsOf{"hidden_size": 65}, refusal: "config.json: hidden_size: error: is not"},
		"of a Mistral": {changes: fieldsOf{"sliding_window": 16}, refusal: "config.json: sliding_window: error"},
		"unknown":      {changes: fieldsOf{"mystery": 1}, refusal: "config.json: mystery: error: is not a field"},
		"unknown within": {changes: fieldsOf{"text_config": fieldsOf{"mystery": 1}},
			refusal: "config.json: text_config: mystery: error: is not a field"},
		"of no importer": {changes: fieldsOf{"text_config": fieldsOf{"model_type": "internlm2"}},
			refusal: `is "internlm2": its fused projections are not modelled; want "llama", "arcee"`},
		"of experts": {changes: fieldsOf{"text_config": fieldsOf{"model_type": "jetmoe"}},
			refusal: `is "jetmoe": it has experts`},
		"another class within": {changes: fieldsOf{"text_config": fieldsOf{"architectures": []any{"LlamaModel"}}}},
		"another class":        {changes: fieldsOf{"architectures": []any{"LlamaForCausalLM"}}, refusal: "AMK1102"},
		"no object":            {changes: fieldsOf{"text_config": 1}, refusal: "text_config: error: is 1; want an"},
		"experts by name": {changes: fieldsOf{"model_type": "qwen3_vl_moe"},
			refusal: `"qwen3_vl_moe" is not supported: it has experts`},
		"a prefix that sees all of itself": {changes: fieldsOf{"model_type": "paligemma"},
			refusal: `"paligemma" is not supported: tokens of a prompt attend to those after them`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := importConfig(t, edit(llava, c.changes), Source{MaxSeq: 64})
			if c.refusal != "" {
				require.ErrorContains(t, err, c.refusal)
				return
			}
			require.NoError(t, err)
			require.Len(t, s.Warnings, 1)
		})
	}
}

// The class of a composite has a bare head: it multiplies and caps no logits, whatever its language model does alone.
func TestHeadsOfComposites(t *testing.T) {
	ops := func(g *ir.Graph) (out []string) {
		for _, n := range g.After {
			out = append(out, n.Name)
		}
		return out
	}
	bare := []string{"final_norm", "lm_head", "argmax"}
	for _, c := range []struct {
		modelType string
		text      fieldsOf
		warns     string
	}{
		{"aya_vision", fieldsOf{"logit_scale": 0.25}, "logits are not multiplied by 0.25"},
		{"aya_vision", nil, "logits are not multiplied by 0.0625"},
		{"cohere2_vision", fieldsOf{"logit_scale": 1}, ""},
		{"llava_next", fieldsOf{"model_type": "granite", "logits_scaling": 8}, "logits are not multiplied by 0.125"},
	} {
		config := edit(compositeConfig(c.modelType), nil)
		text := smallText("")
		maps.Copy(text, c.text)
		if c.modelType == "llava_next" {
			delete(text, "sliding_window")
		}
		s, err := importConfig(t, edit(config, fieldsOf{"text_config": text}), Source{MaxSeq: 64})
		require.NoError(t, err, c.modelType)
		require.Equal(t, bare, ops(s.Graph), c.modelType)
		if c.warns == "" {
			require.Len(t, s.Warnings, 1)
		} else {
			require.Contains(t, s.Warnings.Error(), c.warns)
		}
	}
}

// What ties embeddings: the field outside of text_config, the one in it where the class reads that too, or the files.
func TestTiesOfComposites(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		modelType     string
		outer, inner  *bool
		tied, refused bool
	}{
		{"llava", &no, &yes, true, false},
		{"llava", nil, &yes, true, false},
		{"llava", &yes, &no, true, false},
		{"llava", &no, nil, false, false},
		{"llava_next", &no, &yes, false, true},
		{"llava_next", &yes, nil, true, false},
		{"qwen3_vl", &yes, &yes, true, false},
		{"qwen3_vl", &no, &no, false, false},
		{"internvl", nil, nil, false, false},
		{"internvl", nil, &no, false, false},
		{"aya_vision", nil, nil, true, false},
		{"gemma3", nil, nil, true, false},
		{"gemma3", nil, &no, true, true},
	} {
		text := smallText(composites[c.modelType].texts[0])
		outer := fieldsOf{}
		if c.inner != nil {
			text["tie_word_embeddings"] = *c.inner
		}
		if c.outer != nil {
			outer["tie_word_embeddings"] = *c.outer
		}
		outer["text_config"] = text
		s, err := importConfig(t, edit(compositeConfig(c.modelType), outer), Source{MaxSeq: 64})
		if c.refused {
			require.ErrorContains(t, err, "want the same in both", "%+v", c)
			continue
		}
		require.NoError(t, err, "%+v", c)
		require.Equal(t, c.tied, s.Graph.Model.Tied, "%+v", c)
	}
}

// The fields of the language model of a Qwen2-VL stand alongside the others, as published, or in text_config, and mean
// the same. Its pairs are shared among three positions, which of a text are one.
func TestQwenVL(t *testing.T) {
	const bare = `{"model_type": "qwen2_5_vl", "image_token_id": 1, "vision_token_id": 2, "vision_config": {}}`
	text := smallText("qwen2_5_vl_text")
	delete(text, "head_dim")
	text["rope_scaling"] = fieldsOf{"type": "mrope", "mrope_section": []int{2, 3, 3}}
	nested, err := importConfig(t, edit(bare, fieldsOf{"text_config": text}), Source{MaxSeq: 64})
	require.NoError(t, err)
	beside, err := importConfig(t, edit(bare, text), Source{MaxSeq: 64})
	require.NoError(t, err)
	both := fieldsOf{"image_token_id": nil, "vision_token_id": 2, "model_type": "qwen2_5_vl_text"}
	maps.Copy(both, text)
	copies, err := importConfig(t, edit(edit(bare, text), fieldsOf{"text_config": both}), Source{MaxSeq: 64})
	require.NoError(t, err, "transformers 4.52 wrote both")
	require.Equal(t, nested.Graph, copies.Graph)
	require.Equal(t, nested.Graph, beside.Graph)
	require.Equal(t, unscaled(invFreq(1e6, 16)), beside.Graph.Rope)
	for name, c := range map[string]struct {
		rope    fieldsOf
		changes fieldsOf
		refusal string
	}{
		"both names":        {rope: fieldsOf{"type": "mrope", "rope_type": defaultRope}},
		"none":              {rope: nil},
		"no sections":       {rope: fieldsOf{"type": "mrope"}},
		"too few":           {rope: fieldsOf{"mrope_section": []int{4, 4}}, refusal: "want three integers"},
		"too many pairs":    {rope: fieldsOf{"mrope_section": []int{3, 3, 3}}, refusal: "whose sum is the 8 pairs"},
		"below nothing":     {rope: fieldsOf{"mrope_section": []int{-1, 6, 3}}, refusal: "want three integers"},
		"no list":           {rope: fieldsOf{"mrope_section": 8}, refusal: "is 8; want three integers"},
		"two types":         {rope: fieldsOf{"type": "mrope", "rope_type": "linear", "factor": 2}, refusal: "AMK1107"},
		"interleaved":       {rope: fieldsOf{"mrope_section": []int{2, 3, 3}, "mrope_interleaved": true}},
		"interleaved twice": {rope: fieldsOf{"mrope_interleaved": 2}, refusal: "is 2; want true or false"},
		"heads of its own":  {changes: fieldsOf{"head_dim": 32}, refusal: "is not hidden_size over"},
		"with null":         {changes: fieldsOf{"text_config": nil}},
		"with a text":       {changes: fieldsOf{"text_config": "x"}, refusal: `is "x"; want an object`},
		"unknown":           {changes: fieldsOf{"mystery": 1}, refusal: "mystery: error: is not a field"},
	} {
		t.Run(name, func(t *testing.T) {
			changes := fieldsOf{}
			maps.Copy(changes, text)
			delete(changes, "rope_scaling")
			if c.rope != nil {
				changes["rope_scaling"] = c.rope
			}
			maps.Copy(changes, c.changes)
			s, err := importConfig(t, edit(bare, changes), Source{MaxSeq: 64})
			if c.refusal != "" {
				require.ErrorContains(t, err, c.refusal)
				return
			}
			require.NoError(t, err)
			require.Equal(t, beside.Graph.Rope, s.Graph.Rope)
		})
	}
	_, err = importConfig(t, edit(compositeConfig("qwen3_vl"), fieldsOf{"text_config": fieldsOf{
		"rope_scaling": fieldsOf{"type": "mrope"}}}), Source{MaxSeq: 64})
	require.ErrorContains(t, err, "rope type", "only the former classes call it so")
}
