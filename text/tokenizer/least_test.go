package tokenizer

import (
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"
)

// all returns the tokenizers of the corpus and those of the stacks.
func all(t testing.TB) map[string]*Tokenizer {
	tokenizers := map[string]*Tokenizer{"pycoder": loadFile(t, "../../testdata/models/pycoder-5m/tokenizer.json")}
	for _, name := range families(t) {
		tokenizers[name] = loadFile(t, "testdata/"+name+"/tokenizer.json")
	}
	for name, stack := range readStacks(t) {
		tokenizers["stack "+name] = mustLoad(t, stack.file(t))
	}
	return tokenizers
}

// dense are texts of few tokens: what the tokenizer has long tokens for, and what its steps make shorter or leave out.
func dense(tok *Tokenizer) (texts []string) {
	texts = []string{strings.Repeat(" ", 3000), strings.Repeat("=", 3000), strings.Repeat("\n", 3000),
		strings.Repeat("\u0300", 999), strings.Repeat("\u212A", 999), strings.Repeat("\U0001D400", 999),
		strings.Repeat("\u03B1\u0313\u0300\u0345", 500), strings.Repeat("\U000E0000", 999), strings.Repeat("\uFFFE", 999)}
	longest, added := "", ""
	for id := range tok.VocabSize() {
		if text := string(tok.Bytes(id)); utf8.ValidString(text) && len(text) > len(longest) {
			longest = text
		}
	}
	for i, id := range slices.Sorted(maps.Keys(tok.added)) {
		a := tok.added[id]
		if i >= 12 && !a.LStrip && !a.RStrip {
			continue
		}
		texts = append(texts, strings.Repeat(a.Content, 50), strings.Repeat("  "+a.Content+" \n\u3000 ", 50))
		if len(a.Content) > len(added) {
			added = a.Content
		}
	}
	return append(texts, strings.Repeat(longest, 50), strings.Repeat(added, 50), strings.Repeat(added+longest, 50))
}

// TestLeast: a text has no fewer tokens than its bytes say, for any tokenizer and text, and no more than it may have
// are encoded. So it is with words, as the model gets them.
func TestLeast(t *testing.T) {
	corpus := readCorpus(t)
	bounds, words, near, d := 0, 0, 0, draw(7)
	for name, tok := range all(t) {
		g := newMerger(tok.model)
		texts := dense(tok)
		for range 30 {
			texts = append(texts, corpus.Texts[d.below(len(corpus.Texts))], corpus.mixedText(&d))
		}
		if tok.covers.bytes > 0 {
			bounds++
		}
		if tok.model.longest[0] > 0 {
			words++
		}
		for i, text := range texts {
			special := i%2 == 0
			ids := encode(t, tok, text, special)
			least := tok.covers.least(text)
			require.LessOrEqual(t, least, len(ids), "%s: %q", name, text)
			word := len(g.tokenize(nil, text, math.MaxInt))
			require.LessOrEqual(t, tok.model.least(text), word, "%s: %q as a word", name, text)
			if least*8 > len(ids) {
				near++
			}
			got, err := tok.EncodeAtMost(text, special, len(ids))
			require.NoError(t, err, "%s: %q", name, text)
			require.Equal(t, ids, append([]int{}, got...))
			for _, most := range []int{len(ids) - 1, len(ids) / 2} {
				if most >= 0 && most < len(ids) {
					_, err = tok.EncodeAtMost(text, special, most)
					require.Equal(t, &LimitError{most}, err, "%s: %q", name, text)
				}
			}
			if i%4 > 0 {
				continue
			}
			ids, begun, err := tok.EncodePrompt(text)
			require.NoError(t, err)
			got, again, err := tok.EncodePromptAtMost(text, len(ids))
			require.NoError(t, err, "%s: %q", name, text)
			require.Equal(t, ids, got)
			require.Equal(t, begun, again)
			if len(ids) > 0 {
				_, _, err = tok.EncodePromptAtMost(text, len(ids)-1)
				require.Equal(t, &LimitError{len(ids) - 1}, err, "%s: %q", name, text)
			}
		}
	}
	require.Greater(t, bounds, 50, "most tokenizers have a bound")
	require.Greater(t, words, 60, "and more have one of words")
	require.Greater(t, near, 150, "and it is near for some texts")
}

// TestShrink holds what the forms and Lowercase make shorter at most to each character, which is composed of no more
// than what it decomposes to.
func TestShrink(t *testing.T) {
	changed := 0
	for r := range rune(utf8.MaxRune + 1) {
		text := string(r)
		if !utf8.ValidRune(r) || norm.NFKD.IsNormalString(text) && unicode.ToLower(r) == r && !isLater(r) {
			continue
		}
		changed++
		for _, step := range []normalizer{nfd.normalize, nfkd.normalize, lowercase} {
			require.LessOrEqual(t, len(text), shrinkCharacters*len(step(text)), "%U", r)
		}
		require.LessOrEqual(t, len(norm.NFD.String(text)), growthCanonical*len(text), "%U", r)
	}
	require.Greater(t, changed, 15_000)
}

// TestNoBound: where any part of a text may become no token, or one with any number of characters, its bytes say
// nothing.
func TestNoBound(t *testing.T) {
	const bytes = `"ByteLevel","add_prefix_space":false,"use_regex":false`
	require.Positive(t, loadFile(t, "testdata/gpt2/tokenizer.json").covers.bytes)
	for name, parts := range map[string]map[string]string{
		"accents":  {"normalizer": `{"type":"StripAccents"}`},
		"strip":    {"normalizer": `{"type":"Strip","strip_left":true,"strip_right":true}`},
		"replace":  {"normalizer": `{"type":"Replace","pattern":{"Regex":"a+"},"content":"a"}`},
		"nothing":  {"normalizer": `{"type":"Replace","pattern":{"String":"a"},"content":""}`},
		"removed":  {"pre_tokenizer": `{"type":"WhitespaceSplit"}`},
		"unknown":  {"model": `{"type":"BPE","vocab":{"a":0},"merges":[]}`},
		"fused":    {"model": `{"type":"BPE","unk_token":"?","fuse_unk":true,"vocab":{"a":0,"?":1},"merges":[]}`},
		"spelt":    {"model": `{"type":"BPE","byte_fallback":true,"vocab":{"a":0,"<0x41>":1},"merges":[]}`},
		"no bytes": {"pre_tokenizer": `{"type":` + bytes + `}`},
	} {
		if _, given := parts["decoder"]; !given {
			parts["decoder"] = "null"
		}
		tok := mustLoad(t, small(parts))
		require.Zero(t, tok.covers.bytes, name)
		require.Zero(t, tok.covers.least(strings.Repeat("a", 1000)), name)
	}
}

// TestLongTexts: a text of 8 MB that has too many tokens costs next to no memory where its bytes say so, and else what
// normalizing takes. Merging it would take 400 MB and more.
func TestLongTexts(t *testing.T) {
	kinds := map[string]string{"one word": strings.Repeat("zqxj", 2<<20), "words": strings.Repeat("a b, c\n", 1<<20),
		"marks": strings.Repeat("\u0300", 4<<20), "digits": strings.Repeat("0123456789", 800_000)}
	for _, name := range []string{"gpt2", "llama2", "llama3", "qwen3", "mistral3-resaved"} {
		tok := loadFile(t, "testdata/"+name+"/tokenizer.json")
		for kind, text := range kinds {
			for most, mib := range map[int]uint64{2048: 1, 1 << 16: 256} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := tok.EncodeAtMost(text, true, most)
				runtime.ReadMemStats(&after)
				require.Equal(t, &LimitError{most}, err, "%s: %s", name, kind)
				require.LessOrEqual(t, (after.TotalAlloc-before.TotalAlloc)>>20, mib, "%s: %s", name, kind)
			}
		}
	}
}
