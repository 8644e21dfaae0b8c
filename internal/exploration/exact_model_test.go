package exploration

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"amkc/compiler"
	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes"
)

// An Exact build is of a model whose products add up exactly in fp32, in any order: its weights are small integers
// times powers of two, chosen for the one vector that each matrix is multiplied by, so that the results are again small
// integers. All tokens have the same embedding. Norms see integers whose mean square is 256, the activation of the MLP
// numbers so large that it is 1 times its argument, and attention scores of 0: queries and keys have their numbers in
// different pairs of dims. Thus what a kernel publishes at a position, and the logits of any pass or prompt, are to the
// bit what the reference VM makes, and the products of all bodies are compared with it.
type Exact struct {
	Arch    string
	DType   string
	Formats [5]string // of qkv, o, gate_up, down and lm_head
	exactSizes
	Knobs string // tiling, in JSON
}

// exactSizes are those of the model, and how many rows passes have. Vectors that are multiplied are whole quads of 128
// columns, and several of these.
type exactSizes struct{ hidden, middle, vocab, heads, kvHeads, dim, rows, sms int }

// exactRoles are those that Formats are of.
var exactRoles = [5]string{"qkv", "o", "gate_up", "down", "lm_head"}

// matricesOf are the matrices of a stage, as --weights calls them.
var matricesOf = map[string][]string{"qkv": {"q_proj", "k_proj", "v_proj"}, "o": {"o_proj"},
	"gate_up": {"gate_proj", "up_proj"}, "down": {"down_proj"}, "lm_head": {"lm_head"}}

// ExactBuilds are those for all that multiplies: tensor cores, with wgmma for prompts and without, and plain
// arithmetic, by each type of activations, of matrices in each format.
func ExactBuilds() []Exact {
	formats := [][5]string{{"int4", "int8:g64:asym", "fp8", "int4:g32:sym", "none"},
		{"none", "none", "int8", "none", "int8"}}
	units := [][2]string{{"sm_90", "bf16"}, {"sm_75", "fp16"}, {"sm_90", "fp32"}, {"sm_80", "fp16"}, {"sm_90", "fp16"},
		{"sm_80", "bf16"}, {"sm_75", "bf16"}}
	var all []Exact
	for _, f := range formats {
		for _, on := range units {
			// Warps take several quads of a row, and equal shares where wgmma is to multiply.
			all = append(all, Exact{on[0], on[1], f, exactSizes{256, 384, 96, 8, 4, 32, 4, 2},
				`"ring": {"chunk_bytes": 4096}, "warps": {"qkv": 1, "o": 2, "gate_up": 1}, ` +
					`"chains": {"qkv": 2, "down": 2, "lm_head": 2}`})
		}
	}
	// Columns of o and down in parts, which have no passes of several tokens.
	for _, e := range []Exact{{Arch: "sm_90", DType: "bf16", Formats: formats[1], Knobs: `"gemv": {"parts": 8}`},
		{Arch: "sm_80", DType: "fp16", Formats: formats[0], Knobs: `"gemv": {"parts": 2}`},
		{Arch: "sm_90", DType: "fp32", Formats: formats[0], Knobs: `"gemv": {"parts": 2}`}} {
		e.exactSizes = exactSizes{256, 512, 96, 8, 4, 32, 1, 2}
		e.Knobs += `, "ring": {"chunk_bytes": 4096}`
		all = append(all, e)
	}
	return all
}

// Name is unique among exact builds.
func (e Exact) Name() string {
	name := e.Arch + " " + e.DType + " " + strings.Join(e.Formats[:], ",")
	if e.rows == 1 {
		name += " parts"
	}
	return name
}

// ReadsPrompts reports whether the build multiplies on tensor cores, without parts, and has a kernel for prompts.
func (e Exact) ReadsPrompts() bool { return e.Arch != "sm_75" && e.DType != "fp32" && e.rows > 1 }

// The mean square of what norms see, so that 1/rms is a power of two, and with which products are scaled by it.
const (
	exactSquare  = 256
	exactInverse = 16
)

// Compile writes the model and the build below a directory, and returns the directory of the build.
func (e Exact) Compile(ctx context.Context, dir string) (string, error) {
	model, out := filepath.Join(dir, "model"), filepath.Join(dir, "build")
	if err := os.MkdirAll(model, 0o777); err != nil {
		return "", err
	}
	config, err := json.Marshal(map[string]any{"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama",
		"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false,
		"torch_dtype": "float32", "num_hidden_layers": 1, "num_attention_heads": e.heads,
		"num_key_value_heads": e.kvHeads, "head_dim": e.dim, "hidden_size": e.hidden,
		"intermediate_size": e.middle, "vocab_size": e.vocab, "max_position_embeddings": 64})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(model, "config.json"), config, 0o666); err != nil {
		return "", err
	}
	if err := e.writeWeights(filepath.Join(model, "model.safetensors")); err != nil {
		return "", err
	}
	var formats []string
	for i, f := range e.Formats {
		for _, matrix := range matricesOf[exactRoles[i]] {
			formats = append(formats, matrix+"="+f)
		}
	}
	o := compiler.Options{Model: model, Name: "exact"}
	if e.rows > 1 {
		o.Passes = []ir.Pass{{Rows: e.rows}}
	}
	if o.Formats, err = passes.ParseWeightFormats(strings.Join(formats, ",")); err != nil {
		return "", err
	}
	number := 0
	if _, err := fmt.Sscanf(e.Arch, "sm_%d", &number); err != nil {
		return "", err
	}
	o.Target = ir.ArchTarget(number, e.sms)
	dtype := dtypes[e.DType]
	o.DType = &dtype
	prompt := 0
	if e.ReadsPrompts() {
		prompt = 64
	}
	text := fmt.Sprintf(`{"tiling": {"prompt": {"tokens": %d}, %s}}`, prompt, e.Knobs)
	var problems diag.List
	if o.Config, problems = ir.ParseConfig([]byte(text), e.Name()); len(problems) > 0 {
		return "", problems
	}
	_, err = compiler.Compile(ctx, compiler.BuildOptions{Options: o, OutDir: out, NoBuild: true, NoLauncher: true})
	return out, err
}

// An exactModel is made tensor by tensor, in the order of a step.
type exactModel struct {
	exactSizes
	lot   *rand.Rand
	specs []checkpoint.Spec
	data  [][]float32
}

func (m *exactModel) add(name string, values []float32, shape ...int) {
	m.specs = append(m.specs, checkpoint.Spec{Name: name, DType: checkpoint.F32, Shape: shape})
	m.data = append(m.data, values)
}

// writeWeights makes the model.
func (e Exact) writeWeights(path string) error {
	m := &exactModel{exactSizes: e.exactSizes, lot: rand.New(rand.NewPCG(1, 2))}
	formats := map[string]grid{}
	for i, role := range exactRoles {
		formats[role] = gridOf(e.Formats[i])
	}
	const layer = "model.layers.0."
	ones := slices.Repeat([]float32{1}, m.hidden)
	x := m.normed()
	embeddings := slices.Repeat(floatsOf(x, 1), m.vocab)
	m.add("model.embed_tokens.weight", embeddings, m.vocab, m.hidden)
	m.add(layer+"input_layernorm.weight", ones, m.hidden)

	v := m.integers(m.kvHeads*m.dim, 20, m.dim)
	m.matrix(layer+"self_attn.q_proj.weight", formats["qkv"], x, m.pairs(m.heads, 0), 1)
	m.matrix(layer+"self_attn.k_proj.weight", formats["qkv"], x, m.pairs(m.kvHeads, 1), 1)
	m.matrix(layer+"self_attn.v_proj.weight", formats["qkv"], x, goals(v, exactInverse), 1)

	var attention []int // each head of v for the query heads that share it
	for h := range m.heads {
		kv := h / (m.heads / m.kvHeads)
		attention = append(attention, v[kv*m.dim:(kv+1)*m.dim]...)
	}
	h := m.normed()
	m.matrix(layer+"self_attn.o_proj.weight", formats["o"], attention, goals(minus(h, x), 1), 1)
	m.add(layer+"post_attention_layernorm.weight", ones, m.hidden)

	up := m.integers(m.middle, 50, 128)
	gate, act := make([]int, m.middle), make([]int, m.middle)
	for i := range gate {
		gate[i] = 32 << m.lot.IntN(2)
		if up[i] == most || up[i] == -most {
			gate[i] = 64
		}
		act[i] = gate[i] * up[i] / 32
	}
	m.matrix(layer+"mlp.gate_proj.weight", formats["gate_up"], h, goals(gate, exactInverse), 1)
	m.matrix(layer+"mlp.up_proj.weight", formats["gate_up"], h, goals(up, exactInverse), 1)
	last := m.normed()
	m.matrix(layer+"mlp.down_proj.weight", formats["down"], act, goals(minus(last, h), 1), 1.0/32)
	m.add("model.norm.weight", ones, m.hidden)
	m.matrix("lm_head.weight", formats["lm_head"], last, make([]goal, m.vocab), 1)

	w, err := checkpoint.NewWriter(path, m.specs, nil)
	if err != nil {
		return err
	}
	defer w.Abort()
	for i, values := range m.data {
		if err := w.Append(m.specs[i].Name, rawOf(values)); err != nil {
			return err
		}
	}
	return w.Close()
}

func rawOf(values []float32) []byte {
	raw := make([]byte, 0, 4*len(values))
	for _, f := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
	}
	return raw
}

// most is the largest magnitude of what a matrix of integers is multiplied by in 16 bits, times a power of two: then
// the digits that the kernel makes of it are exact.
const most = 127

// integers returns n small numbers other than 0. In each group of them one has the magnitude most, and no other has.
func (m *exactModel) integers(n, below, each int) []int {
	x := make([]int, n)
	for i := range x {
		x[i] = (1 + m.lot.IntN(below)) * (1 - 2*m.lot.IntN(2))
		if i%each < 4 {
			x[i] = 1 - 2*m.lot.IntN(2) // with which rows are set right
		}
	}
	for i := 0; i < n; i += each {
		x[i+4+m.lot.IntN(each-4)] = most * (1 - 2*m.lot.IntN(2))
	}
	return x
}

// normed returns integers of the model's size whose mean square is exactSquare.
func (m *exactModel) normed() []int {
	for {
		x := m.integers(m.hidden, 19, 128)
		left := exactSquare * m.hidden
		for _, f := range x {
			left -= f * f
		}
		for try := 0; left != 0 && try < 1<<16; try++ {
			i, by := m.lot.IntN(len(x)), 1-2*m.lot.IntN(2)
			size := max(x[i], -x[i])
			if size == most || size+by < 1 || size+by > 60 {
				continue
			}
			more := (size+by)*(size+by) - size*size
			if d := left - more; max(d, -d) <= max(left, -left) || m.lot.IntN(50) == 0 {
				left = d
				x[i] = x[i] / size * (size + by)
			}
		}
		if left == 0 {
			return x
		}
	}
}

// A goal is what a row of integers adds up to with its vector.
type goal struct {
	zeros bool // all of the row are 0
	set   bool // else: whatever
	sum   int
}

func goals(results []int, times int) []goal {
	all := make([]goal, len(results))
	for i, r := range results {
		all[i] = goal{set: true, sum: r * times}
	}
	return all
}

// pairs are the rows of queries or keys: those of every other rotation pair are zeros.
func (m *exactModel) pairs(heads, odd int) []goal {
	all := make([]goal, heads*m.dim)
	for i := range all {
		all[i].zeros = i%m.dim%(m.dim/2)%2 != odd
	}
	return all
}

// A grid is the integers that a format has, and those that each group must have for its scale to be a power of two.
type grid struct {
	group    int
	low      int // of the integers that are drawn
	high     int
	extremes []int
}

func gridOf(format string) grid {
	g := grid{group: 128, low: -9, high: 9}
	name, options, _ := strings.Cut(format, ":")
	group := map[string]int{"int4": 64, "int8": 128, "fp8": 128}[name]
	fmt.Sscanf(options, "g%d", &group)
	switch {
	case name == "int4" && strings.Contains(options, "sym"):
		return grid{group, -7, 7, []int{7}}
	case name == "int4":
		return grid{group, -8, 7, []int{-8, 7}}
	case strings.Contains(options, "asym"):
		return grid{group, -9, 9, []int{-128, 127}}
	case name == "int8":
		return grid{group, -9, 9, []int{127}}
	case name == "fp8": // 14 of 32 each is 448, and all numbers up to it have 4 bits
		return grid{group, -14, 14, []int{14}}
	}
	return g
}

// matrix adds a matrix that makes its goals of a vector.
func (m *exactModel) matrix(name string, g grid, x []int, of []goal, unit float32) {
	var all []float32
	for _, goal := range of {
		row := make([]int, len(x))
		for !goal.zeros && !m.row(row, g, x, goal) {
		}
		all = append(all, floatsOf(row, unit)...)
	}
	m.add(name, all, len(of), len(x))
}

// row draws a row, and sets it right for its goal, if it can.
func (m *exactModel) row(row []int, g grid, x []int, of goal) bool {
	fixed := make([]bool, len(row))
	draw := func() int {
		for {
			if q := g.low + m.lot.IntN(g.high-g.low+1); q != 0 {
				return q
			}
		}
	}
	left := of.sum
	for i := range row {
		row[i] = draw()
	}
	for lo := 0; lo < len(row); lo += g.group {
		for _, extreme := range g.extremes {
			for {
				i := lo + m.lot.IntN(min(g.group, len(row)-lo))
				if size := max(x[i], -x[i]); !fixed[i] && size > 1 && size < most {
					row[i], fixed[i] = extreme, true
					break
				}
			}
		}
	}
	for i := range row {
		left -= row[i] * x[i]
	}
	for try := 0; of.set && left != 0 && try < 1<<14; try++ {
		i := m.lot.IntN(len(row))
		if fixed[i] {
			continue
		}
		q := min(g.high, max(g.low, row[i]+left/x[i]))
		if d := left - (q-row[i])*x[i]; q != 0 && max(d, -d) < max(left, -left) {
			row[i], left = q, d
		} else if q = draw(); m.lot.IntN(40) == 0 {
			row[i], left = q, left-(q-row[i])*x[i]
		}
	}
	return !of.set || left == 0
}

func minus(x, y []int) []int {
	d := make([]int, len(x))
	for i := range x {
		d[i] = x[i] - y[i]
	}
	return d
}

func floatsOf(x []int, unit float32) []float32 {
	f := make([]float32, len(x))
	for i := range x {
		f[i] = float32(x[i]) * unit
	}
	return f
}
