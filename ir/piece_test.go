package ir

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
	"amkc/ir/transform"
)

func TestPieceForms(t *testing.T) {
	for text, want := range map[string]Piece{
		"rows(k)":              {Key: "k"},
		"rows(rows)":           {Key: "rows"},
		`pairs:64("a key(1)")`: {Key: "a key(1)", Chain: transform.Of(transform.Pairs, 64)},
		"pairs:16(rows:0:32:64(L{i}.qkv))": {Key: "L{i}.qkv", Chain: transform.Of(transform.Rows, 0, 32, 64).
			Then(transform.Transform{Kind: transform.Pairs, Ints: []int{16}})},
		"even(plus:1(transpose(times:-1.5e-07(w))))": {Key: "w", Chain: transform.Chain{
			{Kind: transform.Times, By: -1.5e-7}, {Kind: transform.Transpose}, {Kind: transform.Plus, By: 1},
			{Kind: transform.Even}}},
	} {
		got, err := ParsePiece(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
	for text, want := range map[string]string{
		"k":                             "unknown transform \"k\", want one of rows, pairs, halves, even",
		"":                              "want a transform or a state-dict key",
		"pairs(k)x":                     "unexpected \"x\"",
		"even(rows(k))":                 "rows without LO and HI inside another transform, want the key on its own",
		"rows(rows(k))":                 `want ")"`,
		"plus(k)":                       `want ":"`,
		"plus:x(k)":                     "want a finite number",
		"plus:1e999(k)":                 "want a finite number",
		"transpose:1(k)":                `want "("`,
		"pairs:4(k":                     `want ")"`,
		"rows:1:2:3:4(k)":               `want "("`,
		"pairs:99999999999999999999(k)": "want HEAD of pairs, an integer",
		strings.Repeat("transpose(", 9) + "k" + strings.Repeat(")", 9): "more than 8 transforms of a piece",
	} {
		_, err := ParsePiece(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestWeightsOfGraphsPrint(t *testing.T) {
	w := GraphWeight{Key: "L{i}.w"}
	require.Equal(t, "L{i}.w", w.String())
	w.Chain = transform.Of(transform.Rows, 0, 8).Then(transform.Of(transform.Transpose)...)
	require.Equal(t, "transpose(rows:0:8(L{i}.w))", w.String())
}

// What a program says of its pieces has to fit on its own, whatever the checkpoint holds.
func TestCheckPieces(t *testing.T) {
	for from, want := range map[string]string{
		"rows:0:95(k)":                                    "its pieces have 95 rows; want 96",
		"rows:0:48(k) rows:0:48(k)":                       "",
		"rows:0:48(k) rows(k)":                            "",
		"rows:0:96(k) rows(k)":                            "its pieces have 96 rows and multiples of 1; want 96 in all",
		"rows:0:90(k) pairs:4(k)":                         "its pieces have 90 rows and multiples of 4; want 96 in all",
		"pairs:64(k)":                                     "its pieces have 0 rows and multiples of 64; want 96 in all",
		"pairs:32(k)":                                     "",
		"even(pairs:16(k)) odd(pairs:16(k))":              "",
		"even(k)":                                         "piece 1 is even(KEY); each even piece",
		"transpose(rows:0:64(k))":                         "",
		"transpose(rows:0:63(k))":                         "piece \"k\" has rows of 63 elements, want 64",
		"transpose(pairs:48(k))":                          "piece \"k\" has rows of 48 elements, want 64",
		"plus:1e-50(k)":                                   "plus:1e-50 wants a magnitude",
		"times:0.5(rows:8:4(k))":                          "piece \"k\": rows:8:4 wants LO below HI",
		"pairs:16(halves:16(rows:0:48:64(transpose(k))))": "",
	} {
		_, good := tiny(t)
		text := strings.Replace(string(good), "rows(model.embed_tokens.weight)", from, 1)
		require.NotEqual(t, string(good), text)
		p, diags := ParseText([]byte(text), "f")
		require.NoError(t, diags.Err(), from)
		got := Check(p)
		if want == "" {
			require.NoError(t, got.Err(), from)
			continue
		}
		require.ErrorContains(t, got.Err(), want, from)
		require.Equal(t, CodePiece.ID, got[0].Code)
	}
}

// TestTransformsManual holds the table of transforms in docs/ir.md to the declarations; -update writes it.
func TestTransformsManual(t *testing.T) {
	text, err := os.ReadFile(manual)
	require.NoError(t, err)
	const begin, end = "<!-- transforms -->\n", "<!-- end of transforms -->\n"
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	require.True(t, found && closed, "%s has no place for the transforms", manual)
	table := "\n| transform | what it makes of a tensor |\n|---|---|\n"
	for _, s := range transform.All() {
		table += "| `" + s.Usage() + "` | " + s.Doc + " |\n"
	}
	want := before + begin + table + "\n" + end + after
	if *update {
		require.NoError(t, os.WriteFile(manual, []byte(want), 0o666))
		return
	}
	require.Equal(t, want, string(text), "go test ./ir -run Manual -update")
}

func FuzzParsePiece(f *testing.F) {
	for _, s := range []string{"rows(k)", "pairs:64(rows:0:512:1024(k))", "even(plus:-1e-5(transpose(\"a b\")))"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		defer watch.Execution()()
		pc, err := ParsePiece(s)
		if err != nil {
			return
		}
		again, err := ParsePiece(pc.String())
		require.NoError(t, err, pc.String())
		require.Equal(t, pc, again)
		rows, cols, err := pc.Chain.Shape(transform.Any, transform.Any)
		if err == nil {
			require.Positive(t, rows.N)
			require.Positive(t, cols.N)
		}
	})
}
