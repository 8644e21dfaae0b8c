package kernel

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// some are constants of a stage that its body can have.
func some(r *rand.Rand, b *Body) *Stage {
	s := Named
	for _, f := range b.Fields {
		switch at := f.At(&s).(type) {
		case *int:
			*at = 1 + r.IntN(4)
		case *bool:
			*at = r.IntN(2) == 1
		case *float64:
			*at = r.Float64()
		}
		if f.If != nil && f.Opens {
			*f.If(&s) = r.IntN(2) == 1
		}
	}
	for _, a := range b.Args {
		if *a.At(&s) == "" {
			*a.At(&s) = "b" + strconv.Itoa(r.IntN(1000))
		}
	}
	s.Sigmoid, s.Renormalised = s.Sigmoid && !s.OfChosen, s.Renormalised && !s.OfChosen
	s.Width, s.ShareRows = 1<<r.IntN(5), 16*s.ShareRows
	if s.Centred = s.Centred && (s.Normed || b == KeepHidden); !s.Centred {
		s.NormWeights, s.Shifted = 1, false
	}
	s.NormWeights = min(2, s.NormWeights)
	s.WholeNorm = s.WholeNorm && s.Normed && !s.Centred
	s.OwnGains = s.Normed && (s.OwnGains || s.WholeNorm)
	s.Shifted, s.Rotates = s.Shifted && s.Normed, s.Rotates && s.Normed
	s.NormsValues = s.NormsValues && s.Normed && !s.Centred && !s.WholeNorm
	s.Angles = Angles{Frequencies: "inv_freq", Pairs: 4}
	for k := range 2 * max(1, s.Parts) {
		s.Temps = append(s.Temps, "%t"+strconv.Itoa(k))
	}
	return &s
}

func printed(ops []ir.Op) (lines []string) {
	for i := range ops {
		lines = append(lines, ir.PrintOp(&ops[i]))
	}
	return lines
}

// What a body computes for some constants is found to be its own, and gives the same constants: what codegen matches
// and refuses by is what readback makes of the text.
func TestPatternsAreRead(t *testing.T) {
	const each = 200
	f := &Facts{Hidden: 64, LayerFacts: ir.LayerFacts{Heads: 4, KVHeads: 2, HeadDim: 16}, Vocab: 96, SMs: 4,
		Names: NamesBy(func(role string) string { return Shared[role] })}
	for _, b := range Bodies {
		if b == Product || b == JoinStep || b == Join {
			continue // of its own ops, or told apart by counters
		}
		r := rand.New(rand.NewPCG(1, uint64(len(b.Name))))
		for range each {
			s := some(r, b)
			want := b.Ops(f, s)
			require.Same(t, b, Of(&ir.Stage{Ops: want}), "%s: %q", b, printed(want))

			read := *s // what no op says stays: the distribution, the sizes that depend on it, and tables
			for _, field := range b.Fields {
				if at, is := field.At(&read).(*float64); is {
					*at = 0
				}
			}
			read.Normed, read.WholeNorm, read.OwnGains, read.Shifted, read.Rotates = false, false, false, false, false
			read.NormsValues = false
			read.Scaled, read.Placed, read.UnitOffset, read.Centred = false, false, false, false
			read.Splits, read.Window, read.Parts, read.NormWeights, read.Temps = 0, 0, 0, 0, nil
			for _, a := range b.Args {
				*a.At(&read) = ""
			}
			if read.Resident = false; s.Splits == 1 {
				s.ShareRows = 0
			}
			b.Read(&read, want)
			require.Equal(t, printed(want), printed(b.Ops(f, &read)), b.Name)
		}
	}
}

// The parts of a product say what they are of.
func TestPartsOfProductsAreRead(t *testing.T) {
	f := &Facts{Hidden: 64, LayerFacts: ir.LayerFacts{HeadDim: 16}}
	s := Named
	s.Rows, s.Columns, s.SplitK, s.In, s.Matrix, s.Norm, s.Shift = 32, 64, 1, "in", "matrix", "norm", "shift"
	s.Bias, s.Curve, s.Centred, s.Eps, s.NormWeights = "bias", "curve", true, 0.5, 2
	s.Angles = Angles{Frequencies: "inv_freq", Pairs: 8}
	temp := func(name string, o ir.Op) ir.Op {
		o.Out = []ir.Operand{view(name)}
		return o
	}
	ops := []ir.Op{temp("%n", NormOf(&s)), temp("%y", GemvOf(&s, "%n")), temp("%b", AddBias(&s, view("%y"))),
		temp("%r", RopeOf(f, &s.Angles, 32, view("%b"))), temp("%a", Finish(&s, ir.XIELU, view("%r"))),
		AddResidual(&s, view("%a")), Choose(f, &s, view("logits", TaskRows))}
	require.Same(t, Product, Of(&ir.Stage{Ops: ops}))
	var read Stage
	Product.Read(&read, ops)
	require.Equal(t, Stage{In: s.In, Rounded: s.In, Matrix: s.Matrix, Norm: s.Norm, Shift: s.Shift, Bias: s.Bias,
		Curve: s.Curve, Residual: s.Residual, BestValue: s.BestValue, BestIndex: s.BestIndex, Centred: true, Eps: 0.5,
		NormWeights: 2, Angles: Angles{Frequencies: "inv_freq"}, Selected: 1, Summed: 1, Added: 1}, read)

	for parts := range 3 {
		s.SplitK = max(1, parts)
		product := GemvOf(&s, "")
		rows, columns := product.In[1].Dims[0], product.In[1].Dims[1]
		last := ir.TaskSpan{A: 24, B: 32}
		require.Equal(t, 8, rows.Bind(last).Len(0))
		require.Equal(t, 64*(s.SplitK-1), columns.Bind(last).Lo.At(0), "columns of the last part")
	}

	s.SplitK, s.Added, s.NormWeights = 1, 4, 0
	product := GemvOf(&s, "")
	require.Equal(t, []int{256, 256}, []int{product.In[0].Dims[0].Len(0), product.In[1].Dims[1].Len(0)})
	Product.Read(&read, []ir.Op{product})
	require.Equal(t, []int{4, 4}, []int{read.Added, s.Sums()})
}

// Constants that are read from text must be valid for the body.
func TestConstantsOfBodiesAreBounded(t *testing.T) {
	f := &Facts{LayerFacts: ir.LayerFacts{HeadDim: 16}}
	wants := func(b *Body, s Stage) (all []string) {
		for i := range b.Fields {
			if of := &b.Fields[i]; of.Wants != nil && of.Wants(f, &s) != "" {
				all = append(all, of.Name)
			}
		}
		return all
	}
	require.Equal(t, []string{"kGrain"}, wants(Embed, Stage{Grain: 12}))
	require.Empty(t, wants(Combine, Stage{Width: 8}))
	require.Equal(t, []string{"kWidth"}, wants(Combine, Stage{Width: 32}))
	require.Equal(t, []string{"kWidth"}, wants(Combine, Stage{}))
	require.Equal(t, []string{"kNormWeights"}, wants(KeepHidden, Stage{NormWeights: 2}))
	require.Empty(t, wants(KeepHidden, Stage{Centred: true}))
	require.Equal(t, []string{"kWholeNorm", "kNormShifted"}, wants(Attend, Stage{WholeNorm: true, Shifted: true}))
}
