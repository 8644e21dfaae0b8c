package grammar

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/text/tokenizer"
)

// What tokens of a family's tokenizer are decoded to is what the automaton takes them for: texts of random tokens are
// objects in JSON once they are decoded. Tokenizers that could not spell some JSON are refused.
func TestTokenizersOfFamilies(t *testing.T) {
	const folder = "../tokenizer/testdata"
	var stacks map[string]struct {
		Base         string
		Parts, Model map[string]json.RawMessage
	}
	readJSON(t, filepath.Join(folder, "stacks.json"), &stacks)
	tried, refused := 0, []string{}
	for _, name := range slices.Sorted(maps.Keys(stacks)) {
		stack := stacks[name]
		var all, model map[string]json.RawMessage
		readJSON(t, filepath.Join(folder, stack.Base, "tokenizer.json"), &all)
		require.NoError(t, json.Unmarshal(all["model"], &model))
		maps.Copy(all, stack.Parts)
		maps.Copy(model, stack.Model)
		var err error
		all["model"], err = json.Marshal(model)
		require.NoError(t, err)
		data, err := json.Marshal(all)
		require.NoError(t, err)
		tok, err := tokenizer.Load(data)
		require.NoError(t, err)
		v, err := FromTokenizer(tok.VocabSize(), tok, nil)
		if errors.Is(err, ErrVocabulary) {
			refused = append(refused, name)
			continue
		}
		require.NoError(t, err)
		letter := func(c byte) int {
			return slices.IndexFunc(v.texts, func(t []byte) bool { return len(t) == 1 && t[0] == c })
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 8 {
			s, d := Object(v).Begin(), tok.NewDecoder(true)
			text, raw := d.Push(letter('a')), []byte{} // a text has begun
			for n := 0; n < 60 && (!s.MayEnd() || s.MayGoOn()); n++ {
				mask := s.Mask()
				var all []int
				for id := range v.size {
					if mask.Allows(id) {
						all = append(all, id)
					}
				}
				require.NotEmpty(t, all)
				id := all[rng.IntN(len(all))]
				for k := 0; n > 30 && k < 5; k++ {
					if closes := letter("\"}]:0"[k]); mask.Allows(closes) {
						id = closes
						break
					}
				}
				require.NoError(t, s.Take(id))
				raw = append(raw, v.texts[id]...)
				text += d.Push(id)
			}
			if !s.MayEnd() {
				continue
			}
			tried++
			require.Equal(t, "a"+string(raw), text+d.Flush(), name)
			require.True(t, json.Valid(raw), name)
		}
	}
	require.Greater(t, tried, 500)
	require.LessOrEqual(t, len(refused), 7, refused)
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, into))
}
