package codegen

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
	"amkc/validate/kernel"
)

// withBarriers is a program in which each iteration of its loops ends at a barrier.
func withBarriers(p *ir.Program) *ir.Program {
	sms := p.Target.SMs
	everySM := ir.Dist{Kind: ir.Spread, Extent: sms, Grain: 1, SMs: sms}
	each := ir.Layer{Known: true, Index: true}
	for i := range p.Variants {
		v := &p.Variants[i]
		for _, n := range v.Body {
			if l, ok := n.(*ir.Loop); ok {
				l.Body = append(slices.Clone(l.Body),
					&ir.Stage{Name: "L{i}.arrive", Role: "arrive", Layer: each, Dist: everySM,
						Ops: []ir.Op{{Code: ir.NOP}}, Signal: "L{i}.join"},
					&ir.Stage{Name: "L{i}.join", Role: "join", Layer: each, Dist: everySM,
						Ops:   []ir.Op{{Code: ir.NOP}},
						Waits: []ir.Wait{{Counter: "L{i}.join", Threshold: sms}}})
			}
		}
		v.Counters = append(v.Counters, ir.Counter{Name: "L{i}.join", Count: p.Model.Layers, How: ir.ByCounter})
	}
	return p
}

// Barriers are numbered through a step, whatever loops they stand in; the producer waits where the consumers do.
func TestBarriersAreNumberedThroughAStep(t *testing.T) {
	const pycoder = "pycoder-5m_h200_bf16"
	for name, c := range map[string]struct {
		make    func(p *ir.Program) *ir.Program
		numbers []string
	}{
		"one loop":   {func(p *ir.Program) *ir.Program { return p }, []string{"layer"}},
		"two loops":  {func(p *ir.Program) *ir.Program { return general["two"](t, p) }, []string{"layer", "layer"}},
		"no loop":    {nil, []string{"0", "1", "2", "3", "4", "5"}},
		"by twos":    {func(p *ir.Program) *ir.Program { return general["turns"](t, p) }, []string{"layer / 2"}},
		"first of 6": {func(p *ir.Program) *ir.Program { return general["first"](t, p) }, []string{"layer - 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var p *ir.Program
			if c.make == nil {
				p = unrolled(t, withBarriers(goldenPrograms(t)[pycoder]), -1)
			} else {
				p = withBarriers(c.make(goldenPrograms(t)[pycoder]))
			}
			proof := validate.ProgramFor(kernel.Backend, p)
			require.True(t, proof.OK, "%v", proof.Diags)
			d, err := newCUDAData(p)
			require.NoError(t, err)
			for _, n := range c.numbers {
				require.Equal(t, count(c.numbers, n), count(d.Walk, "if (turns.now()) await_join(p, step, "+n+");"),
					d.Walk)
				if n[0] == 'l' {
					n = "c." + n
				}
				require.Positive(t, count(d.Consume, "join(c, "+n+");"), d.Consume)
			}
			require.Equal(t, count(d.Consume, "arrive(c);"), len(c.numbers))
		})
	}
}

// count is how many lines are a text, blanks left out.
func count(lines []string, text string) int {
	n := 0
	for _, line := range lines {
		for len(line) > 0 && line[0] == ' ' {
			line = line[1:]
		}
		if line == text {
			n++
		}
	}
	return n
}

func TestRefusalsOfBarriers(t *testing.T) {
	half := func(p *ir.Program, name string) []*ir.Stage {
		var out []*ir.Stage
		stages(p, func(s *ir.Stage) bool {
			if s.Name == name {
				out = append(out, s)
			}
			return false
		})
		return out
	}
	drop := func(p *ir.Program, v int, name string) {
		l := loopOf(p, v)
		l.Body = slices.DeleteFunc(slices.Clone(l.Body), func(s *ir.Stage) bool { return s.Name == name })
	}
	for name, c := range map[string]struct {
		code, want string
		edit       func(p *ir.Program)
	}{
		"arrive alone": {"AMK4003", "want a join right after it", func(p *ir.Program) { drop(p, 0, "L{i}.join") }},
		"join alone": {"AMK4003", "want an arrive right before it",
			func(p *ir.Program) { drop(p, 0, "L{i}.arrive") }},
		"one variant": {"AMK4003", "want the same in all", func(p *ir.Program) {
			drop(p, 1, "L{i}.join")
			drop(p, 1, "L{i}.arrive")
		}},
		"most SMs": {"AMK4003", "waits for 131 SMs of 132", func(p *ir.Program) {
			for _, s := range half(p, "L{i}.join") {
				s.Waits = []ir.Wait{{Counter: "L{i}.join", Threshold: 131}}
			}
		}},
		"two of an SM": {"AMK4002", "want one task on each of 132 SMs", func(p *ir.Program) {
			for _, s := range half(p, "L{i}.arrive") {
				s.Dist.Extent *= 2
			}
		}},
		"another waits": {"AMK4003", "want that of a join alone", func(p *ir.Program) {
			for i := range p.Variants {
				l := loopOf(p, i)
				at := slices.IndexFunc(l.Body, func(s *ir.Stage) bool { return s.Name == "L{i}.o" })
				o := *l.Body[at]
				o.Name, o.Role, o.Waits = "L{i}.again", "again", []ir.Wait{{Counter: "L{i}.join", Threshold: 132}}
				l.Body = append(l.Body, &o)
			}
		}},
		"copies": {"AMK4001", "the kernel's emit would compute next[0] = COPY(next.sm[0])", func(p *ir.Program) {
			for _, s := range half(p, "emit") {
				s.Ops = []ir.Op{{Code: ir.COPY, Out: []ir.Operand{{Buf: "L00.h"}}, In: []ir.Operand{{Buf: "L00.x"}}}}
			}
		}},
		"two residuals": {"AMK4003", "want one for the whole step", func(p *ir.Program) {
			p.Buffers = append(p.Buffers, ir.Buffer{Name: "other", Kind: ir.Activation, DType: ir.F32,
				Shape: []int{p.Model.Hidden}, Space: ir.SMEM})
			for _, s := range half(p, "L{i}.down") {
				s.Ops[1].Out[0].Buf = "other"
			}
		}},
		"exchanged residual": {"AMK4003", "want one buffer in SMEM", func(p *ir.Program) {
			for i := range p.Buffers {
				if p.Buffers[i].Name == "residual" {
					p.Buffers[i].Space = ir.GlobalScratch
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := withBarriers(goldenPrograms(t)["pycoder-5m_h200_bf16"])
			requireRefused(t, p, c.edit, c.code, c.want)
		})
	}
}
