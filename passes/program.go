package passes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// eachStage calls f for every stage of a variant, in order; loop is nil outside loops.
func eachStage(v *ir.Variant, f func(s *ir.Stage, loop *ir.Loop)) {
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Stage:
			f(n, nil)
		case *ir.Loop:
			for _, s := range n.Body {
				f(s, n)
			}
		}
	}
}

// flatStages returns the stages of a variant that has no loops.
func flatStages(pass string, v *ir.Variant) ([]*ir.Stage, error) {
	stages := make([]*ir.Stage, 0, len(v.Body))
	for _, n := range v.Body {
		s, ok := n.(*ir.Stage)
		if !ok {
			return nil, diag.Errorf(codeOrder, "pass "+pass,
				"variant %s has a loop already; want the stages of every layer one by one", v.Name)
		}
		stages = append(stages, s)
	}
	return stages, nil
}

func setStages(v *ir.Variant, stages []*ir.Stage) {
	v.Body = v.Body[:0:0]
	for _, s := range stages {
		v.Body = append(v.Body, s)
	}
}

// splitName takes a name apart into layer and role: L03.qkv is layer 3, role qkv. The layer is -1 outside the layers.
func splitName(name string) (layer int, role string) {
	if rest, ok := strings.CutPrefix(name, "L"); ok {
		digits, role, ok := strings.Cut(rest, ".")
		if n, valid := layerIndex(digits); ok && valid {
			return n, role
		}
	}
	return -1, name
}

// layerIndex reads the digits of a layer prefix: two at least, and more only without a leading zero.
func layerIndex(digits string) (int, bool) {
	n := 0
	for _, c := range digits {
		if c < '0' || c > '9' || n > 1<<20 {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, fmt.Sprintf("%02d", n) == digits
}

// setThresholds makes every wait of a flat variant one for all producers of its counter.
func setThresholds(stages []*ir.Stage) {
	producers := map[string]int{}
	for _, s := range stages {
		producers[s.Signal] += len(s.Dist.Tasks(0))
	}
	for _, s := range stages {
		for i := range s.Waits {
			s.Waits[i].Threshold = producers[s.Waits[i].Counter]
		}
	}
}

// prune drops the buffers and counters that no stage names, and puts the rest into the order in which they are printed:
// buffers by kind and first use, counters by first signal.
func prune(p *ir.Program) {
	used := map[string]int{}
	for i := range p.Variants {
		v := &p.Variants[i]
		first := map[string]int{}
		eachStage(v, func(s *ir.Stage, _ *ir.Loop) {
			for _, op := range s.Ops {
				for _, o := range slices.Concat(op.Out, op.In) {
					if _, seen := used[o.Buf]; !seen {
						used[o.Buf] = len(used)
					}
				}
			}
			if _, seen := first[s.Signal]; !seen {
				first[s.Signal] = len(first)
			}
		})
		v.Counters = slices.DeleteFunc(v.Counters, func(c ir.Counter) bool { _, ok := first[c.Name]; return !ok })
		slices.SortStableFunc(v.Counters, func(a,
			b ir.Counter) int {
			return cmp.Compare(first[a.Name], first[b.Name])
		})
	}
	p.Buffers = slices.DeleteFunc(p.Buffers, func(b ir.Buffer) bool { _, ok := used[b.Name]; return !ok })
	slices.SortStableFunc(p.Buffers, func(a, b ir.Buffer) int {
		return cmp.Or(cmp.Compare(kindOrder[a.Kind], kindOrder[b.Kind]), cmp.Compare(used[a.Name], used[b.Name]))
	})
}

var kindOrder = map[ir.BufferKind]int{ir.Input: 0, ir.Output: 1, ir.Const: 2, ir.Weight: 3, ir.KVCache: 4,
	ir.Activation: 5}

// buffers finds the buffers of a program by name, those that are added through it included.
type buffers struct {
	p  *ir.Program
	at map[string]int
}

func newBuffers(p *ir.Program) buffers {
	b := buffers{p, make(map[string]int, len(p.Buffers))}
	for i := range p.Buffers {
		b.at[p.Buffers[i].Name] = i
	}
	return b
}

// find returns the buffer or family with the given name, or nil. It is valid until the next add.
func (b buffers) find(name string) *ir.Buffer {
	if i, ok := b.at[name]; ok {
		return &b.p.Buffers[i]
	}
	return nil
}

func (b buffers) add(buf ir.Buffer) *ir.Buffer {
	b.at[buf.Name] = len(b.p.Buffers)
	b.p.Buffers = append(b.p.Buffers, buf)
	return &b.p.Buffers[len(b.p.Buffers)-1]
}

// declare adds a counter unless it is there already.
func declare(counters []ir.Counter, seen map[string]bool, name string) []ir.Counter {
	if seen[name] {
		return counters
	}
	seen[name] = true
	return append(counters, ir.Counter{Name: name})
}

// cloneStage copies a stage so that neither sees changes of the other. Expressions are immutable and shared.
func cloneStage(s *ir.Stage) *ir.Stage {
	c := *s
	c.Waits, c.Dist.Spans, c.Ops = slices.Clone(s.Waits), slices.Clone(s.Dist.Spans), slices.Clone(s.Ops)
	for i := range c.Ops {
		op := &c.Ops[i]
		op.Out, op.In, op.Params = cloneViews(op.Out), cloneViews(op.In), slices.Clone(op.Params)
	}
	return &c
}

func cloneViews(views []ir.Operand) []ir.Operand {
	out := slices.Clone(views)
	for i := range out {
		out[i].Dims = slices.Clone(out[i].Dims)
	}
	return out
}

// Views are built from these.
var (
	spanA = ir.Symbol(ir.SpanA)
	spanB = ir.Symbol(ir.SpanB)
	pos   = ir.Symbol(ir.Pos)
	onSM  = ir.Symbol(ir.OnSM)
	task  = ir.Span(spanA, spanB) // what the task covers
)

func temp(name string) ir.Operand { return ir.Operand{Buf: name} }

func view(buf string, dims ...ir.Range) ir.Operand { return ir.Operand{Buf: buf, Dims: dims} }

// upTo is the range of the first n elements.
func upTo(n int) ir.Range { return ir.Span(ir.Int(0), ir.Int(n)) }

// at is the range of the n elements from n*e + offset.
func at(e ir.Expr, n, offset int) ir.Range {
	lo, hi := e.Mul(n), e.Add(ir.Int(1)).Mul(n)
	if offset != 0 {
		lo, hi = ir.Int(offset).Add(lo), ir.Int(offset).Add(hi)
	}
	return ir.Span(lo, hi)
}
