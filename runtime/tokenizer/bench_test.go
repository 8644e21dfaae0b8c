package tokenizer

import (
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

// BenchmarkEncode has families without a normalizer, with SentencePiece's, and with NFC; qwen2-decomposed is text that
// NFC composes.
func BenchmarkEncode(b *testing.B) {
	for name, text := range map[string]string{"llama2": composed, "llama3": composed, "qwen2": composed,
		"qwen2-decomposed": norm.NFD.String(composed)} {
		family, _, _ := strings.Cut(name, "-")
		tok := loadFile(b, "testdata/"+family+"/tokenizer.json")
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				_, err := tok.Encode(text, true)
				require.NoError(b, err)
			}
		})
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
