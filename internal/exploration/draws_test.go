package exploration

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler/objects"
	"amkc/explore"
	"amkc/ir"
	"amkc/ir/format"
	"amkc/kernel"
	"amkc/runtime/host"
)

var (
	draws     = flag.Int("draws", 0, "draw `N` builds, with a body each in its turn; 0: none, and 3 in the gate")
	firstDraw = flag.Int("first-draw", 0, "begin with the draw of this number")
	seed      = flag.Uint64("seed", 1, "that draws follow from")
	shrinking = flag.Int("shrink", 12, "builds by which a draw that fails is made plainer")
)

// A property is what builds are drawn with: its values, the plainest first.
type property struct {
	name   string
	values []string
}

func among(name, values string) property { return property{name, strings.Fields(values)} }

// modelsDrawn are the models of all draws; the last ones have norms after branches.
var modelsDrawn = strings.Fields("llama qwen2-bias ministral-windows qwen3-window-half gemma-tied granite-scaled " +
	"olmo-clipped opt-tied falcon-groups gpt-neox-parallel gpt2 apertus-gelu apertus-biases nemotron-half " +
	"arcee-plain " +
	"phi-head-norms cohere-head-norms cohere2-tied stablelm-head-norms starcoder2-plain hunyuan-biases " +
	"seed-oss-biases olmo2-biases olmo3-windows exaone4-windows gemma2-tied gemma3-tied glm4-plain glm4-half")

const normsAfter = 7 // of modelsDrawn have norms after branches

// withoutGroups are models with a kv head for each head.
var withoutGroups = strings.Fields("opt-tied gpt-neox-parallel gpt2")

// drawn are the properties of a build, in the order in which they are made plain where a draw fails. Those with a dot
// are knobs.
var drawn = []property{
	{"model", modelsDrawn},
	among("arch", "sm_90 sm_80 sm_75"), among("dtype", "fp32 bf16 fp16"), among("SMs", "2 3 4 5"),
	among("weights", "none none none int8 int4 int8:g64:asym int4:g32:sym fp8"), among("cache", "dtype dtype int8"),
	among("rows", "1 1 1 1 1 2 3 4 5 8"), among("sequences", "1 1 1 1 1 1 2 3 4 2x2 2x3"),
	among("prompt", "no no no no no no yes"),
	among("hidden_size", "64 128 48 72 136 256 200"), among("intermediate_size", "96 64 128 72 200 256 328"),
	among("vocab_size", "96 64 200 131"), among("num_key_value_heads", "2 1 3 4"), among("group", "2 1 3 4 5 9"),
	among("head_dim", "16 8 32 24 64 40"), among("num_hidden_layers", "2 1"), among("window", "4 1 3 7"),
	among("eps", "1e-5 1e-5 0.001 0.05"), among("theta", "10000 30 1000000"), among("cap", "2 0.5 30"),
	among("multiplier", "1.5 0.75 3"), among("clip", "1.25 0.05"),
	among("activation", "gelu gelu_pytorch_tanh relu relu2"),
	among("splits", "1 2 3 4"), among("split_from", "0 8"),
	among("ring.chunk_bytes", "4096 8192 5120"), among("ring.in_flight", "2 1 3"), among("ring.run_ahead", "0 3"),
	among("exchange.flagged", "1 0"), among("exchange.copies", "2 1 4"), among("loop.roll", "1 0"),
	among("loop.barrier", "0 0 1"), among("gemv.rows", "8 16 24"), among("gemv.split_k", "4 1 2 8"),
	among("warps.qkv", "8 1 2 4"), among("warps.o", "8 1 2 4"), among("warps.gate_up", "8 1 2 4"),
	among("warps.down", "8 1 2 4"), among("warps.lm_head", "8 1 2 4"), among("short.rotation", "0 1"),
	among("magnitude", "1 8"), // of matrices
	// whether the second layer has other heads, or heads of another size
	among("layers", "alike alike alike alike heads size"),
}

// needs are properties that a build must have so that a body is in it, and of which values may be drawn.
var needs = map[*kernel.Body][]property{
	kernel.Embed: {{"model", modelsDrawn[:len(modelsDrawn)-normsAfter]}},
	kernel.EmbedReplicated: {{"model", modelsDrawn[len(modelsDrawn)-normsAfter:]}, among("rows", "1"),
		among("sequences", "1")},
	kernel.AddNorm: {{"model", modelsDrawn[len(modelsDrawn)-normsAfter:]}, among("rows", "1"), among("sequences", "1")},
	kernel.AddNormRows: {{"model", modelsDrawn[len(modelsDrawn)-normsAfter:]}, among("rows", "2 3 4 5 8"),
		among("sequences", "1 1 3")},
	kernel.Combine: {among("splits", "2 3 4"), among("split_from", "0"), among("SMs", "4 5 6"),
		among("num_key_value_heads", "2 1"), among("num_hidden_layers", "2")},
	kernel.Route: {among("model", "olmoe-plain mixtral-window"), among("rows", "1"), among("sequences", "1"),
		among("prompt", "no")},
	kernel.Convolve: {among("model", "lfm2-former lfm2-biases"), among("prompt", "no"),
		among("num_hidden_layers", "2")},
	kernel.DeltaRule: ofStates,
	kernel.GateHeads: ofStates,
	kernel.Arrive:    {among("loop.barrier", "1")},
	kernel.Join:      {among("loop.barrier", "1")},
}

// ofStates are those of models with gated delta rules.
var ofStates = []property{among("model", "qwen3-5-text"), among("rows", "1"), among("sequences", "1"),
	among("prompt", "no"), among("num_hidden_layers", "2")}

// A draw is a build that is to have a body, and the number of the value of each property.
type draw struct {
	number int
	body   *kernel.Body
	picked []int
	alike  bool // heads of its layers cannot differ in size
}

// bodies are all of them, by their names: the numbers of draws do not depend on the order in kernel.
var bodies = slices.SortedFunc(slices.Values(ofBuilds), func(a, b *kernel.Body) int {
	return strings.Compare(a.Name, b.Name)
})

func newDraw(number int, seed, again uint64) *draw {
	lot := rand.New(rand.NewPCG(seed, uint64(number)|again<<32))
	d := &draw{number: number, body: bodies[number%len(bodies)], picked: make([]int, len(drawn))}
	for i := range drawn {
		d.picked[i] = lot.IntN(len(d.of(i).values))
	}
	return d
}

// of is a property as the body of the draw needs it.
func (d *draw) of(i int) property {
	for _, p := range needs[d.body] {
		if p.name == drawn[i].name {
			return p
		}
	}
	return drawn[i]
}

// mostHeads is how many elements all query heads may have, so that a step is short.
const mostHeads = 640

// build has what goes together only.
func (d *draw) build() Build {
	b := Build{"ends": "chosen", "seed": fmt.Sprint(d.number)}
	for i := range drawn {
		p := d.of(i)
		b[p.name] = p.values[d.picked[i]]
	}
	if b["cache"] == "dtype" {
		b["cache"] = b["dtype"]
	}
	if b["sequences"] != "1" {
		b["split_from"] = "0" // each may be at any position
	}
	if b["arch"] == "sm_75" || b["dtype"] == "fp32" || b["loop.barrier"] == "1" {
		b["prompt"] = "no"
	}
	switch llama := slices.Contains(d.of(0).values, "llama"); {
	case b["layers"] == "heads" && llama: // of a family whose config can say so
		b["model"], b["num_hidden_layers"] = "llama", "2"
	case b["layers"] == "size" && !d.alike:
		b["num_hidden_layers"], b["num_key_value_heads"] = "2", "2"
	default:
		b["layers"] = "alike"
	}
	if d.body == kernel.Combine { // each kv head of a layer has two SMs, or its context is not split
		if slices.Contains(withoutGroups, b["model"]) {
			b["group"] = "1"
		}
		if b["layers"] == "heads" { // the second layer has one more
			b["SMs"] = fmt.Sprint(max(number(b["SMs"]), 2*(number(b["num_key_value_heads"])+1)))
		}
	}
	heads := number(b["num_key_value_heads"]) * number(b["group"])
	b["num_attention_heads"] = fmt.Sprint(heads)
	if heads*number(b["head_dim"]) > mostHeads {
		b["head_dim"] = "16"
	}
	return b
}

// String says what the build has that is not the plainest.
func (d *draw) String() string {
	var all []string
	b := d.build()
	for i := range drawn {
		p := d.of(i)
		plainest := p.values[0]
		if plainest == "dtype" {
			plainest = b["dtype"]
		}
		if value := b[p.name]; value != plainest || i == 0 {
			all = append(all, p.name+"="+value)
		}
	}
	return fmt.Sprintf("draw %d, for %s: %s", d.number, d.body, strings.Join(all, " "))
}

// An emittedDraw is what came of a draw: where its build is, and the constants of its body.
type emittedDraw struct {
	dir    string
	fields string
}

// noRoom is the code of what the ring of a kernel has no room for: such a draw is made again.
const noRoom = "AMK4005"

// emit draws what the device has room for, and writes the build, which has the body of the draw.
func emit(t *testing.T, number int, dir string) (*draw, *emittedDraw, error) {
	for again := uint64(0); ; again++ {
		d := newDraw(number, *seed, again)
		e, err := d.emit(t, filepath.Join(dir, fmt.Sprint(again)))
		if again < 5 && err != nil && strings.Contains(err.Error(), "["+noRoom+"]") {
			t.Logf("%s\n    is drawn again: %v", d, err)
			continue
		}
		return d, e, err
	}
}

func (d *draw) emit(t *testing.T, dir string) (*emittedDraw, error) {
	build, err := d.build().Compile(t.Context(), root, dir)
	if errors.Is(err, errAlike) {
		d.alike = true
		build, err = d.build().Compile(t.Context(), root, dir)
	}
	if err != nil {
		return nil, err
	}
	kernels, err := filepath.Glob(filepath.Join(build, "*", "megakernel.cu"))
	if err != nil {
		return nil, err
	}
	called := false
	for _, path := range append(kernels, filepath.Join(build, "megakernel.cu"), filepath.Join(build, "stages.h")) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		called = called || regexp.MustCompile(`\b`+d.body.Name+`(<\w+>)?\(c`).Match(text)
	}
	if !called {
		return nil, errors.New("the build has no such body")
	}
	seen := map[string]map[string]map[string]bool{}
	if err := fields(build, seen); err != nil {
		return nil, err
	}
	var all []string
	for _, f := range d.body.Fields {
		values := slices.Sorted(maps.Keys(seen[d.body.Name][f.Name]))
		all = append(all, f.Name+" "+strings.ReplaceAll(strings.Join(values, "|"), "||", "|-|"))
	}
	return &emittedDraw{build, strings.Join(all, ", ")}, nil
}

// jobs are what compares the build of a draw with the reference VM: stage by stage the steps of single tokens, and by
// their logits and hidden states, to the bit, passes and prompts.
func (e *emittedDraw) jobs() ([]string, error) {
	facts, err := host.ReadFacts(e.dir)
	if err != nil {
		return nil, err
	}
	jobs := []string{"reference"}
	for _, j := range explore.Jobs(facts) {
		if strings.HasPrefix(j.Name, "rows") || strings.HasPrefix(j.Name, "sequences") || j.Name == "prompt-9" {
			jobs = append(jobs, j.Name)
		}
	}
	return jobs, nil
}

// run runs jobs; none: all that compare.
func (e *emittedDraw) run(t *testing.T, o *Options, jobs ...string) (err error) {
	if len(jobs) == 0 {
		if jobs, err = e.jobs(); err != nil {
			return err
		}
	}
	report, _, err := o.explore(t.Context(), e.dir, jobs, 0)
	if err != nil {
		return err
	}
	for _, f := range report.Findings {
		err = errors.Join(err, fmt.Errorf("job %s: %s: %s", f.Job, f.Kind, f.Message))
	}
	for _, j := range report.Jobs {
		for _, b := range j.Bodies {
			if b.Outputs == 0 || b.Unbounded > 0 && !strings.Contains(b.Body, "attend") {
				err = errors.Join(err, fmt.Errorf("job %s: %d outputs of %s were compared, and %d have no bound",
					j.Name,
					b.Outputs, b.Body, b.Unbounded))
			}
		}
	}
	return err
}

// plainer makes properties of a draw that fails plain, many at once and then one by one, as long as it fails.
func plainer(d *draw, most int, fails func(d *draw) bool) *draw {
	for size := len(d.picked); size > 0; size /= 2 {
		for lo := 0; lo < len(d.picked); lo += size {
			next := &draw{number: d.number, body: d.body, picked: slices.Clone(d.picked)}
			clear(next.picked[lo:min(lo+size, len(next.picked))])
			if slices.Equal(next.picked, d.picked) {
				continue
			}
			if most--; most < 0 {
				return d
			}
			if fails(next) {
				d = next
			}
		}
	}
	return d
}

// Programs of random fields compute on the CPU what the reference VM makes of the patterns of their bodies.
func TestDraws(t *testing.T) {
	n, first := inGate(draws, 3), inGate(firstDraw, 35)
	if n == 0 {
		t.Skip("make explore runs it")
	}
	o, before := exactOptions(t), children(t)
	failed := make([]error, n)
	require.NoError(t, objects.SideBySide(n, atOnce, func(i int) error {
		dir := t.TempDir()
		d, e, err := emit(t, first+i, dir)
		if err == nil {
			err = e.run(t, o)
		}
		if err == nil {
			fmt.Printf("%s\n    %s\n", d, e.fields)
			return nil
		}
		fmt.Printf("%s\n    FAILS: %v\n", d, err)
		runs := 0
		least := plainer(d, *shrinking, func(d *draw) bool {
			runs++
			e, wrong := d.emit(t, filepath.Join(dir, fmt.Sprint("plainer", runs)))
			if wrong == nil {
				wrong = e.run(t, o)
			}
			if wrong != nil && !strings.Contains(wrong.Error(), noRoom) {
				err = wrong
				return true
			}
			return false
		})
		failed[i] = fmt.Errorf("body %s: %s\n    %w", d.body, least, err)
		return nil
	}))
	fmt.Printf("%d draws from seed %d, %.0f s of processor time\n", n, *seed, children(t)-before)
	require.NoError(t, errors.Join(failed...))
}

// Every draw is emitted, and has its body.
func TestDrawsAreValid(t *testing.T) {
	for i := range max(*draws, 2*len(kernel.Bodies)) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			d, e, err := emit(t, *firstDraw+i, t.TempDir())
			require.NoError(t, err, "%s", d)
			t.Logf("%s\n    %s", d, e.fields)
		})
	}
}

// drawOf is the draw of a body with some values, and with the plainest of all else.
func drawOf(body *kernel.Body, values Build) *draw {
	d := &draw{body: body, picked: make([]int, len(drawn))}
	for i := range drawn {
		if p := d.of(i); values[p.name] != "" {
			d.picked[i] = slices.Index(p.values, values[p.name])
		}
	}
	return d
}

// Every model is emitted with one head, in passes too, whether attention is split or not, and where only the second
// layer has one head; and attention is split whatever heads a model has.
func TestDrawsOfFewHeads(t *testing.T) {
	one := Build{"rows": "3", "sequences": "2x2", "num_key_value_heads": "1", "group": "1"}
	for _, c := range []struct {
		name   string
		body   *kernel.Body
		values Build
		models []string
	}{
		{"one head", kernel.Attend, one, modelsDrawn},
		{"one head, split", kernel.Combine, one, modelsDrawn},
		{"one head in the second layer", kernel.Attend, Build{"rows": "3", "sequences": "2x2", "group": "1",
			"layers": "size"}, modelsDrawn},
		{"split, all kv heads", kernel.Combine, Build{"rows": "3", "group": "9"}, withoutGroups},
		{"split, more heads in the second layer", kernel.Combine, Build{"rows": "3", "layers": "heads"},
			[]string{"llama"}},
	} {
		for _, model := range c.models {
			t.Run(c.name+", "+model, func(t *testing.T) {
				t.Parallel()
				values := maps.Clone(c.values)
				values["model"] = model
				d := drawOf(c.body, values)
				_, err := d.emit(t, t.TempDir())
				require.NoError(t, err, "%s", d)
			})
		}
	}
}

// Heads of layers differ in size in all programs of a build, or the draw says that they do not; and a draw is called
// what its build is.
func TestDrawsOfHeadsOfOtherSizes(t *testing.T) {
	for _, c := range []struct {
		model string
		sizes []int
		says  string
	}{
		{"qwen2-bias", []int{16, 32}, "model=qwen2-bias rows=4 sequences=2x3 layers=size"},
		{"phi-head-norms", nil, "model=phi-head-norms rows=4 sequences=2x3"},
	} {
		d := drawOf(kernel.Attend, Build{"model": c.model, "rows": "4", "sequences": "2x3", "layers": "size"})
		e, err := d.emit(t, t.TempDir())
		require.NoError(t, err)
		require.Contains(t, d.String(), c.says)
		paths, err := filepath.Glob(filepath.Join(e.dir, "*", "program.json"))
		require.NoError(t, err)
		require.Len(t, paths, 3)
		for _, path := range append(paths, filepath.Join(e.dir, "program.json")) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			p, diags := ir.LoadJSON(data, path)
			require.NoError(t, diags.Err())
			var sizes []int
			for _, f := range p.Model.Kinds {
				sizes = append(sizes, f.HeadDim)
			}
			require.Equal(t, c.sizes, sizes, path)
		}
	}
	d := drawOf(kernel.Attend, Build{"model": "qwen2-bias", "layers": "heads", "num_hidden_layers": "1"})
	require.Contains(t, d.String(), "model=llama layers=heads", "and of two layers")
}

// A draw that fails is made plain but for what it fails by.
func TestPlainer(t *testing.T) {
	d := newDraw(3, 1, 0)
	for i := range d.picked {
		d.picked[i] = 1
	}
	runs := 0
	least := plainer(d, 100, func(d *draw) bool {
		runs++
		return d.picked[5] > 0 && d.picked[20] > 0
	})
	want := make([]int, len(d.picked))
	want[5], want[20] = 1, 1
	require.Equal(t, want, least.picked)
	require.Less(t, runs, 30)
	require.Equal(t, d.picked, plainer(d, 0, func(*draw) bool { return true }).picked, "no more builds than may be")
}

// drawnExact is an exact build of other sizes, formats and knobs.
func drawnExact(number int, seed, again uint64) Exact {
	lot := rand.New(rand.NewPCG(seed, uint64(number)|again<<32))
	pick := func(of ...int) int { return of[lot.IntN(len(of))] }
	e := ExactBuilds()[lot.IntN(7)]
	formats := strings.Fields("none none int8 int8:g64:asym int4 int4:g32:sym int4:g128:asym fp8")
	for i := range e.Formats {
		e.Formats[i] = formats[lot.IntN(len(formats))]
	}
	s := exactSizes{hidden: pick(128, 256, 384), middle: pick(128, 256, 512), vocab: pick(96, 64, 200),
		kvHeads: pick(1, 2, 4), dim: pick(16, 32, 64), rows: pick(2, 3, 4, 5), sms: pick(2, 3, 4)}
	s.heads = s.kvHeads * pick(1, 2, 3, 4)
	for s.heads*s.dim%format.QuadColumns != 0 {
		s.heads *= 2
	}
	e.exactSizes = s
	e.Knobs = fmt.Sprintf(`"ring": {"chunk_bytes": %d}, "warps": {"qkv": %d, "o": %d, "gate_up": %d, "down": %d}, `+
		`"gemv": {"rows": %d}`, pick(4096, 8192), pick(1, 2, 8), pick(1, 2, 8), pick(1, 8), pick(4, 8), pick(8, 16))
	return e
}

// Products of drawn sizes that add up exactly are to the bit what the reference VM makes: one for each ten draws.
func TestExactDraws(t *testing.T) {
	if *draws == 0 {
		t.Skip("make explore runs it")
	}
	o := exactOptions(t)
	require.NoError(t, objects.SideBySide((*draws+9)/10, atOnce, func(i int) error {
		for again := uint64(0); ; again++ {
			e := drawnExact(*firstDraw+i, *seed, again)
			switch err := exact(t, o, e, t.TempDir()); {
			case err == nil:
				return nil
			case again < 5 && strings.Contains(err.Error(), "["+noRoom+"]"):
				t.Logf("exact draw %d: %+v\n    is drawn again: %v", *firstDraw+i, e, err)
			default:
				return fmt.Errorf("exact draw %d: %+v\n    %w", *firstDraw+i, e, err)
			}
		}
	}))
}
