package loops

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
	"amkc/ir"
)

// copyOf returns a program that shares nothing with p.
func copyOf(t require.TestingT, p *ir.Program) *ir.Program {
	back, err := ir.Parse(ir.Print(p), "copy")
	require.NoError(t, err)
	return back
}

// requireUnrolls checks that the tasks of a rolled program are those of the flat one, one by one: on the same SMs,
// with the same ops on the same views, the same thresholds. Names may differ, by a bijection; buffers of one name may
// have been several in a chain, and copies may enter and leave a chain on chip. For those it runs both programs on
// values that say which op made them, and every op must read the same values.
func requireUnrolls(t require.TestingT, flat, rolled *ir.Program) {
	require.Len(t, rolled.Variants, len(flat.Variants))
	flat, rolled = copyOf(t, flat), copyOf(t, rolled)
	for i := range flat.Variants {
		a, diags := ir.Unroll(flat, &flat.Variants[i])
		require.NoError(t, diags.Err())
		b, diags := ir.Unroll(rolled, &rolled.Variants[i])
		require.NoError(t, diags.Err())
		pos := min(a.Lo+3, a.Hi)
		c := &comparison{t: t, a: a, b: b, before: newValues(a, pos), after: newValues(b, pos), buffers: newBijection(),
			counters: newBijection()}
		c.run()
	}
}

type comparison struct {
	t                 require.TestingT
	a, b              *ir.Flat
	before, after     *values
	buffers, counters *bijection
}

// A bijection maps names of one program to those of another, in both directions.
type bijection struct{ to, from map[string]map[string]bool }

func newBijection() *bijection {
	return &bijection{map[string]map[string]bool{}, map[string]map[string]bool{}}
}

func (b *bijection) pair(x, y string) {
	for _, m := range []struct {
		in   map[string]map[string]bool
		k, v string
	}{{b.to, x, y}, {b.from, y, x}} {
		if m.in[m.k] == nil {
			m.in[m.k] = map[string]bool{}
		}
		m.in[m.k][m.v] = true
	}
}

func carried(name string) bool { return strings.Contains(name, ".carry") }

// inserted reports whether an op of the rolled program is a copy to or from a chain on chip, which the flat one does
// not have.
func (c *comparison) inserted(op *ir.FlatOp) bool {
	return op.Code == ir.COPY && op.InBuf[0] >= 0 && op.OutBuf[0] >= 0 &&
		carried(c.b.Buffers[op.InBuf[0]].Name) != carried(c.b.Buffers[op.OutBuf[0]].Name)
}

func (c *comparison) run() {
	t := c.t
	next := 0
	skip := func() {
		for ; next < len(c.b.Tasks) && len(c.b.Tasks[next].Ops) == 1 && c.inserted(&c.b.Tasks[next].Ops[0]); next++ {
			c.after.copy(&c.b.Tasks[next].Ops[0])
		}
	}
	for i := range c.a.Tasks {
		skip()
		require.Less(t, next, len(c.b.Tasks), "the rolled program lacks task %s", c.a.Tasks[i].Name)
		c.task(&c.a.Tasks[i], &c.b.Tasks[next], i)
		next++
	}
	skip()
	require.Len(t, c.b.Tasks, next, "the rolled program has more tasks")
	for x, ys := range c.counters.to {
		require.Len(t, ys, 1, "counter %s", x)
	}
	for y, xs := range c.counters.from {
		require.Len(t, xs, 1, "counter %s", y)
	}
	kinds := map[string]ir.BufferKind{}
	for _, b := range c.b.Buffers {
		kinds[b.Name] = b.Kind
	}
	for x, ys := range c.buffers.to {
		names := slices.DeleteFunc(keysOf(ys), carried)
		require.LessOrEqual(t, len(names), 1, "buffer %s is several: %v", x, names)
	}
	for y, xs := range c.buffers.from {
		require.True(t, len(xs) == 1 || kinds[y] == ir.Activation, "buffer %s was several: %v", y, xs)
	}
	for _, b := range c.a.Buffers {
		if b.Kind == ir.Output || b.Kind == ir.KVCache {
			require.Equal(t, c.before.of[b.Name], c.after.of[c.now(b.Name)], "what is in %s in the end", b.Name)
		}
	}
}

// now is the name of a buffer in the rolled program.
func (c *comparison) now(name string) string {
	for y := range c.buffers.to[name] {
		if !carried(y) {
			return y
		}
	}
	return name
}

func keysOf(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}

func (c *comparison) task(x, y *ir.Task, n int) {
	t := c.t
	require.Equal(t, x.SM, y.SM, "%s, rolled %s", x.Name, y.Name)
	require.Equal(t, len(x.Waits), len(y.Waits), x.Name)
	for k, w := range x.Waits {
		require.Equal(t, w.Threshold, y.Waits[k].Threshold, x.Name)
		c.counters.pair(c.a.Counters[w.Counter].Name, c.b.Counters[y.Waits[k].Counter].Name)
	}
	if require.Equal(t, x.Signal < 0, y.Signal < 0, x.Name); x.Signal >= 0 {
		c.counters.pair(c.a.Counters[x.Signal].Name, c.b.Counters[y.Signal].Name)
	}
	require.GreaterOrEqual(t, len(y.Ops), len(x.Ops), x.Name)
	for k := range y.Ops {
		if k >= len(x.Ops) {
			require.True(t, c.inserted(&y.Ops[k]), "%s does more than %s", y.Name, x.Name)
			c.after.copy(&y.Ops[k])
			continue
		}
		c.op(x.Name, &x.Ops[k], &y.Ops[k], strconv.Itoa(n)+" "+strconv.Itoa(k))
	}
}

func (c *comparison) op(where string, x, y *ir.FlatOp, made string) {
	t := c.t
	require.Equal(t, x.Code, y.Code, where)
	require.Equal(t, x.Params, y.Params, where)
	require.Equal(t, len(x.In), len(y.In), where)
	require.Equal(t, len(x.Out), len(y.Out), where)
	operand := func(o, p ir.Operand, a, b int) bool {
		require.Equal(t, o.Dims, p.Dims, where)
		if a < 0 || b < 0 {
			require.Equal(t, o.Buf, p.Buf, where)
			return false
		}
		f, g := &c.a.Buffers[a], &c.b.Buffers[b]
		require.Equal(t, []any{f.DType, f.Shape, f.Layout}, []any{g.DType, g.Shape, g.Layout}, "%s: %s and %s", where,
			f.Name, g.Name)
		requireSameSource(t, f, g)
		c.buffers.pair(f.Name, g.Name)
		return true
	}
	for k := range x.In {
		if operand(x.In[k], y.In[k], x.InBuf[k], y.InBuf[k]) {
			require.Equal(t, c.before.read(x.InBuf[k], x.In[k].Dims), c.after.read(y.InBuf[k], y.In[k].Dims),
				"%s reads %s", where, x.In[k].Buf)
		}
	}
	for k := range x.Out {
		if operand(x.Out[k], y.Out[k], x.OutBuf[k], y.OutBuf[k]) {
			c.before.write(x.OutBuf[k], x.Out[k].Dims, made)
			c.after.write(y.OutBuf[k], y.Out[k].Dims, made)
		}
	}
}

// requireSameSource checks that a buffer's rows come from the same tensors. Unrolled families keep {i} in their keys;
// the index is the one that their name has.
func requireSameSource(t require.TestingT, f, g *ir.Buffer) {
	require.Equal(t, len(f.Pieces), len(g.Pieces), f.Name)
	for q := range f.Pieces {
		require.Equal(t, f.Pieces[q].Chain, g.Pieces[q].Chain)
		key := g.Pieces[q].Key
		if ir.IsFamily(key) {
			digits := strings.TrimLeft(g.Name, "abcdefghijklmnopqrstuvwxyzL_")
			i, err := strconv.Atoi(digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789"))])
			require.NoError(t, err, g.Name)
			key, err = ir.ResolveKey(key, i)
			require.NoError(t, err)
		}
		require.Equal(t, f.Pieces[q].Key, key, g.Name)
	}
}

// values are what the elements of buffers hold: a number that says which op made it, at one position. Weights and
// inputs hold what they always hold.
type values struct {
	flat *ir.Flat
	pos  int
	of   map[string][]uint64 // by linear index; 0 where nothing was written
}

func newValues(f *ir.Flat, pos int) *values { return &values{f, pos, map[string][]uint64{}} }

// linear is the index of an element among all of its buffer.
func linear(b *ir.Buffer, e [4]int) int {
	n := 0
	for d, size := range b.Shape {
		n = n*size + e[d]
	}
	return n
}

func (v *values) read(buf int, dims []ir.Range) []uint64 {
	b := &v.flat.Buffers[buf]
	if b.Kind == ir.Weight || b.Kind == ir.Const {
		return nil
	}
	var out []uint64
	modeltest.EachElement(dims, v.pos, func(e [4]int) {
		value := uint64(0)
		if of := v.of[b.Name]; of != nil {
			value = of[linear(b, e)]
		}
		if value == 0 {
			value = hashOf("first", b.Kind.String(), strconv.Itoa(e[0]))
			if b.Kind == ir.Input || b.Kind == ir.Output {
				value = hashOf(b.Name, strconv.Itoa(e[0]))
			}
		}
		out = append(out, value)
	})
	return out
}

func hashOf(parts ...string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(strings.Join(parts, " ")))
	return h.Sum64()
}

func (v *values) write(buf int, dims []ir.Range, made string) {
	n := uint64(0)
	base := hashOf(made)
	v.set(buf, dims, func() uint64 { n++; return base*31 + n })
}

func (v *values) copy(op *ir.FlatOp) {
	in := v.read(op.InBuf[0], op.In[0].Dims)
	v.set(op.OutBuf[0], op.Out[0].Dims, func() uint64 { x := in[0]; in = in[1:]; return x })
}

func (v *values) set(buf int, dims []ir.Range, value func() uint64) {
	b := &v.flat.Buffers[buf]
	name := b.Name
	if v.of[name] == nil {
		v.of[name] = make([]uint64, b.Numel())
	}
	modeltest.EachElement(dims, v.pos, func(e [4]int) { v.of[name][linear(b, e)] = value() })
}

// The same for layers of the shapes that published models have. Every element is compared, so that the larger one is
// for AMKC_LONG.
func TestLoopsOfRealShapesUnroll(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	shapes := []string{
		`"hidden_size": 576, "intermediate_size": 1536, "num_attention_heads": 9, "num_key_value_heads": 3, ` +
			`"tie_word_embeddings": true`,
		`"hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8, ` +
			`"tie_word_embeddings": true`,
	}
	if os.Getenv("AMKC_LONG") == "" {
		shapes = shapes[:1]
	}
	for _, config := range shapes {
		p := flattened(t, Assigned(t, `{"model_type": "llama", "num_hidden_layers": 3,
			"vocab_size": 500, "max_position_embeddings": 2048, "torch_dtype": "bfloat16",
				`+config+"}", modeltest.ToyTarget(132),
			ir.ScheduleConfig{}))
		flat := copyOf(t, p)
		require.Equal(t, Report{Stages: 47, Rolled: 33, Loops: 2, Bodies: 11}, rollAll(t, p))
		requireUnrolls(t, flat, p)
	}
}

// Rolling changes nothing but names, in every schedule.
func TestLoopUnrollsToTheFlatProgram(t *testing.T) {
	for seed := range uint64(modeltest.Samples()) {
		of := modeltest.NewSample(rand.New(rand.NewPCG(seed, 99)))
		p := flattened(t, Assigned(t, of.Model, of.Target, of.Config))
		flat := copyOf(t, p)
		rollAll(t, p)
		for i := range p.Variants {
			require.True(t, slices.ContainsFunc(p.Variants[i].Body,
				func(n ir.Node) bool { _, ok := n.(*ir.Loop); return ok }))
		}
		requireUnrolls(t, flat, p)
	}
}

// A recorder is a test that is to fail.
type recorder struct{ said string }

func (r *recorder) Errorf(format string, args ...any) { r.said += fmt.Sprintf(format, args...) }
func (r *recorder) FailNow()                          { panic(r) }

// differ reports what requireUnrolls says, or nothing.
func differ(flat, rolled *ir.Program) (said string) {
	r := &recorder{}
	defer func() {
		if e := recover(); e != nil && e != any(r) {
			panic(e)
		}
		said = r.said
	}()
	requireUnrolls(r, flat, rolled)
	return ""
}

// The comparison sees what rolling could get wrong.
func TestTheComparisonSeesMistakes(t *testing.T) {
	body := func(p *ir.Program) []*ir.Stage {
		for _, n := range p.Variants[0].Body {
			if l, ok := n.(*ir.Loop); ok {
				return l.Body
			}
		}
		return nil
	}
	renamed := func(from, to string) func(*ir.Program) {
		return func(p *ir.Program) {
			rename(body(p), func(name string) string { return strings.Replace(name, from, to, 1) })
		}
	}
	layers := func() (flat, rolled *ir.Program) {
		p := deep(t, 4, 1)
		share(p, "down.weight", []int{0, 1, 0, 1})
		flat = copyOf(t, p)
		rollAll(t, p)
		return flat, p
	}
	chain := func() (flat, rolled *ir.Program) {
		return example(t, "chain_double.in.amk"), example(t, "chain_double.out.amk")
	}
	for name, c := range map[string]struct {
		of    func() (flat, rolled *ir.Program)
		spoil func(*ir.Program)
	}{
		"weights of another layer": {layers, renamed("L{i}.o.weight", "L00.o.weight")},
		"cache of another layer":   {layers, renamed("L{i}.kv", "L00.kv")},
		"exchange of this layer":   {layers, renamed("L{i+1}.x", "L{i}.x")},
		"members of a group":       {layers, func(p *ir.Program) { m := p.Groups[0].Members; m[1], m[2] = m[2], m[1] }},
		"rotation": {layers,
			func(p *ir.Program) { d := &body(p)[0].Dist; d.Step = (d.Step + 1) % d.SMs }},
		"threshold": {layers, func(p *ir.Program) { body(p)[1].Waits[0].Threshold++ }},
		"counter":   {layers, func(p *ir.Program) { body(p)[0].Waits[0].Counter = "L00.x" }},
		"state-dict key": {layers, func(p *ir.Program) {
			for i := range p.Buffers {
				if b := &p.Buffers[i]; b.Name == "L{i}.o.weight" {
					b.Pieces[0].Key = strings.Replace(b.Pieces[0].Key, "{i}", "{i+1}", 1)
				}
			}
		}},
		"order of stages":    {layers, func(p *ir.Program) { b := body(p); b[0], b[1] = b[1], b[0] }},
		"value not loaded":   {chain, func(p *ir.Program) { p.Variants[0].Body = p.Variants[0].Body[1:] }},
		"value not stored":   {chain, func(p *ir.Program) { st := body(p)[0]; st.Ops = st.Ops[:1] }},
		"value of this call": {chain, renamed("x.carry{i}", "x.carry00")},
	} {
		flat, rolled := c.of()
		require.Empty(t, differ(flat, rolled), name)
		c.spoil(rolled)
		require.NotEmpty(t, differ(flat, rolled), name)
	}
}
