package host_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/driver"
	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/runtime/shape"
)

func TestOpenRefuses(t *testing.T) {
	hosttest.NeedDriver(t)
	for name, c := range map[string]struct {
		settings string
		edit     func(*host.Facts)
		damage   func(t *testing.T, dir string)
		want     any // pointer to the error type
		text     string
	}{
		"fewer SMs": {"sms=133", func(f *host.Facts) { f.Target.SMs = 133 }, nil, new(*host.DeviceError),
			"GPU 0 (Fake A): compiled for 133 SMs, this device has 132; recompile with --target sm_90 --num-sms 132"},
		"older architecture": {"", func(f *host.Facts) { f.Target.Arch = "sm_100" }, nil, new(*host.DeviceError),
			"compiled for sm_100, and this device is sm_90"},
		"architecture-specific code": {"", func(f *host.Facts) { f.Target.Arch = "sm_80a" }, nil,
			new(*host.DeviceError),
			"compiled for sm_80a, and this device is sm_90"},
		"shared memory": {"shared=232449", nil, nil, new(*host.DeviceError),
			"compiled for 227.0 KiB of shared memory a block"},
		"cache too large": {"cache=2147483648 max_seq=131072 end0=131072",
			func(f *host.Facts) { f.Model.MaxSeq = 131072 }, nil, new(*host.MemoryError),
			"has 1.0 GiB of 4.0 GiB free, and this build needs 2.0 GiB: weights 2.0 MiB, KV cache for 131072 " +
				"positions 2.0 GiB, " +
				"scratch 8.0 MiB; recompile with --max-seq 64768 or less"},
		"weights too large": {"weights=2147483648", nil, nil, new(*host.MemoryError),
			"the weights alone do not fit"},
		"another build's fatbin": {"vocab=4000", nil, nil, new(*host.BuildError),
			"compiled for vocab 4000, and the manifest says 4096"},
		"another ABI": {"abi=3", nil, nil, new(*host.BuildError), "its runtime ABI is 3"},
		"absurd variants": {"variants=2 end0=64 end1=64", nil, nil, new(*host.BuildError),
			"variant 1 ends at position 64"},
		"weights of another size": {"weights=8192", nil, nil, new(*host.BuildError),
			"it holds 4096 bytes of weights, and the kernel was compiled for 8192"},
		"no weights": {"", nil, remove(host.WeightsFile), new(*host.BuildError), "make them with amkc pack MODEL"},
		"truncated weights": {"", nil, func(t *testing.T, dir string) {
			hosttest.Write(t, dir, host.WeightsFile, []byte{255, 0, 0, 0, 0, 0, 0, 0, 1})
		}, new(*host.BuildError), "its header claims 255 bytes of the 9 in the file"},
		"no fatbin": {"", nil, remove(host.FatbinFile), new(*host.BuildError), "run make"},
		"no manifest": {"", nil, remove(host.ManifestFile), new(*host.BuildError),
			"this looks like a model: compile it first"},
		"empty manifest": {"", nil, func(t *testing.T, dir string) {
			hosttest.Write(t, dir, host.ManifestFile, []byte(`{"format": 1}`))
		}, new(*host.BuildError), `it has no "facts"`},
		"a manifest of another amkc": {"", nil, func(t *testing.T, dir string) {
			hosttest.Write(t, dir, host.ManifestFile, []byte(`{"format": 2, "facts": {}}`))
		}, new(*host.BuildError), "it has format 2, and this program reads format 1; compile the model again"},
		"no fatbin of passes": {"", passes(8), remove("rows8/megakernel.fatbin"), new(*host.BuildError), "run make"},
		"passes of another number": {"", passes(8), func(t *testing.T, dir string) {
			hosttest.Write(t, dir, "rows8/megakernel.fatbin", []byte("FAKE rows=4 \x00"))
		}, new(*host.BuildError), "compiled for rows of a pass 4, and the manifest says 8"},
		"one row instead of passes": {"", passes(8), func(t *testing.T, dir string) {
			hosttest.Write(t, dir, "rows8/megakernel.fatbin", []byte("FAKE rows=1 \x00"))
		}, new(*host.BuildError), "compiled for rows of a pass 1, and the manifest says 8"},
		"passes of another cache": {"", passes(8), func(t *testing.T, dir string) {
			hosttest.Write(t, dir, "rows8/megakernel.fatbin", []byte("FAKE rows=8 more=1 \x00"))
		}, new(*host.BuildError), "other sizes than those of megakernel.fatbin"},
		"passes of another layout of the cache": {"", passes(8), func(t *testing.T, dir string) {
			hosttest.Write(t, dir, "rows8/megakernel.fatbin", []byte("FAKE rows=8 layout=1 \x00"))
		}, new(*host.BuildError), "rows of its cache are laid out otherwise than those of megakernel.fatbin"},
		"passes of another model_config.h": {"", passes(8), func(t *testing.T, dir string) {
			hosttest.Write(t, dir, "rows8/megakernel.fatbin", []byte("FAKE rows=8 model=1 \x00"))
		}, new(*host.BuildError), "compiled with another model_config.h than megakernel.fatbin"},
		"passes of too many rows": {"", passes(9), nil, new(*host.BuildError),
			"facts.passes has one of 9 rows as its number 1"},
		"passes twice": {"", passes(4, 4), nil, new(*host.BuildError),
			"facts.passes has one of 4 rows as its number 2"},
		"unknown dtype": {"", func(f *host.Facts) { f.Model.DType = "I4" }, nil, new(*host.BuildError),
			`facts.model.dtype is "I4"`},
		"invented weights and a file of all": {"", invents(host.InventedMatrix{At: 256, Bytes: 1024}), nil,
			new(*host.BuildError), "it holds 4096 bytes of weights, and the kernel was compiled for 3072"},
		"invented weights beyond the others": {"", invents(host.InventedMatrix{At: 4096, Bytes: 256}), nil,
			new(*host.BuildError), "matrix 0 of its invented weights has 256 bytes from byte 4096 on, of pattern 0; " +
				"want a multiple of 8 after byte 0, in 4096 bytes of weights, and one of 1 patterns"},
		"invented weights twice": {"", invents(host.InventedMatrix{At: 256, Bytes: 256},
			host.InventedMatrix{At: 504, Bytes: 8}), nil, new(*host.BuildError), "after byte 512"},
		"invented weights of no pattern": {"", invents(host.InventedMatrix{Bytes: 8, Pattern: 1}), nil,
			new(*host.BuildError), "of pattern 1"},
		"invented weights of half a number": {"", invents(host.InventedMatrix{At: 4, Bytes: 8}), nil,
			new(*host.BuildError), "8 bytes from byte 4 on"},
		"a pattern without bytes": {"", func(f *host.Facts) {
			f.Invented = &host.Invented{Patterns: []host.Pattern{{}}}
		}, nil, new(*host.BuildError), "pattern 0 of its invented weights keeps 0 bytes and sets 0"},
		"no code for the device": {"", nil, func(t *testing.T, dir string) {
			hosttest.Write(t, dir, host.FatbinFile, []byte("209\x00"))
		}, new(*driver.Problem), "build again for target sm_90"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := hosttest.Build(t, c.settings, c.edit)
			if c.damage != nil {
				c.damage(t, dir)
			}
			_, err := host.Open(t.Context(), dir, host.Options{})
			require.ErrorAs(t, err, c.want)
			require.ErrorContains(t, err, c.text)
		})
	}
}

// invents leaves matrices out of the weights of a build.
func invents(matrices ...host.InventedMatrix) func(*host.Facts) {
	return func(f *host.Facts) {
		f.Invented = &host.Invented{Seed: 7, Matrices: matrices, Patterns: []host.Pattern{{
			Keep: []byte{0xff, 0x0f, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 1, 1, 1, 1, 1, 1},
			Set:  []byte{0, 0x80, 0x12, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2}}}}
	}
}

// Invented weights are on the GPU where the file has none, and the others around them. A byte of theirs depends on its
// place and the seed alone.
func TestOpenInvents(t *testing.T) {
	hosttest.NeedDriver(t)
	edit := invents(host.InventedMatrix{At: 256, Bytes: 1024}, host.InventedMatrix{At: 3584, Bytes: 504})
	dir := hosttest.Build(t, "", edit)
	file := hosttest.Weights(4096 - 1024 - 504)
	stored := file[len(file)-(4096-1024-504):]
	for i := range stored[8:] {
		stored[8+i] = byte(i)
	}
	hosttest.Write(t, dir, host.WeightsFile, file)
	var done, total int64
	s, err := host.Open(t.Context(), dir, host.Options{Progress: func(_ string, d, n int64) { done, total = d, n }})
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, [2]int64{4096, 4096}, [2]int64{done, total})
	got, err := s.WeightsOnGPU()
	require.NoError(t, err)
	f := s.Facts()
	first, second := make([]byte, 1024), make([]byte, 504)
	f.Invented.Fill(first, &f.Invented.Matrices[0], 0)
	f.Invented.Fill(second, &f.Invented.Matrices[1], 0)
	require.Equal(t, slices.Concat(stored[:256], first, stored[256:2560], second, stored[2560:]), got)

	for i, b := range first {
		p := f.Invented.Patterns[0]
		require.Equal(t, p.Set[i%16], b&^p.Keep[i%16])
	}
	again := make([]byte, 512)
	f.Invented.Fill(again, &f.Invented.Matrices[0], 504)
	require.Equal(t, first[504:504+512], again)
	f.Invented.Seed++
	f.Invented.Fill(again, &f.Invented.Matrices[0], 504)
	require.NotEqual(t, first[504:504+512], again)
}

// passes gives a build kernels for passes of several rows.
func passes(rows ...int) func(*host.Facts) {
	return func(f *host.Facts) {
		for _, n := range rows {
			hosttest.AddPasses(f, shape.Pass{Rows: n})
		}
	}
}

func remove(name string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, name))) }
}

func TestOpenExplainsHubIDs(t *testing.T) {
	_, err := host.Open(t.Context(), "meta-llama/Llama-3.2-1B", host.Options{})
	require.ErrorContains(t, err, "no such directory; name a local directory that amkc wrote; a model on a hub must "+
		"be downloaded")
}

func TestOpenReportsProgressAndIsCancelled(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := hosttest.Build(t, "", nil)
	var done, total int64
	s, err := host.Open(t.Context(), dir, host.Options{Progress: func(_ string, d, n int64) { done, total = d, n }})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Equal(t, int64(4096), done)
	require.Equal(t, done, total)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = host.Open(ctx, dir, host.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestOpenMissingGPU(t *testing.T) {
	hosttest.NeedDriver(t)
	_, err := host.Open(t.Context(), hosttest.Build(t, "", nil), host.Options{GPU: 7})
	require.ErrorIs(t, err, driver.ErrNoDevice)
}

// numbers lists the numbers below n.
func numbers(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = strconv.Itoa(i)
	}
	return strings.Join(words, ",")
}

func TestStopIDs(t *testing.T) {
	for _, c := range []struct {
		config, generation string
		want               []int
		err                string
	}{
		{`{"eos_token_id": 2}`, "", []int{2}, ""},
		{`{"eos_token_id": [128001, 128009]}`, `{"eos_token_id": [128001, 128008]}`, []int{128001, 128008, 128009}, ""},
		{`{"eos_token_id": null}`, `{"eos_token_id": 5}`, []int{5}, ""},
		{`{}`, "", nil, ""},
		{`{"text_config": {"eos_token_id": [7, 2]}}`, `{"eos_token_id": 2}`, []int{2, 7}, ""},
		{`{"eos_token_id": 3, "text_config": {"eos_token_id": null}}`, "", []int{3}, ""},
		{`{"text_config": null}`, "", nil, ""},
		{`{"text_config": {"eos_token_id": "</s>"}}`, "", nil, "eos_token_id cannot be read"},
		{`{"eos_token_id": "</s>"}`, "", nil, "eos_token_id cannot be read"},
		{`{"eos_token_id": -1}`, "", nil, "it is -1"},
		{`{"eos_token_id": 2.0}`, "", nil, "it is 2.0; want an id, a list of ids, or null"},
		{`{"eos_token_id": 4294967298}`, "", nil, "it is 4294967298"}, // 2 in 32 bits
		{`{"eos_token_id": [2, [3]]}`, "", nil, "number 2 of the list is [3]"},
		{`{"eos_token_id": {"a": "` + strings.Repeat("x", 1000) + `"}}`, "", nil, "…; want an id"},
		{`{"eos_token_id": [` + numbers(256) + `]}`, `{"eos_token_id": 256}`, nil,
			"eos_token_id has 257 ids; the kernel knows 256 at most"},
		{`{`, "", nil, "eos_token_id cannot be read"},
	} {
		dir := t.TempDir()
		hosttest.Write(t, dir, host.ConfigFile, []byte(c.config))
		if c.generation != "" {
			hosttest.Write(t, dir, host.GenConfigFile, []byte(c.generation))
		}
		ids, err := host.StopIDs(dir)
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, ids)
	}
	ids, err := host.StopIDs(t.TempDir())
	require.NoError(t, err)
	require.Empty(t, ids)
}

// A text ends after the token that the tokenizer names, too: its id is the one that the tokenizer gives it, and where
// there is no tokenizer.json, the one that tokenizer_config.json lists.
func TestStopOfTheTokenizer(t *testing.T) {
	const (
		end    = `{"eos_token": "<|im_end|>"}`
		listed = `{"eos_token": {"content": "<|im_end|>", "special": true}, "added_tokens_decoder": {"7": {"content":
			"<|im_start|>"}, "9": {"content": "<|im_end|>"}}}`
		added = `{"added_tokens": [{"id": 8, "content": "<|im_end|>"}], "model": {"vocab": {"<|im_end|>": 3}}}`
	)
	for name, c := range map[string]struct {
		tokenizerConfig, tokenizer, special string
		want                                []int
	}{
		"listed":                      {listed, "", "", []int{5, 9}},
		"added":                       {end, added, "", []int{5, 8}},
		"added and listed":            {listed, added, "", []int{5, 8}},
		"in the vocabulary":           {end, `{"model": {"vocab": {"a": 0, "<|im_end|>": 3}}}`, "", []int{3, 5}},
		"the same":                    {end, `{"added_tokens": [{"id": 5, "content": "<|im_end|>"}]}`, "", []int{5}},
		"in special_tokens_map.json":  {"{}", added, end, []int{5, 8}},
		"above tokenizer_config.json": {`{"eos_token": "x"}`, added, end, []int{5, 8}},
		"no token of it":              {`{"eos_token": "</s>"}`, added, "", []int{5}},
		"null":                        {`{"eos_token": null}`, added, "", []int{5}},
		"none":                        {"", added, "", []int{5}},
		"a list of pieces":            {end, `{"model": {"vocab": [["<|im_end|>", 0.5]]}}`, "", []int{5}},
		"more than 32 bits": {end, `{"added_tokens": [{"id": 4294967301, "content": "<|im_end|>"}]}`, "",
			[]int{5}},
		"files that cannot be read": {"{", "{", "{", []int{5}},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{host.ConfigFile: `{"eos_token_id": [5]}`,
			host.GenConfigFile: `{"eos_token_id": 5}`, "tokenizer_config.json": c.tokenizerConfig,
			host.TokenizerFile: c.tokenizer, "special_tokens_map.json": c.special} {
			if text != "" {
				hosttest.Write(t, dir, file, []byte(text))
			}
		}
		ids, err := host.StopIDs(dir)
		require.NoError(t, err, name)
		require.Equal(t, c.want, ids, name)
	}
}
