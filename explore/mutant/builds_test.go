package mutant_test

// The builds whose kernels are mutated: together they have every way in which the device runtime orders something.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/compiler"
	"amkc/explore"
	"amkc/ir"
	"amkc/passes"
	"amkc/validate"
)

// A small is how one of the builds is compiled: of a small model, for few SMs.
type small struct {
	name   string
	base   string // a model of testdata/models/zoo, of which two layers are taken; "": ofLlama
	config string // what differs from its config.json
	arch   int
	sms    int
	ring   string // tiling.ring; "": aRing
	tiling string // the rest of ScheduleConfig.tiling
	policy string // ScheduleConfig.sm_assignment, where it is not the default
	edit   func(o *compiler.Options)
	wide   bool // blocks have all of an SM's shared memory, which kernels for prompts take, and groups of warps
	shared int  // bytes of shared memory of a block, where they are not those with which the ring has few slots
	jobs   []string

	// What is done to the program: it is emitted as it is then.
	program func(p *ir.Program)
}

// ofLlama is the config of a model of two layers, in which each SM has a few tiles of each matrix.
const ofLlama = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
"intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
"vocab_size": 96, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
"tie_word_embeddings": false, "torch_dtype": "bfloat16"}`

// withExperts changes a model of experts: all layers have them, and more than a few tokens choose.
const withExperts = `{"num_experts": 16, "mlp_only_layers": [], "vocab_size": 96, "max_position_embeddings": 64}`

// aRing goes round often in small matrices.
const aRing = `"chunk_bytes": 4096, "in_flight": 2, "run_ahead": 3`

var (
	launches = []string{"launch", "stops", "drawings", "late-epochs", "steps"}
	passed   = []string{"launch", "rows2", "sequences2", "sequences2rows2"}
	prompts  = []string{"prompt-9", "prompt-3"}
)

var builds = []small{
	{name: "bulk copies", arch: 90, sms: 2, jobs: append(slices.Clone(launches), "abort", "reference", "measure")},
	// All warps of a block have tiles of their own, and a ring that is no longer than that. A unit of attention on each
	// SM is followed by another, and as many chunks may be in flight as the ring has slots.
	{name: "asynchronous copies", arch: 80, sms: 2, jobs: append(slices.Clone(launches), "measure"),
		config: `{"hidden_size": 144, "intermediate_size": 256}`,
		ring:   `"chunk_bytes": 4096, "in_flight": 8`,
		tiling: `"warps": {"qkv": 1, "o": 1, "gate_up": 1, "down": 1, "lm_head": 1}`,
		shared: 53248,
		edit: func(o *compiler.Options) {
			o.Formats, _ = passes.ParseWeightFormats("int8")
			o.Cache = dtype(ir.I8)
		}},
	// at the end a warp has two blocks of a context, of one head; the mean of each head is taken off
	{name: "plain copies", arch: 75, sms: 2, jobs: append(slices.Clone(launches), "ends"), base: "stablelm-head-norms",
		config: `{"num_key_value_heads": 4, "max_position_embeddings": 160, "vocab_size": 96}`,
		edit:   func(o *compiler.Options) { o.DType = dtype(ir.F16) }},
	{name: "counters", arch: 90, sms: 2, tiling: `"exchange": {"flagged": 0}`,
		config: `{"num_key_value_heads": 4}`, jobs: append(slices.Clone(launches), "measure")},
	{name: "layer barriers", arch: 90, sms: 2, jobs: launches, config: `{"intermediate_size": 256}`,
		tiling: `"loop": {"barrier": 1}, "warps": {"qkv": 2, "o": 2, "gate_up": 2, "down": 4, "lm_head": 2}`},
	// at the end a warp has several chunks of a context; columns of a head are padded; what two sequences have of a
	// unit is merged in two turns; and there is an SM with neither a unit of attention nor rows of o
	{name: "passes", arch: 90, sms: 4, jobs: append(slices.Clone(passed), "ends"), edit: several,
		tiling: `"attention": {"max_splits": 1}`,
		config: `{"hidden_size": 16, "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 12,
"max_position_embeddings": 160}`},
	// units of two sequences follow one another on an SM, and two warps write the rows of each
	{name: "counters in passes", arch: 90, sms: 4, jobs: passed, edit: several, config: `{"head_dim": 32}`,
		tiling: `"exchange": {"flagged": 0}, "attention": {"max_splits": 2, "split_from": 0}`},
	// no four columns of a head at a time
	{name: "counters in singles", arch: 75, sms: 4, jobs: passed, config: `{"head_dim": 18}`,
		tiling: `"exchange": {"flagged": 0}, "attention": {"max_splits": 2, "split_from": 0}`,
		edit:   func(o *compiler.Options) { several(o); o.DType = dtype(ir.F32) }},
	// columns of several slabs, of which the last is shorter, and groups of warps with tiles of their own
	{name: "layer barriers in passes", arch: 80, sms: 2, jobs: passed, edit: several,
		tiling: `"loop": {"barrier": 1}, "warps": {"o": 2, "down": 4}`,
		config: `{"hidden_size": 1056, "intermediate_size": 64, "vocab_size": 32}`},
	// the producer is a warp, and more chunks may be in flight than the end of a step and the first product have, but
	// not those of a layer; and in passes each SM has a group of the rows
	{name: "layer barriers of a warp", arch: 80, sms: 2, jobs: []string{"launch", "stops", "abort", "rows2"},
		config: `{"num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 8}`,
		ring:   `"chunk_bytes": 4096, "in_flight": 16`, tiling: `"loop": {"barrier": 1}`, shared: 106496,
		edit: func(o *compiler.Options) { o.Passes = []ir.Pass{{Rows: 2}} }},
	// layers fit into the ring, so that the producer reaches a barrier before the consumers: the first of a pass, and
	// on the SM without cache rows that of a step that does not come
	{name: "layer barriers of short layers", arch: 80, sms: 2, wide: true, jobs: append(slices.Clone(passed), "stops"),
		config: `{"num_key_value_heads": 1}`, ring: `"chunk_bytes": 4096, "in_flight": 16`,
		tiling: `"loop": {"barrier": 1}`, edit: several},
	// each SM has a group of the rows of a pass, and copies the cache rows that the other appends; the ring has more
	// slots than the first product of a step has chunks
	{name: "groups of rows", arch: 75, sms: 2, jobs: []string{"launch", "rows2"},
		config: `{"num_attention_heads": 16, "num_key_value_heads": 1, "head_dim": 8}`,
		edit:   func(o *compiler.Options) { o.DType, o.Passes = dtype(ir.F16), []ir.Pass{{Rows: 2}} }},
	// a context is split from its third position on; and the first SM has no rows of down
	{name: "splits", arch: 90, sms: 4, tiling: `"attention": {"max_splits": 2, "split_from": 2}`,
		config: `{"hidden_size": 16}`,
		jobs:   []string{"launch", "steps", "late-epochs"}},
	// the vector that a step begins with is on the page of the best logits of the step before; and the ring has more
	// slots than a step has chunks, so that a slot that is given back says nothing of that step
	{name: "a page of two steps", arch: 90, sms: 2, wide: true, jobs: append(slices.Clone(launches), "abort"),
		ring: aRing + `, "stock": 4`, tiling: `"exchange": {"copies": 1}`, config: `{"num_hidden_layers": 1}`,
		edit:    func(o *compiler.Options) { o.DType = dtype(ir.F32) },
		program: func(p *ir.Program) { alternate(p, "L{i}.x", "best.value") }},
	// columns of a head that are padded, two sets of warps that share a unit, and exchanges that are held
	{name: "integers", arch: 90, sms: 2, jobs: []string{"launch", "rows2"}, base: "cohere2-head-dim",
		config: `{"hidden_size": 96, "num_attention_heads": 16, "num_key_value_heads": 1, "head_dim": 12,
"vocab_size": 96, "layer_types": ["sliding_attention", "full_attention"]}`,
		edit: func(o *compiler.Options) {
			o.Formats, _ = passes.ParseWeightFormats("int8")
			o.Cache, o.Passes = dtype(ir.I8), []ir.Pass{{Rows: 2}}
		}},
	// the digits of o's vector are kept in shared memory, and a batch of quads of down ends two chunks
	{name: "batches of integers", arch: 90, sms: 2, wide: true, jobs: []string{"launch", "prompt-9"},
		tiling: `"warps": {"o": 1, "down": 1}`,
		config: `{"num_attention_heads": 40, "num_key_value_heads": 20, "head_dim": 16, "intermediate_size": 904}`,
		edit: func(o *compiler.Options) {
			o.Formats, _ = passes.ParseWeightFormats("int8,down_proj=int4")
			o.Cache = dtype(ir.I8)
		}},
	// an SM with neither a unit of attention nor rows of o; more columns than warps read what they have written
	{name: "singles", arch: 90, sms: 4, jobs: []string{"launch", "rows2"},
		config: `{"hidden_size": 16, "intermediate_size": 160, "num_attention_heads": 8, "num_key_value_heads": 1,
"head_dim": 32}`,
		edit: func(o *compiler.Options) { o.DType, o.Passes = dtype(ir.F32), []ir.Pass{{Rows: 2}} }},
	// products by wgmma whose operands go round their ring, several for each SM, and a context that is split
	{name: "prompts", arch: 90, sms: 2, wide: true, jobs: prompts,
		config: `{"intermediate_size": 640, "head_dim": 64, "num_key_value_heads": 1}`,
		tiling: `"warps": {"qkv": 1, "o": 1, "gate_up": 1, "down": 1, "lm_head": 1},
"attention": {"max_splits": 2, "split_from": 0}`},
	// norms of heads, which are padded and of two warps, and of branches, which every SM adds
	{name: "prompts of integers", arch: 80, sms: 2, wide: true, jobs: prompts, base: "exaone4-full",
		config: `{"num_key_value_heads": 2, "intermediate_size": 72}`,
		edit: func(o *compiler.Options) {
			o.Formats, _ = passes.ParseWeightFormats("int8")
			o.DType = dtype(ir.BF16)
		}},
	// positions that are learned, vectors whose mean is taken off, and products by mma
	{name: "prompts with learned positions", arch: 80, sms: 2, wide: true, jobs: append([]string{"ends"}, prompts...),
		base: "opt-tied", config: `{"ffn_dim": 640, "vocab_size": 96}`},
	// of several slabs, by an SM without rows of the vocabulary too
	{name: "held exchanges", arch: 90, sms: 3, jobs: []string{"launch", "rows2", "measure"}, base: "cohere2-head-dim",
		config: `{"hidden_size": 1184, "intermediate_size": 32, "vocab_size": 16, "num_attention_heads": 2,
"num_key_value_heads": 1, "layer_types": ["sliding_attention", "full_attention"]}`,
		edit: func(o *compiler.Options) { o.DType, o.Passes = dtype(ir.F32), []ir.Pass{{Rows: 2}} }},
	// one SM has rows that come after the held exchange, none of qkv and no unit of attention; and all warps of the
	// others read the columns of qkv
	{name: "held counters", arch: 90, sms: 4, wide: true, jobs: []string{"launch", "rows2"}, base: "gpt-neox-parallel",
		config: `{"num_attention_heads": 2}`,
		tiling: `"exchange": {"flagged": 0}, "gemv": {"rows": 64}, "rotation": {"qkv": 1},
"warps": {"qkv": 1, "o": 1, "down": 1, "lm_head": 1}`,
		edit: func(o *compiler.Options) { o.Passes = []ir.Pass{{Rows: 2}} }},
	// o is published as soon as attention has read qkv, on the same page, over words that the other SM has read
	{name: "norms of branches", arch: 90, sms: 2, jobs: []string{"launch"}, base: "olmo2-plain", policy: "round_robin",
		tiling: `"exchange": {"copies": 1}`, program: func(p *ir.Program) { share(p, "L{i}.o", "L{i}.qkv") }},
	// owners of rows of the residual add their rows of a branch; with one token, warps read columns that another warp
	// has written
	{name: "counted norms of branches", arch: 90, sms: 2, base: "olmo2-plain",
		jobs:   []string{"launch", "rows2", "measure"},
		tiling: `"exchange": {"flagged": 0}, "warps": {"qkv": 2}`,
		edit:   func(o *compiler.Options) { o.Passes = []ir.Pass{{Rows: 2}} }},
	// all heads of q have one norm, and all of k
	{name: "norms of heads", arch: 90, sms: 2, jobs: []string{"launch", "rows2"}, base: "olmo2-plain",
		edit: func(o *compiler.Options) { o.Passes = []ir.Pass{{Rows: 2}} }},
	{name: "norms of heads in singles", arch: 75, sms: 2, jobs: []string{"launch", "rows2"}, base: "olmo2-plain",
		edit: func(o *compiler.Options) { o.DType, o.Passes = dtype(ir.F32), []ir.Pass{{Rows: 2}} }},
	// attention turns heads by angles, on an SM that has no rows of qkv; the choice of a third token depends on the
	// second one
	{name: "angles", arch: 90, sms: 4, base: "qwen3-qknorm",
		jobs: []string{"launch", "rows2", "sequences2", "sequences2rows3", "measure"},
		config: `{"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 8, "intermediate_size": 96,
"vocab_size": 96}`,
		tiling: `"attention": {"max_splits": 4, "split_from": 0}`,
		edit:   func(o *compiler.Options) { o.Passes = []ir.Pass{{Rows: 2}, {Sequences: 2}, {Sequences: 2, Rows: 3}} }},
	// every SM chooses the experts of each token, and has tiles of them and of the shared one; sequences may be absent
	{name: "experts", arch: 90, sms: 2, jobs: []string{"launch", "abort", "rows2", "sequences2", "measure"},
		base: "qwen2-moe-shared", config: withExperts, edit: func(o *compiler.Options) {
			o.Passes = []ir.Pass{{Rows: 2}, {Sequences: 2}}
		}},
	// each warp multiplies the matrix of one of eight experts
	{name: "experts of integers", arch: 90, sms: 2, jobs: []string{"launch", "rows2"}, base: "qwen2-moe-shared",
		config: `{"num_experts": 16, "num_experts_per_tok": 8, "moe_intermediate_size": 160, "mlp_only_layers": [],
"vocab_size": 96, "max_position_embeddings": 64}`,
		edit: func(o *compiler.Options) {
			o.Formats, _ = passes.ParseWeightFormats("int8")
			o.Passes = []ir.Pass{{Rows: 2}}
		}},
	// there are SMs without tiles of other products, the last of whose experts nobody has chosen: nothing but the wait
	// for them tells these that their copying warps have read the list of a layer
	{name: "prompts of experts", arch: 90, sms: 4, wide: true, jobs: prompts, base: "qwen2-moe-shared",
		config: withExperts},
	// products by mma, which go by the list without warps of their own to copy
	{name: "prompts of experts by mma", arch: 80, sms: 2, wide: true, jobs: prompts, base: "qwen2-moe-shared",
		config: withExperts},
	// an SM without rows of the vocabulary, whose best logit is on the page that the last layer is computed from
	{name: "an empty task", arch: 90, sms: 3, jobs: []string{"launch", "stops"}, config: `{"vocab_size": 16}`,
		tiling: `"exchange": {"copies": 1}`, edit: func(o *compiler.Options) { o.DType = dtype(ir.F32) },
		program: func(p *ir.Program) { share(p, "best.value", "L{i}.act") }},
}

// several has passes of two tokens, of two sequences, and of both.
func several(o *compiler.Options) {
	o.Passes = []ir.Pass{{Rows: 2}, {Sequences: 2}, {Sequences: 2, Rows: 2}}
}

// share puts an exchange on the page of another one.
func share(p *ir.Program, name, with string) { bufferOf(p, name).Pages = bufferOf(p, with).Pages }

// alternate puts every other exchange of a family, from the first one on, on the page of another exchange.
func alternate(p *ir.Program, name, with string) {
	family := bufferOf(p, name)
	onto := bufferOf(p, with).Pages[0]
	family.Pages = []string{onto, family.Pages[0]}
	at := slices.IndexFunc(p.Pages, func(page ir.Page) bool { return page.Name == onto })
	p.Pages[at].Bytes = max(p.Pages[at].Bytes, family.Bytes())
}

func bufferOf(p *ir.Program, name string) *ir.Buffer {
	at := slices.IndexFunc(p.Buffers, func(b ir.Buffer) bool { return b.Name == name })
	if at < 0 {
		panic("the program has no " + name)
	}
	return &p.Buffers[at]
}

func dtype(d ir.DType) *ir.DType { return &d }

// options are how the model is compiled.
func (s *small) options(t *testing.T) compiler.Options {
	t.Helper()
	var config map[string]any
	base := []byte(ofLlama)
	if s.base != "" {
		var err error
		base, err = os.ReadFile(filepath.Join("..", "..", "testdata", "models", "zoo", s.base, "config.json"))
		require.NoError(t, err)
	}
	require.NoError(t, json.Unmarshal(base, &config))
	config["num_hidden_layers"] = 2
	if s.config != "" {
		require.NoError(t, json.Unmarshal([]byte(s.config), &config))
	}
	text, err := json.Marshal(config)
	require.NoError(t, err)
	model := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), text, 0o666))
	tiling := fmt.Sprintf(`"ring": {%s}`, cmp.Or(s.ring, aRing))
	if s.tiling != "" {
		tiling += ", " + s.tiling
	}
	shared := fmt.Sprintf(`, "smem_bytes_per_block": %d`, cmp.Or(s.shared, 57344))
	if s.wide {
		shared = ""
	}
	if s.policy != "" {
		shared += fmt.Sprintf(`, "sm_assignment": %q`, s.policy)
	}
	schedule, problems := ir.ParseConfig(fmt.Appendf(nil, `{"tiling": {%s}%s}`, tiling, shared), s.name)
	require.Empty(t, problems)
	o := compiler.Options{Model: model, Name: "small", Target: ir.ArchTarget(s.arch, s.sms), Config: schedule,
		RandomSeed: new(uint64)}
	if s.edit != nil {
		s.edit(&o)
	}
	return o
}

// compile makes a build in a directory of the test.
func (s *small) compile(t *testing.T) explore.MutantBuild {
	t.Helper()
	o := compiler.BuildOptions{Options: s.options(t), OutDir: filepath.Join(t.TempDir(), "build"), NoBuild: true,
		NoLauncher: true}
	_, err := compiler.Compile(t.Context(), o)
	require.NoError(t, err, "%s", s.name)
	if s.program != nil {
		p := s.emit(t, o.OutDir)
		require.True(t, p.OK, "%s: %v", s.name, p.Diags)
	}
	return explore.MutantBuild{Name: s.name, Dir: o.OutDir, Jobs: s.jobs}
}

func (s *small) emit(t *testing.T, dir string) validate.Report {
	t.Helper()
	return emit(t, s.options(t), dir, s.program)
}

// emit renders the program of a build again, once it has been changed, and returns what the proof says of it.
func emit(t *testing.T, o compiler.Options, dir string, change func(p *ir.Program)) validate.Report {
	t.Helper()
	l, err := compiler.RunPasses(o)
	require.NoError(t, err)
	defer l.Close()
	change(l.Program)
	files, err := codegen.Project(l.Program, l.Graph, o.Name)
	require.NoError(t, err)
	changed := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if before, err := os.ReadFile(at); err != nil || string(before) == string(files[name]) {
			continue
		}
		changed++
		require.NoError(t, os.WriteFile(at, files[name], 0o666))
	}
	require.NotZero(t, changed, "the program is as it was")
	return validate.Program(l.Program)
}

// cache is where objects are kept between runs of the tests.
func cache(t *testing.T) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	require.NoError(t, err)
	return filepath.Join(dir, "amkc")
}
