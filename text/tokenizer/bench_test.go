package tokenizer

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"
)

// composed is text that NFC leaves as it is.
var composed = strings.Repeat(`The old lighthouse keeper counted the ships every evening; he didn't trust the sea.
Der Leuchtturmwärter zählte jeden Abend die Schiffe, und am nächsten Morgen größtenteils noch einmal.
Старый смотритель маяка каждый вечер считал корабли. 年老的灯塔看守人每天晚上数船。늙은 등대지기는 배를 세었다.
	for _, s := range ships { if s.Name == "" { continue }; n++ } // 12,345 entries
`, 50)

// benchmarked are the tokenizers of the benchmarks: families without a normalizer, with SentencePiece's, with NFC, and
// with several splits.
func benchmarked(b *testing.B) map[string]*Tokenizer {
	stacks := readStacks(b)
	return map[string]*Tokenizer{
		"llama2": loadFile(b, "testdata/llama2/tokenizer.json"), "llama3": loadFile(b, "testdata/llama3/tokenizer.json"),
		"qwen2": loadFile(b, "testdata/qwen2/tokenizer.json"), "gpt-oss": mustLoad(b, stacks["gpt-oss"].file(b)),
		"deepseek-llm": mustLoad(b, stacks["deepseek-llm"].file(b)), "falcon": mustLoad(b, stacks["falcon"].file(b)),
	}
}

// BenchmarkEncode encodes a long text; decomposed is one that NFC composes.
func BenchmarkEncode(b *testing.B) {
	for name, tok := range benchmarked(b) {
		for kind, text := range map[string]string{"": composed, "-decomposed": norm.NFD.String(composed)} {
			if kind != "" && name != "qwen2" {
				continue
			}
			b.Run(name+kind, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					_, err := tok.Encode(text, true)
					require.NoError(b, err)
				}
			})
		}
	}
}

// BenchmarkDecode decodes what BenchmarkEncode encodes.
func BenchmarkDecode(b *testing.B) {
	for name, tok := range benchmarked(b) {
		ids, err := tok.Encode(composed, true)
		require.NoError(b, err)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(composed)))
			b.ReportAllocs()
			for b.Loop() {
				require.NotEmpty(b, tok.Decode(ids, false))
			}
		})
	}
}

// BenchmarkLoad reads a tokenizer of 128,000 tokens and 127,744 merges over bytes.
func BenchmarkLoad(b *testing.B) {
	const size = 128_000
	d := draw(6)
	tokens, vocab := make([]string, 0, size), map[string]int{}
	for c := range 256 {
		vocab[byteLevelString(string([]byte{byte(c)}))] = c
		tokens = append(tokens, byteLevelString(string([]byte{byte(c)})))
	}
	var merges [][2]string
	for len(tokens) < size {
		pair := [2]string{tokens[d.below(len(tokens))], tokens[d.below(256)]}
		if whole := pair[0] + pair[1]; vocab[whole] == 0 {
			vocab[whole] = len(tokens)
			tokens, merges = append(tokens, whole), append(merges, pair)
		}
	}
	data, err := json.Marshal(map[string]any{"version": "1.0", "pre_tokenizer": map[string]string{"type": "ByteLevel"},
		"model": map[string]any{"type": "BPE", "vocab": vocab, "merges": merges}})
	require.NoError(b, err)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		mustLoad(b, data)
	}
}

// BenchmarkNFC is normalization alone: the quick check, and the rest.
func BenchmarkNFC(b *testing.B) {
	for name, text := range map[string]string{"composed": composed, "decomposed": norm.NFD.String(composed)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				require.Len(b, nfc.normalize(text), len(composed))
			}
		})
	}
}
