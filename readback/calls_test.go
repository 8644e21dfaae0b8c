package readback_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// kernelTokens are the tokens of what stands between the marks of megakernel.cu, comments apart.
var kernelTokens = regexp.MustCompile(`//.*|#pragma unroll 1|\w+|\+\+|&&|\S`)

// walkTokens are the places of the tokens of both walks.
func walkTokens(text string) (places [][]int) {
	for _, mark := range []string{"// amkc:walk\n", "// amkc:consume\n"} {
		begin := strings.Index(text, mark) + len(mark)
		end := begin + strings.Index(text[begin:], "// amkc:end")
		for _, m := range kernelTokens.FindAllStringIndex(text[begin:end], -1) {
			if !strings.HasPrefix(text[begin+m[0]:], "//") {
				places = append(places, []int{begin + m[0], begin + m[1]})
			}
		}
	}
	return places
}

// Every token of both walks matters: whichever is deleted, doubled or replaced by another one of the walks is refused
// by the reader, or makes another program. Nothing is emitted again here. Unless AMKC_LONG is set, every second
// token is deleted or doubled.
func TestEveryTokenOfTheWalksIsReadBack(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	const kernel = 4
	dirs, few := []string{"qwen3-window-half_h200_bf16"}, 4 // with branches of both kinds; each build takes seconds
	if os.Getenv("AMKC_LONG") != "" {
		dirs, few = builds(t), 1
	}
	for _, dir := range dirs {
		t.Run(dir, func(t *testing.T) {
			h, want := headers(t, dir), programOf(t, dir)
			text := string(h[kernel])
			places := walkTokens(text)
			require.Greater(t, len(places), 300)
			others := map[string]bool{"k": true, "7": true, "-": true, "/": true, "kQkvWeight": true, "O": true}
			for _, at := range places {
				others[text[at[0]:at[1]]] = true
			}
			for n, at := range places {
				token := text[at[0]:at[1]]
				try := func(other string) {
					what := fmt.Sprintf("%s -> %s at %d", token, other, at[0])
					e := edit{what, kernel, text[:at[0]] + other + text[at[1]:]}
					require.NotEmpty(t, findings(h, e, want), e.what)
				}
				if few == 1 || n%few == 0 {
					try("")
				}
				if few == 1 || n%few == 1 {
					try(token + " " + token)
				}
				for i, other := range slices.Sorted(maps.Keys(others)) { // a few, and others for each token
					if other != token && (i+n)%(17*few) == 0 {
						try(" " + other + " ")
					}
				}
			}
		})
	}
}

// What the grammar of the calls keeps out, with the place where it stands.
func TestRefusalsOfCalls(t *testing.T) {
	const kernel, dir = 4, "llama-gqa_t4_fp16_split"
	h, want := headers(t, dir), programOf(t, dir)
	for _, c := range []struct{ name, old, text, want string }{
		{"no mark", "// amkc:walk", "// walk", "want the marks // amkc:walk and // amkc:consume, each with a line"},
		{"no end", "// amkc:end", "// end", "want the marks // amkc:walk and // amkc:consume, each with a line"},
		{"a joined line", "// amkc:consume\n", "// amkc:consume\n// this \\\n",
			"want printable text without backslashes"},
		{"a directive", "#pragma unroll 1\n    for (int", "#pragma unroll 2\n    for (int",
			"want #pragma unroll 1 and a loop"},
		{"a directive before code", "#pragma unroll 1\n    for (c.layer", "#pragma unroll 1 for (c.layer", "AMK4915"},
		{"a sign alone", "++c.layer", "+ +c.layer", `"+"; want ++ [AMK4915]`},
		{"another bound", "c.layer < kLayers", "c.layer < kHeads", `"kHeads"; want kLayers [AMK4915]`},
		{"a branch of no variant", "c.position < kShortEnd", "c.position < kEnd", `"kEnd" is not an end of a variant`},
		{"a base of none", "base + kQkvWeight", "base + kX", "base + kX is the address of no weight"},
		{"a page of none", "PlainHeads{kQkv}", "PlainHeads{kQkvs}", "kQkvs is the page of no vector"},
		{"a stage twice", "o_stage(c, kAttn, kH);", "o_stage(c, kAttn, kH); o_stage(c, kAttn, kH);",
			"want in each layer c.enter(kStageGateUp); gate_up_stage("},
		{"a number without a stage", "combine<LongAttn>(c, kPart, kAttn);", "", "no call after c.enter or c.layer"},
		{"a cache that is not streamed", "turns.cache<LongPart>(p.c, layer, position);", "",
			"want in each layer turns.cache<LongPart>(layer, position)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Contains(t, string(h[kernel]), c.old)
			text := strings.Replace(string(h[kernel]), c.old, c.text, 1)
			found := strings.Join(findings(h, edit{c.name, kernel, text}, want), "\n")
			require.Contains(t, found, c.want)
			require.Contains(t, found, "megakernel.cu:")
		})
	}
}

// A product in parts has the columns of a matrix, which a vector of weights is not.
func TestPartsOfNoMatrixAreRefused(t *testing.T) {
	const dir, matrix = "gemma2-split-k_h200_bf16", "turns.weights<Down>(p.c, base + kDownWeight"
	h := headers(t, dir)
	kernel := slices.Index(files, "megakernel.cu")
	require.Contains(t, string(h[kernel]), matrix)
	text := strings.Replace(string(h[kernel]), matrix, "turns.weights<Down>(p.c, base + kPostNormWeight", 1)
	found := findings(h, edit{"a vector", kernel, text}, programOf(t, dir))
	require.Contains(t, strings.Join(found, "\n"),
		"struct Down has columns in 3 parts of L{i}.post_norm.weight, which is not a matrix; want those of one")
}
