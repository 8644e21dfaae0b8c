package codegen

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/readback"
	"amkc/runtime/host"
	"amkc/validate"
	"amkc/validate/kernel"
)

// unrolled is a program with the first n iterations of its loop, or all for n < 0, as stages in no loop, and all its
// families as separate buffers and counters if none are left.
func unrolled(t testing.TB, p *ir.Program, n int) *ir.Program {
	t.Helper()
	text, err := p.MarshalJSON()
	require.NoError(t, err)
	q, diags := ir.ParseJSON(text, "program")
	require.NoError(t, diags.Err())
	for i := range q.Variants {
		v := &q.Variants[i]
		var body []ir.Node
		for _, node := range v.Body {
			l, ok := node.(*ir.Loop)
			if !ok {
				body = append(body, node)
				continue
			}
			peeled := l.Count
			if n >= 0 {
				peeled = min(n, l.Count)
			}
			for k := range peeled {
				for _, s := range l.Body {
					if l.Runs(s, k) {
						body = append(body, stageOf(t, s, l.Index(k)))
					}
				}
			}
			if l.First, l.Count = l.Index(peeled), l.Count-peeled; l.Count > 0 {
				body = append(body, l)
			}
		}
		v.Body = body
		if n >= 0 {
			continue
		}
		var counters []ir.Counter
		for _, c := range v.Counters {
			for k := range max(1, c.Count) {
				one := c
				one.Name, one.First, one.Count, one.Step = resolved(t, c.Name, c.Index(k)), 0, 0, 0
				counters = append(counters, one)
			}
		}
		v.Counters = counters
	}
	if n < 0 {
		q.Buffers = slices.Concat(membersOf(t, q.Buffers)...)
	}
	return q
}

// membersOf are the members of each family as separate buffers.
func membersOf(t testing.TB, buffers []ir.Buffer) [][]ir.Buffer {
	var out [][]ir.Buffer
	for _, b := range buffers {
		var members []ir.Buffer
		for k := range max(1, b.Count) {
			one := b
			one.Name, one.First, one.Count, one.Step = resolved(t, b.Name, b.Index(k)), 0, 0, 0
			one.Pieces = slices.Clone(b.Pieces)
			for i := range one.Pieces {
				key, err := ir.ResolveKey(one.Pieces[i].Key, b.Index(k))
				require.NoError(t, err)
				one.Pieces[i].Key = key
			}
			if len(b.Pages) > 0 {
				one.Pages = []string{b.Pages[b.Index(k)/max(1, b.Step)%len(b.Pages)]}
			}
			members = append(members, one)
		}
		out = append(out, members)
	}
	return out
}

func resolved(t testing.TB, name string, i int) string {
	t.Helper()
	out, err := ir.Resolve(name, i)
	require.NoError(t, err)
	return out
}

// stageOf is a stage of a body in the iteration with index i.
func stageOf(t testing.TB, s *ir.Stage, i int) *ir.Stage {
	c := *s
	c.Kind = 0
	if n, ok := s.Layer.At(i); ok {
		c.Layer = ir.Layer{Known: true, N: n}
	}
	c.Name, c.Signal = resolved(t, s.Name, i), resolved(t, s.Signal, i)
	c.Waits = slices.Clone(s.Waits)
	for k := range c.Waits {
		c.Waits[k].Counter = resolved(t, c.Waits[k].Counter, i)
	}
	c.Ops = slices.Clone(s.Ops)
	for k := range c.Ops {
		o := &c.Ops[k]
		for _, side := range []*[]ir.Operand{&o.Out, &o.In} {
			*side = slices.Clone(*side)
			for j := range *side {
				(*side)[j].Buf = resolved(t, (*side)[j].Buf, i)
			}
		}
	}
	if c.Dist.SMs > 0 {
		c.Dist.Rot = (c.Dist.Rot + c.Dist.Step*i) % c.Dist.SMs
	}
	c.Dist.Step = 0
	return &c
}

// A program whose layers are in no loop does what the rolled one does, reads back out of its headers, and is proved.
func TestUnrolledPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for name, rolled := range goldenPrograms(t) {
		t.Run(name, func(t *testing.T) {
			p := unrolled(t, rolled, -1)
			require.Empty(t, ir.Check(p))
			for i := range p.Variants {
				want, diags := ir.Unroll(rolled, &rolled.Variants[i])
				require.NoError(t, diags.Err())
				got, diags := ir.Unroll(p, &p.Variants[i])
				require.NoError(t, diags.Err())
				require.Equal(t, len(want.Tasks), len(got.Tasks))
			}
			files, err := CUDA(p)
			require.NoError(t, err)
			require.NotContains(t, string(files["megakernel.cu"]), "layer <")
			read, diags := readback.Program(files)
			require.Empty(t, diags)
			require.Empty(t, readback.Compare(read, p))
			proof := validate.ProgramFor(kernel.Backend, read)
			require.True(t, proof.OK, "%v", proof.Diags)

			before, err := Facts(rolled)
			require.NoError(t, err)
			after, err := Facts(p)
			require.NoError(t, err)
			require.Equal(t, before.Traffic, after.Traffic)
			for i := range before.Variants {
				require.Equal(t, exchangedBy(t, before.Variants[i].Exchanges),
					exchangedBy(t, after.Variants[i].Exchanges))
			}
			compiles(t, p)
		})
	}
}

// exchangedBy lists stages with their elements, loops unrolled.
func exchangedBy(t testing.TB, list []host.Exchange) []host.Exchange {
	var out []host.Exchange
	for len(list) > 0 {
		n := 1
		for list[0].Layers > 0 && n < len(list) && list[n].Layers > 0 && list[n].Loop == list[0].Loop {
			n++
		}
		for round := range max(1, list[0].Layers) {
			for _, e := range list[:n] {
				if e.Rounds != nil && !slices.Contains(e.Rounds, round) {
					continue
				}
				out = append(out, host.Exchange{Stage: resolved(t, e.Stage, e.First+round*max(1, e.Step)),
					Elements: e.Elements})
			}
		}
		list = list[n:]
	}
	return out
}
