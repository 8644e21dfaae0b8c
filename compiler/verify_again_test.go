package compiler

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/passes"
	"amkc/runtime/host"
	"amkc/validate"
	"amkc/validate/kernel"
)

// read is a program as a build has it.
func read(t *testing.T, p *ir.Program) *ir.Program {
	t.Helper()
	text, err := p.MarshalJSON()
	require.NoError(t, err)
	q, diags := ir.LoadJSON(text, ProgramFile)
	require.NoError(t, diags.Err())
	return q
}

// againAs compiles the model of programs again, and requires the same programs.
func againAs(t *testing.T, model string, o Options) {
	t.Helper()
	l, err := RunPasses(o)
	require.NoError(t, err)
	defer l.Close()
	m := &codegen.Manifest{Source: codegen.Source{AssumeInert: o.AssumeInert, Weights: o.Formats.Texts()}}
	var more []*ir.Program
	for _, p := range l.Passes {
		more = append(more, read(t, p))
	}
	again, _, err := compileAgain(model, m, read(t, l.Program), more)
	require.NoError(t, err)
	require.Empty(t, differences(l.Program, again.Program))
	require.Len(t, again.Passes, len(l.Passes))
	for i, p := range l.Passes {
		require.Equal(t, p.Pass, again.Passes[i].Pass)
		require.Empty(t, differences(p, again.Passes[i]), "%v", p.Pass)
	}
}

// What is compiled again of a build is what was compiled: for every small model, with several rows and sequences, all
// sorts of types, formats and knobs, and for checkpoints whose tensors have other names than the config would say.
func TestCompiledAgainIsTheSame(t *testing.T) {
	for i, c := range passCases {
		if testing.Short() && i%5 > 0 {
			continue
		}
		formats, err := passes.ParseWeightFormats(cmp.Or(c.weights, "none"))
		require.NoError(t, err)
		model := filepath.Join(root, "models", c.model)
		o := Options{Model: model, Name: "m", Target: ir.ArchTarget(90, c.sms), DType: &c.dtype, MaxSeq: passPositions,
			Formats: formats, Passes: []ir.Pass{{Rows: 2}, {Rows: 8}, {Sequences: 2}, {Sequences: 2, Rows: 4}},
			Config: ir.ScheduleConfig{
				Tiling: map[string]map[string]int{"attention": {"split_from": 21}, "ring": {"chunk_bytes": 4096}}}}
		if cache := ir.I8; c.cache {
			o.Cache = &cache
		}
		againAs(t, model, o)
	}
	if testing.Short() {
		return
	}
	quantised, err := filepath.Glob(filepath.Join(root, "models", "quantised", "models", "*"))
	require.NoError(t, err)
	for _, models := range smallModels(t) {
		quantised = append(quantised, models...)
	}
	compiled := 0
	for _, model := range quantised {
		for _, target := range []string{"h200", "t4"} {
			o := Options{Model: model, Name: "m", Target: ir.FindTarget(target), MaxSeq: 40,
				Passes: []ir.Pass{{Sequences: 2}}}
			if l, err := RunPasses(o); err == nil { // what is not modelled is refused
				l.Close()
				againAs(t, model, o)
				compiled++
			}
		}
	}
	require.Greater(t, compiled, 200)
}

// Tensors that a family calls in several ways have the names of the checkpoint in all programs, and a build of one is
// verified.
func TestTensorsOfOtherNames(t *testing.T) {
	model := filepath.Join(t.TempDir(), "model")
	require.NoError(t, os.CopyFS(model, os.DirFS("../testdata/models/zoo/gpt2")))
	const file = "model.safetensors"
	stripped := regexp.MustCompile(`"transformer\.([a-z0-9._]+)"`).ReplaceAllString(text(t, model, file),
		`"$1"            `)
	require.Len(t, stripped, len(text(t, model, file)), "the header is as long as before")
	require.Contains(t, stripped, `"wte.weight"`)
	put(t, model, file, stripped)
	o := emitted(model, filepath.Join(t.TempDir(), "build"))
	o.Passes = []ir.Pass{{Rows: 2}}
	b, err := Compile(t.Context(), o)
	require.NoError(t, err)
	require.Contains(t, string(ir.Print(b.Program)), "(wte.weight)")
	require.Contains(t, string(ir.Print(b.Passes[0])), "(wte.weight)")
	v, err := Verify(b.Dir, nil)
	require.NoError(t, err)
	require.Empty(t, v.Findings)
}

// What an older file alongside config.json says of quantised weights is in the build too, where verify needs it.
func TestOlderFileOfQuantisedWeights(t *testing.T) {
	model := filepath.Join(t.TempDir(), "model")
	require.NoError(t, os.CopyFS(model, os.DirFS("../testdata/models/quantised/models/qwen2-gptq")))
	var config map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text(t, model, host.ConfigFile)), &config))
	put(t, model, "quantize_config.json", string(config["quantization_config"]))
	delete(config, "quantization_config")
	without, err := json.Marshal(config)
	require.NoError(t, err)
	put(t, model, host.ConfigFile, string(without))
	o := emitted(model, filepath.Join(t.TempDir(), "build"))
	o.Target = ir.FindTarget("h200")
	b, err := Compile(t.Context(), o)
	require.NoError(t, err)
	require.Contains(t, string(ir.Print(b.Program)), " WEIGHT I4 ")
	v, err := Verify(b.Dir, nil)
	require.NoError(t, err)
	require.Empty(t, v.Findings)
}

// emitOver writes what programs give over a build, and makes its manifest fit.
func emitOver(t *testing.T, dir string, p *ir.Program, more ...*ir.Program) error {
	t.Helper()
	for _, q := range append([]*ir.Program{p}, more...) {
		if err := ir.Check(q).Err(); err != nil {
			return err
		}
		if proof := validate.ProgramFor(kernel.Backend, q); !proof.OK {
			return proof.Diags.Err()
		}
	}
	m, err := readManifest(dir)
	require.NoError(t, err)
	again, _, err := compileAgain(dir, m, p, more)
	if err != nil {
		return err
	}
	files, err := codegen.Project(p, again.Graph, p.Model.Name, more...)
	if err != nil {
		return err
	}
	if err := checkEmitted(files, p, more...); err != nil {
		return err
	}
	files[readmeFile] = append(files[readmeFile], m.Origin()...)
	for name, content := range files {
		if m.Files[name] != codegen.Digest(content) {
			put(t, dir, name, string(content))
			m.Files[name] = codegen.Digest(content)
		}
	}
	if m.Facts, err = codegen.Facts(p, more...); err != nil {
		return err
	}
	text, err := m.Marshal()
	require.NoError(t, err)
	put(t, dir, host.ManifestFile, string(text))
	return nil
}

// eachOp calls f with every op of a program.
func eachOp(p *ir.Program, f func(s *ir.Stage, o *ir.Op)) {
	for i := range p.Variants {
		p.Variants[i].Each(func(s *ir.Stage, _ *ir.Loop) {
			for k := range s.Ops {
				f(s, &s.Ops[k])
			}
		})
	}
}

// change edits the parameters of a key in all ops, and reports whether there was one.
func change(key string, of ...ir.Opcode) func(p *ir.Program) bool {
	return func(p *ir.Program) (found bool) {
		eachOp(p, func(_ *ir.Stage, o *ir.Op) {
			for k := range o.Params {
				param := &o.Params[k]
				if param.Key != key || len(of) > 0 && !slices.Contains(of, o.Code) {
					continue
				}
				found = true
				if param.IsFloat {
					param.Float *= 1.5
				} else {
					param.Int = param.Int.Add(ir.Int(-8))
				}
			}
		})
		return found
	}
}

// textual edits the text form.
func textual(pattern, with string) func(p *ir.Program) bool {
	return func(p *ir.Program) bool {
		before := string(ir.Print(p))
		after := regexp.MustCompile(pattern).ReplaceAllString(before, with)
		q, diags := ir.ParseText([]byte(after), "edited.amk")
		if diags.Err() != nil {
			panic(diags.Err())
		}
		*p = *q
		return before != after
	}
}

// programEdits change what a program computes, or where what it shares with others is, and are proved and emitted all
// the same. Each is done to the programs of models that have what it changes.
var programEdits = []struct {
	name   string
	models []string
	edit   func(p *ir.Program) bool
}{
	{"layout of the cache", []string{"pycoder-5m", "zoo/gemma2-split-k"}, textual("kvfrag16", "kvrows16")},
	{"scale of attention", []string{"pycoder-5m", "zoo/gemma2-split-k"}, change("scale", ir.ATTENTION)},
	{"eps", []string{"pycoder-5m", "zoo/gemma2-split-k", "zoo/gpt2"}, textual(`eps=1e-0\d`, "eps=3e-05")},
	{"rows that are rotated", []string{"pycoder-5m", "zoo/gemma2-split-k"}, change("limit", ir.ROPE)},
	{"caps", []string{"zoo/gemma2-split-k"}, change("cap")},
	{"scale of embeddings", []string{"zoo/gemma2-split-k"}, change("scale", ir.EMBED)},
	{"scale of rotations", []string{"zoo/phi3-short"}, change("scale", ir.ROPE)},
	{"unit offset", []string{"zoo/gemma2-split-k"}, textual(" unit_offset=1", "")},
	{"window", []string{"zoo/mistral-window-narrow"}, func(p *ir.Program) bool {
		ofPass := p.Pass.NumRows() == 1 || textual(" window=12", " window=10")(p) // which says it alongside the views
		return textual(`pos-11\b`, "pos-9")(p) && ofPass
	}},
	{"end of a variant", []string{"pycoder-5m"}, func(p *ir.Program) bool {
		p.Variants[0].Hi, p.Variants[1].Lo = p.Variants[0].Hi-8, p.Variants[1].Lo-8
		return true
	}},
	{"rotation of a stage", []string{"pycoder-5m"}, func(p *ir.Program) (found bool) {
		p.Variants[0].Each(func(s *ir.Stage, _ *ir.Loop) {
			if s.Role == "gate_up" {
				s.Dist.Rot, found = s.Dist.Rot+1, true
			}
		})
		return found
	}},
	{"tensors of a weight", []string{"pycoder-5m"},
		textual(`from even\((\S+)\) odd\((\S+)\)`, "from even($2) odd($1)")},
	{"name of the architecture", []string{"pycoder-5m"}, func(p *ir.Program) bool {
		p.Model.Architecture = "MistralForCausalLM"
		return true
	}},
}

// A program that computes something else than the model, or something else than the others of its build, is refused
// although it is proved, emitted and read back: the program of one token, that of several, and all alike.
func TestEditedProgramsOfABuild(t *testing.T) {
	tried := 0
	for i, c := range programEdits {
		for k, model := range c.models {
			if testing.Short() && (i > 1 || k > 0) {
				continue
			}
			t.Run(c.name+" of "+filepath.Base(model), func(t *testing.T) {
				o := emitted(filepath.Join(root, "models", model), filepath.Join(t.TempDir(), "build"))
				o.Target, o.MaxSeq, o.Passes = ir.ArchTarget(90, 8), 64, []ir.Pass{{Rows: 2}}
				o.Config.Tiling = map[string]map[string]int{"attention": {"split_from": 24},
					"ring": {"chunk_bytes": 4096}}
				b, err := Compile(t.Context(), o)
				require.NoError(t, err)
				one, two := read(t, b.Program), read(t, b.Passes[0])
				require.NoError(t, emitOver(t, b.Dir, one, two))
				v, err := Verify(b.Dir, nil)
				require.NoError(t, err)
				require.Empty(t, v.Findings)
				for which := 1; which <= 3; which++ {
					one, two = read(t, b.Program), read(t, b.Passes[0])
					var edited []string
					if which&1 > 0 {
						require.True(t, c.edit(one))
						edited = append(edited, filepath.Join(b.Dir, ProgramFile))
					}
					if which&2 > 0 {
						require.True(t, c.edit(two))
						edited = append(edited, filepath.Join(b.Dir, "rows2", ProgramFile))
					}
					if err := emitOver(t, b.Dir, one, two); err != nil {
						// No build has these: the emission asks for the same of both.
						require.NotEqual(t, 3, which, "both alike: %v", err)
						require.ErrorContains(t, err, "pass of 2 rows: error: has", "%d", which)
						continue
					}
					tried++
					v, err := Verify(b.Dir, nil)
					require.NoError(t, err)
					var found []string
					for _, d := range v.Findings.Errors() {
						require.Equal(t, "AMK4906", d.Code, d.Error())
						found = append(found, d.Pos)
					}
					require.Equal(t, edited, found)
				}
			})
		}
	}
	require.NotZero(t, tried)
}

// All that a program says is compared: each parameter of each op, and each line of the program.
func TestDifferencesSeeEveryParameter(t *testing.T) {
	seen := map[string]bool{}
	for _, model := range []string{"pycoder-5m", "zoo/gemma2-split-k", "zoo/gpt2", "zoo/phi3-short"} {
		l, err := RunPasses(Options{Model: filepath.Join(root, "models", model), Name: "m", ConfigOnly: true,
			Target: ir.ArchTarget(90, 8), MaxSeq: 64, Passes: []ir.Pass{{Rows: 2}}, Config: ir.ScheduleConfig{
				Tiling: map[string]map[string]int{"attention": {"split_from": 24}}}})
		require.NoError(t, err)
		for _, p := range []*ir.Program{l.Program, l.Passes[0]} {
			require.Empty(t, differences(read(t, p), p))
			edited := read(t, p)
			eachOp(edited, func(s *ir.Stage, o *ir.Op) {
				for k := range o.Params {
					good := o.Params[k]
					o.Params[k].Float, o.Params[k].Int = good.Float*(1+1e-12), good.Int.Add(ir.Int(1))
					require.NotEmpty(t, differences(edited, p), "%s: %s", s.Name, good.Key)
					o.Params[k] = good
					seen[good.Key] = true
				}
			})
			lines := strings.Split(strings.TrimSpace(string(ir.Print(p))), "\n")
			for k := range lines {
				if q, diags := ir.ParseText([]byte(strings.Join(slices.Delete(slices.Clone(lines), k, k+1), "\n")),
					"shorter.amk"); diags.Err() == nil {
					require.NotEmpty(t, differences(q, p), lines[k])
				}
			}
		}
	}
	for _, key := range []string{"scale", "cap", "eps", "limit", "head_dim", "order", "pos", "row", "first",
		"unit_offset", "n_heads", "n_kv_heads", "splits", "part", "parts", "block", "flags"} {
		require.True(t, seen[key], "%s: %v", key, seen)
	}
}
