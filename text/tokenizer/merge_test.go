package tokenizer

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// naive merges as BPE is defined: the pair of the lowest rank, of those the leftmost, until none is left.
func naive(m *bpe, word string) []int {
	var ids []int32
	for _, r := range word {
		ids = append(ids, m.ids[string(r)])
	}
	for {
		best, at := merge{rank: noRank}, 0
		for i := range len(ids) - 1 {
			if found := m.merges.get(ids[i], ids[i+1]); found.rank < best.rank {
				best, at = found, i
			}
		}
		if best.rank == noRank {
			break
		}
		ids = append(append(ids[:at:at], best.id), ids[at+2:]...)
	}
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id)
	}
	return out
}

// TestMerges holds short words, long ones and those that are cut at marks to the definition.
func TestMerges(t *testing.T) {
	m := loadFile(t, "testdata/llama2/tokenizer.json").model
	var known []string
	for text := range strings.SplitSeq(strings.ReplaceAll(strings.Join(readCorpus(t).Texts, " "), " ", mark), "") {
		if _, ok := m.ids[text]; ok {
			known = append(known, text)
		}
	}
	require.Greater(t, len(known), 1000)
	d, short, long, cut := draw(4), 0, 0, 0
	g := newMerger(m)
	for range 3000 {
		start, n := d.below(len(known)-100), 1+d.below(100)
		word := strings.Join(known[start:start+n], "")
		require.Equal(t, naive(m, word), g.tokenize(nil, word, math.MaxInt), "%q", word)
		require.Equal(t, naive(m, word), g.merge(nil, word), "%q", word)
		if n <= 32 {
			short++
		} else {
			long++
		}
		if m.cut(word) < len(word) {
			cut++
		}
	}
	require.Greater(t, min(short, long, cut), 500)
}

// TestCutNeedsTheVocabulary: with a token that has a mark after another character, the two may not be parted.
func TestCutNeedsTheVocabulary(t *testing.T) {
	const vocab = `{"type":"BPE","vocab":{"▁":0,"a":1,"b":2,"a▁":3,"<0x62>":4},"merges":["a ▁"]}`
	tok := mustLoad(t, small(map[string]string{"model": vocab, "decoder": "null"}))
	require.Equal(t, len("a▁b"), tok.model.cut("a▁b▁"), "before the second mark, not the first")
	require.Equal(t, len("a▁?▁"), tok.model.cut("a▁?▁"), "anything but a token may be anything")
	require.Equal(t, []int{3, 2, 0, 1}, encode(t, tok, "a▁b▁a", false))
}

// Words are remembered per goroutine.
func TestConcurrentUse(t *testing.T) {
	tok := loadFile(t, "testdata/llama3/tokenizer.json")
	texts := readCorpus(t).Texts
	want := make([][]int, len(texts))
	for i, text := range texts {
		want[i] = encode(t, tok, text, true)
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range texts {
				i = (i + 97*g) % len(texts)
				ids, err := tok.Encode(texts[i], true)
				if err != nil || len(ids) != len(want[i]) {
					t.Errorf("%q: %v", texts[i], err)
				}
			}
		})
	}
	wg.Wait()
}
