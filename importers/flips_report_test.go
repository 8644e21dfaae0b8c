package importers

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/checkpoint"
	"amkc/importers/modeltest"
)

// A flipCount is how many flips of a family there are of each kind.
type flipCount struct{ fields, moves, followed, inert, accepted int }

func (c *flipCount) add(f flip) {
	switch {
	case f.moves:
		c.moves++
		c.followed += count(f.codes == "")
	default:
		c.inert++
		c.accepted += count(f.codes == "")
	}
}

func (c flipCount) row(name string) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %d | %d |\n", name, c.fields, c.moves+c.inert, c.moves,
		c.followed, c.moves-c.followed, c.inert, c.accepted, c.inert-c.accepted)
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// refusedFlips are the values of a field that are refused, and the families that refuse them.
type refusedFlips struct{ families, values map[string]bool }

// add notes a value of a field; a field of an object counts as one wherever the object stands.
func addRefused(to map[string]*refusedFlips, family, field string, f flip) {
	field = plainField(field)
	if to[field] == nil {
		to[field] = &refusedFlips{map[string]bool{}, map[string]bool{}}
	}
	value := "absent"
	if f.value != nil {
		value = "`" + checkpoint.Shortened(string(f.value)) + "`"
	}
	to[field].families[family], to[field].values[value] = true, true
}

// plainField is the field of a path: that of a language model, or of a rotary embedding in either form.
func plainField(path string) string {
	path = strings.TrimPrefix(path, "text_config.")
	if object, key, ok := strings.Cut(path, "."); ok && strings.HasPrefix(object, "rope_") {
		return "rope_parameters." + key[strings.LastIndexByte(key, '.')+1:]
	}
	return path
}

// listed lists names in order, and says how many are left out.
func listed(names map[string]bool, most int) string {
	list := slices.Sorted(maps.Keys(names))
	if left := len(list) - most; left > 1 {
		list = append(list[:most], fmt.Sprintf("and %d more", left))
	}
	return strings.Join(list, ", ")
}

// docs/results/fields.md counts the flips of testdata/models/fields, and lists what is refused. A value that changes no
// logit is refused for a reason alone.
func TestFieldsReport(t *testing.T) {
	var total flipCount
	var table strings.Builder
	moved, inert, versions := map[string]*refusedFlips{}, map[string]*refusedFlips{}, map[string]bool{}
	for _, known := range Families {
		family := known.ModelType
		var c flipCount
		fields, file := map[string]bool{}, readFlips(t, family)
		versions[file.Transformers] = true
		for _, base := range file.Bases {
			for field, flips := range base.Fields {
				fields[plainField(field)] = true
				for _, f := range flips {
					c.add(f)
					total.add(f)
					switch {
					case f.codes != "" && f.moves:
						addRefused(moved, family, field, f)
					case f.codes != "":
						addRefused(inert, family, field, f)
					}
				}
			}
		}
		c.fields = len(fields)
		total.fields += c.fields
		table.WriteString(c.row(family))
	}
	var out strings.Builder
	fmt.Fprintf(&out, strings.ReplaceAll(fieldsHead, "TICK", "`"), listed(versions, 9))
	out.WriteString(table.String() + total.row("all"))
	out.WriteString(fieldsMoved)
	for _, field := range slices.Sorted(maps.Keys(moved)) {
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", field, listed(moved[field].values, 6),
			listed(moved[field].families, 6))
	}
	out.WriteString(fieldsInert)
	for _, field := range slices.Sorted(maps.Keys(inert)) {
		why := whyRefused[field]
		require.NotEmpty(t, why, "%s = %s is refused by %s, and moves no logit: accept it, or say why in whyRefused",
			field, listed(inert[field].values, 20), listed(inert[field].families, 20))
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", field, listed(inert[field].values, 6),
			listed(inert[field].families, 6), why)
	}
	for field := range whyRefused {
		require.Contains(t, slices.Collect(maps.Keys(inert)), field, "whyRefused has a reason too many")
	}
	const report = "../docs/results/fields.md"
	if *modeltest.Update {
		require.NoError(t, os.WriteFile(report, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(report)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String(), "go test ./importers -run FieldsReport -update")
}

const fieldsHead = `# What becomes of each field of a config

Written by TICKgo test ./importers -run FieldsReport -updateTICK from what
TICKtestdata/models/fields.pyTICK has recorded; do not edit. Each field that can reach the logits of a family is given
other values that transformers loads: transformers (%s) computes the logits of all positions before
and after, with the same weights in fp32,
and so does amkc on the reference VM. A flip moves logits, or is inert and leaves every bit of them, whether attention
is eager or what transformers takes by default. What moves them is followed, with logits within 1e-4 of those of
transformers (times the largest logit, where that is more than 1), or refused with a code; nothing is ignored.
TICKmake test-allTICK holds the importers to it without Python.

Fields are those that the config class declares, that its constructor takes under former names, and that are read from
a config while a model is built and run; generation's are left aside. Each is flipped in a config as transformers 5
writes it and, unless it has moved logits there, in one as published models have it; those of rotary embeddings for each
type of them.

| model_type | fields | flips | move logits | followed | refused | inert | accepted | refused |
|---|---|---|---|---|---|---|---|---|
`

const fieldsMoved = `
## Refused, and moves logits

What amkc does not model, and what contradicts itself.

| field | values | families |
|---|---|---|
`

const fieldsInert = `
## Refused, although inert

| field | values | families | why |
|---|---|---|---|
`

// whyRefused says of fields why values that move no logit are refused.
var whyRefused = map[string]string{
	"activation":                       clips,
	"add_cross_attention":              "layers then attend to an encoder, which generation has none of",
	"activation_function":              clips,
	"attn_logit_softcapping":           "transformers has the field, and caps no scores of Gemma 3",
	"attention_chunk_size":             "no field of the class; others cut attention into chunks by it",
	"final_logit_softcapping":          "transformers has the field, and caps no logits of a model that sees images",
	"head_dim":                         "a head has elements, or it is not a field of the class",
	"hidden_act":                       clips + ", or the class does not read it",
	"intermediate_size":                "an MLP has a width, be there none in the model",
	"is_causal":                        "true is meant; else a token attends to those after it",
	"is_encoder_decoder":               "generation then looks for an encoder",
	"layer_types":                      "the class does not read it: `sliding_window` is that of all layers",
	"max_position_embeddings":          "a model has positions",
	"no_rope_layer_interval":           "an interval has layers",
	"no_rope_layers":                   "want 0 or 1 of each layer",
	"max_window_layers":                "null is not a number of layers; `layer_types` may list them",
	"n_embed":                          "null is not a name of `hidden_size`",
	"num_hidden_layers":                "GPT-2 calls it `n_layer`",
	"num_experts":                      "another name of `num_local_experts`, which says something else",
	"num_heads":                        noField,
	"original_max_position_embeddings": contradicts,
	"num_kv_heads":                     "a model has heads",
	"full_attention_interval":          "true is not a number; `layer_types` lists the layers",
	"num_ln_in_parallel_attn":          "a layer without `new_decoder_architecture` has one norm there",
	"per_layer_config":                 "sizes of layers of their own are read of a Llama alone",
	"partial_rotary_factor":            "it contradicts `rope_parameters`, or the default rotation alone ignores it",
	"rope_local_base_freq":             contradicts,
	"rope_parameters":                  noField,
	"rope_scaling":                     noField,
	"rotary_emb_base":                  contradicts,
	"rotary_pct":                       contradicts,
	"rope_theta":                       "it contradicts `rope_parameters`, which transformers before 5 does not read",
	"sliding_window":                   "no field of the class; others have windows by it",
	"sliding_window_pattern":           "an interval has layers",
	"tie_word_embeddings":              "it contradicts that of `text_config`",
	"torch_dtype":                      "it contradicts `dtype`",
	"use_bidirectional_attention":      "attention other than eager follows it",
	"use_sliding_window":               "it contradicts `layer_types`",
	"vision_aspect_ratio":              noField,
	"vision_feature_layer":             noField,
	"vision_feature_select_strategy":   noField,

	"rope_parameters.alpha":                            "true is not a number",
	"rope_parameters.factor":                           "below 1 it would raise frequencies",
	"rope_parameters.short_factor":                     "a rotation has a factor for each pair",
	"rope_parameters.mrope_section":                    "for positions of three parts, which images have",
	"rope_parameters.original_max_position_embeddings": "it contradicts the field next to `rope_parameters`",
	"rope_parameters.partial_rotary_factor":            "the default rotation alone ignores it",
	"rope_parameters.truncate":                         "transformers does not read it of a kind of layers",
	"rope_parameters.type":                             "the two names contradict each other",
}

const (
	clips       = "it clips, and no activation of the small model is so large"
	contradicts = "it contradicts `rope_parameters`"
	noField     = "no field of the class"
)
