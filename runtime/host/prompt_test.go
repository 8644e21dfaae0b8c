package host_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/text/sampling"
)

// prompts are the facts of a build with kernels for n tokens of a prompt and for passes of the given rows.
func prompts(tokens int, rows ...int) func(*host.Facts) {
	return func(f *host.Facts) {
		passes(rows...)(f)
		f.Prompt = tokens
	}
}

// oneVariant after the settings of a build says that its passes over prompts have tokens of one variant.
const oneVariant = ", a variant at a time"

// openPrompts opens a build with a kernel for prompts; image is what its fatbin says, or "" for what fits the facts.
func openPrompts(t *testing.T, settings, image string, tokens int, rows ...int) (*host.Session, error) {
	t.Helper()
	hosttest.NeedDriver(t)
	settings, ends := strings.CutSuffix(settings, oneVariant)
	dir := hosttest.Build(t, settings, prompts(tokens, rows...))
	if ends {
		image = fmt.Sprintf("prompt=%d prompt_spans=0", tokens)
	}
	if image != "" {
		hosttest.Write(t, dir, host.PromptFile, []byte("FAKE "+image+" \x00"))
	}
	s, err := host.Open(t.Context(), dir, host.Options{
		Reference: func(r host.Resident) (host.Reference, error) { return &hosttest.Twin{Resident: r}, nil }})
	if err == nil {
		t.Cleanup(func() { require.NoError(t, s.Close()) })
	}
	return s, err
}

// Known tokens are decoded by passes over prompts, alongside passes of several rows or without them, across variants,
// with logits or without, in whatever parts they come; what follows them is what follows the same tokens one by one.
// The fake kernel complains about a pass of more tokens than fit, or that runs into another variant where none may.
func TestFeedUsesPassesOverPrompts(t *testing.T) {
	for _, settings := range []string{"", variants, variants + oneVariant} {
		for _, build := range [][]int{{64}, {16, 8}, {128, 3}} {
			t.Run(fmt.Sprint(settings, build), func(t *testing.T) {
				s, err := openPrompts(t, settings, "", build[0], build[1:]...)
				require.NoError(t, err)
				rng := rand.New(rand.NewPCG(1, uint64(build[0])))
				for range 20 {
					s.Reset()
					text := make([]int, 1+rng.IntN(128))
					for i := range text {
						text[i] = rng.IntN(4096)
					}
					for at := 0; at < len(text); {
						n, seen := 1+rng.IntN(len(text)-at), at
						var each func(int, []float32) error
						if rng.IntN(2) == 0 {
							each = func(position int, logits []float32) error {
								require.Equal(t, seen, position)
								_, chosen := hosttest.Mirror(text[:position+1])
								require.Equal(t, chosen, slices.Index(logits, slices.Max(logits)))
								seen++
								return nil
							}
						}
						next, err := s.Feed(t.Context(), text[at:at+n], each)
						require.NoError(t, err)
						_, chosen := hosttest.Mirror(text[:at+n])
						require.Equal(t, chosen, next)
						at += n
						require.Equal(t, at, s.Position())
						if each != nil {
							require.Equal(t, at, seen)
						}
					}
				}
			})
		}
	}
}

// A pass takes known tokens of all variants, or where it may not up to the end of one; a few are not worth it. It
// leaves the last one to a step that gives logits, or chooses by settings.
func TestSizesOfPassesOverPrompts(t *testing.T) {
	for name, c := range map[string]struct {
		settings     string
		start, known int
		by           string
		want         int
	}{
		"across variants":           {variants, 8, 100, "", 100},
		"all":                       {"", 0, 100, "", 100},
		"all but the last":          {"", 0, 100, "settings", 99},
		"for hidden states":         {"", 0, 100, "hidden", 99},
		"as many as a pass takes":   {"", 0, 128, "", 100},
		"to the end of a variant":   {variants + oneVariant, 20, 100, "", 30},
		"logits have room for 32":   {"", 0, 100, "logits", 32},
		"the last of the logits":    {"", 0, 20, "logits", 19},
		"few":                       {"", 0, 7, "", 0},
		"few but the last":          {"", 0, 8, "settings", 0},
		"as few as are worth it":    {"", 0, 8, "", 8},
		"few before the variant's":  {variants + oneVariant, 44, 60, "", 0},
		"at the last position":      {"", 127, 1, "", 0},
		"up to the last position":   {"", 100, 28, "", 28},
		"one token":                 {"", 0, 1, "logits", 0},
		"the end of the first of 3": {variants + oneVariant, 0, 128, "", 16},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := openPrompts(t, c.settings, "", 100)
			require.NoError(t, err)
			for range c.start {
				_, err := s.Feed(t.Context(), []int{7}, nil)
				require.NoError(t, err)
			}
			var want host.Outputs
			each := func(int, []float32) error { return nil }
			switch c.by {
			case "logits":
				want.Logits = each
			case "hidden":
				want.Hidden = each
			case "settings":
				o := sampling.Greedy()
				o.Temperature = 1
				require.True(t, s.Choose(&o, sampling.Text{Prompt: make([]int, c.start+c.known)}))
			}
			require.Equal(t, c.want, s.PromptTokens(c.known, want))
		})
	}
}

// The check compares passes over prompts with single tokens: their logits, and what they leave in the cache where they
// have too many tokens for logits.
func TestCheckComparesPassesOverPrompts(t *testing.T) {
	for name, c := range map[string]struct{ image, failure string }{
		"the same":        {"prompt=128", ""},
		"other logits":    {"prompt=128 prompt_off=1", "two runs of the kernel differ"},
		"a row in a pass": {"prompt=128 prompt_lost=77", "decoded by passes over prompts or token by token"},
		"another token":   {"prompt=128 prompt_picks=1", "a pass over a prompt chooses token"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := openPrompts(t, "", c.image, 128)
			require.NoError(t, err)
			var last, total int64
			r, err := s.Check(t.Context(), func(_ string, done, of int64) {
				require.Greater(t, done, last)
				last, total = done, of
			})
			require.NoError(t, err)
			require.Equal(t, total, last)
			require.Equal(t, c.failure == "", r.Passed, "%v", r.Failures)
			require.Zero(t, s.Position())
			if c.failure != "" {
				require.Contains(t, fmt.Sprint(r.Failures), c.failure)
			}
		})
	}
}

// A pass that was aborted leaves the session where it was.
func TestAbortInAPassOverAPrompt(t *testing.T) {
	s, err := openPrompts(t, "hang_at=30", "", 16)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Feed(ctx, make([]int, 60), nil)
		done <- err
	}()
	time.Sleep(20 * time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Zero(t, s.Position()%16, "whole passes")
	require.Less(t, s.Position(), 31)
	s.Reset()
	requireNext(t, s)

	_, err = s.Feed(ctx, make([]int, 60), nil)
	require.ErrorIs(t, err, context.Canceled, "before a launch")
}

// requireNext decodes a prompt from position 0 on.
func requireNext(t *testing.T, s *host.Session) {
	t.Helper()
	text := []int{4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	next, err := s.Feed(t.Context(), text, nil)
	require.NoError(t, err)
	_, chosen := hosttest.Mirror(text)
	require.Equal(t, chosen, next)
}

func TestStallInAPassOverAPrompt(t *testing.T) {
	s, err := openPrompts(t, "stall_at=11", "", 64)
	require.NoError(t, err)
	_, err = s.Feed(t.Context(), make([]int, 40), nil)
	var stall *host.StallError
	require.ErrorAs(t, err, &stall)
	require.Equal(t, 0, stall.Position)
	require.Zero(t, s.Position())
	requireNext(t, s)
}

// A file that is not a kernel for prompts of this build is refused before anything large is loaded.
func TestKernelsForPromptsThatAreRefused(t *testing.T) {
	for image, want := range map[string]string{
		"prompt=64 prompt_abi=12":               "runtime ABI is 12",
		"prompt=64 prompt_short=8":              "40 bytes, and 48 are expected",
		"prompt=32":                             "passes of 32 tokens, and the manifest says 64",
		"prompt=0":                              "a size that no kernel has",
		"prompt=64 layout=1":                    "rows of its cache are laid out otherwise",
		"prompt=64 model=1":                     "compiled with another model_config.h",
		"prompt=5000":                           "a size that no kernel has",
		"prompt=64 prompt_threads=0":            "a size that no kernel has",
		"prompt=64 prompt_workspace=0":          "a size that no kernel has",
		"prompt=64 prompt_workspace=" + tooBig:  "a size that no kernel has",
		"prompt=64 prompt_matrices=600":         "a size that no kernel has",
		"prompt=64 prompt_list=-1":              "a size that no kernel has",
		"prompt=64 prompt_maps=-512":            "a size that no kernel has",
		"prompt=64 more=64":                     "its weights and cache have other sizes",
		"prompt=64 prompt_shared=300000":        "of shared memory a block",
		"prompt=64 prompt_threads=4096":         "4096 threads a block",
		"rows=8":                                "rows of a pass 8, and the manifest says 1",
		"prompt=64 prompt_workspace=" + allOfIt: "memory",
	} {
		t.Run(image, func(t *testing.T) {
			_, err := openPrompts(t, "", image, 64)
			require.ErrorContains(t, err, want)
		})
	}
	hosttest.NeedDriver(t)
	dir := hosttest.Build(t, "", prompts(64))
	require.NoError(t, os.Remove(filepath.Join(dir, host.PromptFile)))
	_, err := host.Open(t.Context(), dir, host.Options{})
	var build *host.BuildError
	require.ErrorAs(t, err, &build)
	require.Equal(t, filepath.Join(dir, host.PromptFile), build.Path)
}

const (
	tooBig  = "68719476737" // a byte more than 64 GiB
	allOfIt = "68719476736" // more than the device has
)

func TestPartsOfPrompts(t *testing.T) {
	s, err := openPrompts(t, "", "", 64)
	require.NoError(t, err)
	facts := s.Facts()
	require.Equal(t, 64, facts.PromptPart())
	require.Equal(t, 64, s.PromptTokens(facts.PromptPart(), host.Outputs{}), "all of a part is read by one pass")
	require.Equal(t, 32, (&host.Facts{}).PromptPart())
}

// What a session with a kernel for prompts takes is what its sizes say, and its files are those of the build.
func TestMemoryOfPrompts(t *testing.T) {
	info := host.Info{SMs: 4, Vocab: 4096, MaxSeq: 128, Hidden: 1024, ExchangeBytes: 1, WeightBytes: 1, CacheBytes: 1}
	const page = 2 << 20
	without := info.Footprint(1, 0).Bytes()
	require.Equal(t, uint64(page), info.Footprint(1, 64, host.PromptBytes(page-4*64, 64)).Bytes()-without)
	require.Equal(t, uint64(2*page), info.Footprint(1, 64, host.PromptBytes(page, 64)).Bytes()-without)
	require.Equal(t, uint64(page), info.Footprint(1, 512, host.PromptBytes(1, 512)).Bytes()-without,
		"embeddings, and hidden states, of 512 tokens of 1024 elements have a page each")
	require.Equal(t, uint64(3*page), info.Footprint(1, 513, host.PromptBytes(1, 513)).Bytes()-without)
}

// Who asks is told how far a long input is, before its first launch and after each; of one that a launch or two read,
// nobody is told.
func TestProgressOfInputs(t *testing.T) {
	for name, c := range map[string]struct {
		prompt, n int
		logits    bool
		want      []int64
	}{
		"passes over a prompt":    {16, 40, false, []int64{0, 16, 32, 40}},
		"a part":                  {16, 16, false, nil},
		"more than a part":        {16, 17, false, []int64{0, 16, 17}},
		"with logits":             {64, 60, true, []int64{0, 32, 59, 60}},
		"a part with logits":      {64, 33, true, nil},
		"steps":                   {0, 100, false, []int64{0, 32, 64, 96, 100}},
		"as many steps as launch": {0, 32, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := openPrompts(t, "", "", c.prompt)
			require.NoError(t, err)
			var told []int64
			s.SetProgress(func(activity string, done, total int64) {
				require.Equal(t, "reading tokens", activity)
				require.EqualValues(t, c.n, total)
				require.EqualValues(t, done, s.Position())
				told = append(told, done)
			})
			var each func(int, []float32) error
			if c.logits {
				each = func(int, []float32) error { return nil }
			}
			_, err = s.Feed(t.Context(), make([]int, c.n), each)
			require.NoError(t, err)
			require.Equal(t, c.want, told)
			s.SetProgress(nil)
			s.Reset()
			_, err = s.Feed(t.Context(), make([]int, c.n), each)
			require.NoError(t, err)
			require.Equal(t, c.want, told)
		})
	}
}
