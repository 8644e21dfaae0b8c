package importers

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
)

// traitWords are what reasons say of a trait of a class (testdata/configs/causal.py), one of them.
var traitWords = map[string][]string{
	"experts": {"experts"}, "latent": {"latent attention"}, "recurrent": {"recurrent", "state-space"},
	"convolution": {"convolution"}, "sinks": {"attention sinks"}, "encoder": {"an encoder besides the decoder"},
	"alibi": {"ALiBi"},
}

// wordsOfTraits are the words that a reason may have for classes of a trait alone: others of the trait may be refused
// for something else.
var wordsOfTraits = map[string]string{"it is an encoder": "masked", "images": "images", "sound": "sound"}

// modelledTraits are those that families have: a class with one of them is a family, or refused for another.
var modelledTraits = map[string]bool{"experts": true, "sinks": true, "convolution": true, "recurrent": true}

// Every model type with which transformers generates text is a family, or refused with a reason; what reasons say of
// experts and the like is so in the class, and what the class has of that the reason says.
func TestCausalTypes(t *testing.T) {
	text, err := os.ReadFile("../testdata/configs/causal.txt")
	require.NoError(t, err)
	listed, checked := map[string]bool{}, 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Fields(line)
		kind, traits := parts[0], parts[1:]
		listed[kind] = true
		_, known := familyOf(kind)
		reason, refused := unmodelled[kind]
		require.NotEqual(t, known, refused, "%s: want a family or a reason in unmodelled, and not both", kind)
		if slices.Contains(traits, "unbuilt") {
			continue
		}
		for trait, words := range traitWords {
			if checked++; known && modelledTraits[trait] {
				continue
			}
			says := slices.ContainsFunc(words, func(word string) bool { return strings.Contains(reason, word) })
			require.Equal(t, slices.Contains(traits, trait), says, "%s: %s: %q", kind, trait, reason)
		}
		for word, trait := range wordsOfTraits {
			if strings.Contains(reason, word) {
				require.Contains(t, traits, trait, "%s: %q", kind, reason)
			}
		}
	}
	require.Greater(t, len(listed), 190)
	require.Greater(t, checked, 7*190)
	for _, f := range Families {
		_, inside := composites[f.ModelType] // the decoder of which is another type's
		require.True(t, listed[f.ModelType] || inside, f.ModelType)
	}
	for kind, reason := range unmodelled {
		_, err := importConfig(t, edit(modeltest.TinyConfig, fieldsOf{"model_type": kind}), Source{})
		require.ErrorContains(t, err, `"`+kind+`" is not supported: `+reason+"; accepted: ")
		require.LessOrEqual(t, len(reason), 90, "%s: a reason is short", kind)
	}
}
