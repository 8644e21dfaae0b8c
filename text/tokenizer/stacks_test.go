package tokenizer

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// A goldenStack is what a family has around a model, and what the library makes of texts with it;
// testdata/make_stacks.py writes and explains it.
type goldenStack struct {
	Base          string
	Parts, Model  map[string]json.RawMessage
	Texts, Random string
	Mixed         []string
}

// file is the tokenizer.json of the stack.
func (g *goldenStack) file(t testing.TB) []byte {
	var all, model map[string]json.RawMessage
	readJSON(t, filepath.Join("testdata", g.Base, "tokenizer.json"), &all)
	require.NoError(t, json.Unmarshal(all["model"], &model))
	maps.Copy(all, g.Parts)
	maps.Copy(model, g.Model)
	var err error
	all["model"], err = json.Marshal(model)
	require.NoError(t, err)
	data, err := json.Marshal(all)
	require.NoError(t, err)
	return data
}

func readStacks(t testing.TB) map[string]*goldenStack {
	var stacks map[string]*goldenStack
	readJSON(t, "testdata/stacks.json", &stacks)
	require.Greater(t, len(stacks), 80)
	return stacks
}

// digestOf covers the ids of texts, and what those decode to.
func digestOf(t *testing.T, tok *Tokenizer, texts []string) string {
	t.Helper()
	d := newDigest()
	var list []byte
	for _, text := range texts {
		ids := encode(t, tok, text, true)
		list = list[:0]
		for _, id := range ids {
			list = append(strconv.AppendInt(list, int64(id), 10), ' ')
		}
		d.add(string(list))
		d.add(tok.Decode(ids, true))
		d.add(tok.Decode(ids, false))
	}
	return d.String()
}

// TestStacksEqualLibrary takes the texts of the corpus, and 500 random ones, or 10,000 with AMKC_LONG. Where one differs,
// the library has to be asked for each.
func TestStacksEqualLibrary(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	corpus := readCorpus(t)
	random := draw(2)
	mixed := make([][]string, 20)
	for i := range mixed {
		for range 500 {
			mixed[i] = append(mixed[i], corpus.mixedText(&random))
		}
	}
	if os.Getenv("AMKC_LONG") == "" {
		mixed = mixed[:1]
	}
	stacks := readStacks(t)
	for _, name := range slices.Sorted(maps.Keys(stacks)) {
		t.Run(name, func(t *testing.T) {
			g := stacks[name]
			tok, err := Load(g.file(t))
			require.NoError(t, err)
			require.Equal(t, g.Texts, digestOf(t, tok, corpus.Texts), "the corpus")
			require.Len(t, g.Mixed, 20)
			for i, texts := range mixed {
				require.Equal(t, g.Mixed[i], digestOf(t, tok, texts), "random texts %d to %d", 500*i, 500*i+499)
			}
			d, seen := draw(5), newDigest()
			for i := range 500 {
				ids := make([]int, 1+d.below(12))
				for j := range ids {
					if ids[j] = 0; i%2 == 1 {
						ids[j] = d.below(tok.VocabSize() + 3)
					} else {
						ids[j] = d.below(270)
					}
				}
				seen.add(tok.Decode(ids, true))
				seen.add(tok.Decode(ids, false))
			}
			require.Equal(t, g.Random, seen.String(), "random ids")
		})
	}
}
