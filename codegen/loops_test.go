package codegen

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/readback"
	"amkc/validate"
	"amkc/validate/kernel"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// loopOf is the first loop of a variant.
func loopOf(p *ir.Program, v int) *ir.Loop {
	for _, n := range p.Variants[v].Body {
		if l, ok := n.(*ir.Loop); ok {
			return l
		}
	}
	return nil
}

// split is a family as two: the first n members separately, the others as a family that starts at n.
func split(t testing.TB, b ir.Buffer, n int) []ir.Buffer {
	if b.Count == 0 {
		return []ir.Buffer{b}
	}
	out := membersOf(t, []ir.Buffer{b})[0][:n]
	b.First, b.Count = b.Index(n), b.Count-n
	return append(out, b)
}

// halves is a family as two that go by two.
func halves(b ir.Buffer) []ir.Buffer {
	if b.Count < 2 {
		return []ir.Buffer{b}
	}
	even, odd := b, b
	even.Count, even.Step = (b.Count+1)/2, 2
	odd.First, odd.Count, odd.Step = b.First+1, b.Count/2, 2
	return []ir.Buffer{even, odd}
}

// byTwo is a name of a body as the second half of a body of twice the length has it.
func byTwo(name string) string {
	return strings.NewReplacer("{i+1}", "{i+2}", "{i}", "{i+1}").Replace(name)
}

// general are programs with other loops than one over all layers, made of a golden one with six layers.
var general = map[string]func(t testing.TB, p *ir.Program) *ir.Program{
	// The first layer stands before the loop, with weights and a cache of its own, and the families start at 1.
	"first": func(t testing.TB, p *ir.Program) *ir.Program {
		p = unrolled(t, p, 1)
		var buffers []ir.Buffer
		for _, b := range p.Buffers {
			if b.Count > 0 && len(b.Pages) == 0 {
				buffers = append(buffers, split(t, b, 1)...)
			} else {
				buffers = append(buffers, b)
			}
		}
		p.Buffers = buffers
		return p
	},
	// Two alternating kinds of layers, of two intermediate sizes: the body is two layers long, and the families go by
	// two.
	"turns": func(t testing.TB, p *ir.Program) *ir.Program {
		const small = 352 // of 704
		for v := range p.Variants {
			l := loopOf(p, v)
			for _, s := range slices.Clone(l.Body) {
				odd := *stageOfBody(s, byTwo)
				odd.Layer.N++
				odd.Dist.Rot = (odd.Dist.Rot + odd.Dist.Step) % odd.Dist.SMs
				switch s.Name {
				case "L{i}.gate_up":
					odd.Dist.Extent = 2 * small
				case "L{i}.down":
					odd.Ops[0].In[0].Dims[0], odd.Ops[0].In[1].Dims[1] = ir.Span(ir.Int(0), ir.Int(small)),
						ir.Span(ir.Int(0), ir.Int(small))
					tasks := (&ir.Dist{Kind: ir.Spread, Extent: 2 * small, Grain: 8, SMs: odd.Dist.SMs}).Tasks(0)
					odd.Waits[0].Threshold = len(tasks)
				}
				l.Body = append(l.Body, &odd)
			}
			l.Step, l.Count = 2, l.Count/2
		}
		var buffers []ir.Buffer
		for _, b := range p.Buffers {
			two := []ir.Buffer{b}
			switch b.Name {
			case "L{i}.act", "L{i}.gate_up.weight", "L{i}.down.weight":
				two = halves(b)
				odd := &two[1]
				odd.Shape = slices.Clone(odd.Shape)
				k := map[string]int{"L{i}.down.weight": 1}[b.Name]
				odd.Shape[k] /= 2
			}
			buffers = append(buffers, two...)
		}
		p.Buffers = buffers
		return p
	},
	// Layers 1 and 4 share one matrix, which a group names in each iteration.
	"shared": func(t testing.TB, p *ir.Program) *ir.Program {
		var buffers []ir.Buffer
		group := ir.Group{Name: "o_of{i}"}
		for _, b := range p.Buffers {
			if b.Name != "L{i}.o.weight" {
				buffers = append(buffers, b)
				continue
			}
			members := membersOf(t, []ir.Buffer{b})[0]
			for _, k := range []int{0, 1, 2, 3, 1, 5} {
				group.Members = append(group.Members, members[k].Name)
			}
			buffers = append(buffers, slices.Delete(members, 4, 5)...)
		}
		p.Buffers, p.Groups = buffers, []ir.Group{group}
		for v := range p.Variants {
			for _, s := range loopOf(p, v).Body {
				if s.Name == "L{i}.o" {
					s.Ops[0].In[1].Buf = group.Name
				}
			}
		}
		return p
	},
	// Two loops one after the other, over the first two layers and over the others.
	"two": func(t testing.TB, p *ir.Program) *ir.Program {
		for v := range p.Variants {
			at := slices.IndexFunc(p.Variants[v].Body, func(n ir.Node) bool { _, ok := n.(*ir.Loop); return ok })
			first := loopOf(p, v)
			second := *first
			first.Count, second.Name, second.First, second.Count = 2, "others", 2, first.Count-2
			p.Variants[v].Body = slices.Insert(p.Variants[v].Body, at+1, ir.Node(&second))
		}
		return p
	},
}

// stageOfBody is a stage with other names.
func stageOfBody(s *ir.Stage, name func(string) string) *ir.Stage {
	c := *s
	c.Name, c.Signal = name(s.Name), name(s.Signal)
	c.Waits = slices.Clone(s.Waits)
	for k := range c.Waits {
		c.Waits[k].Counter = name(c.Waits[k].Counter)
	}
	c.Ops = slices.Clone(s.Ops)
	for k := range c.Ops {
		for _, side := range []*[]ir.Operand{&c.Ops[k].Out, &c.Ops[k].In} {
			*side = slices.Clone(*side)
			for j := range *side {
				(*side)[j].Buf = name((*side)[j].Buf)
				(*side)[j].Dims = slices.Clone((*side)[j].Dims)
			}
		}
	}
	return &c
}

// What of the emitted text depends on the form of the loops, and what of that does not.
var (
	dependsOnLoops = regexp.MustCompile(`layer|base|stream_|attend|embed<|_stage\(|kLoops|At\[\]|OfLayer|LayerBytes|` +
		`k\w*Weight\w* = |static_assert\(\d|^    [\dk]`)
	always = regexp.MustCompile(`^//|kRotationStep|kStage|kXchg`)
)

func ofLoops(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if dependsOnLoops.MatchString(line) && !always.MatchString(line) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// Other loops are emitted as they are, and their headers, which the reader cannot follow, are refused by name.
func TestGeneralLoops(t *testing.T) {
	for name, make := range general {
		t.Run(name, func(t *testing.T) {
			p := make(t, goldenPrograms(t)["pycoder-5m_h200_bf16"])
			require.Empty(t, ir.Check(p))
			proof := validate.ProgramFor(kernel.Backend, p)
			require.True(t, proof.OK, "%v", proof.Diags)
			files, err := CUDA(p)
			require.NoError(t, err)
			var b strings.Builder
			for _, file := range []string{"model_config.h", "schedule.h", "pages.h", "megakernel.cu"} {
				b.WriteString("== " + file + "\n" + ofLoops(string(files[file])))
			}
			path := filepath.Join("testdata", "loops", name+".golden")
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), b.String())

			_, diags := readback.Program(files)
			require.Error(t, diags.Err())
			require.Equal(t, "AMK4914", diags[0].Code, diags.Error())
			compiles(t, p)
		})
	}
}
