package readback

import (
	"strconv"
	"strings"

	"amkc/ir"
	"amkc/kernel"
)

// What a descriptor or a header states although it follows from the rest: the kernel is compiled with it, so it has
// to be right.

// checkTasks holds kTasks to the distribution next to it, and kResidualRows to the SM that owns most of the residual.
func (b *builder) checkTasks() {
	r := &b.schedule
	rows, parts := 0, 1
	for _, d := range b.stages {
		parts = max(parts, d.Parts)
		dist := b.dist(d)
		tasks := dist.Tasks(0)
		if d.body.Replicated() {
			rows = max(rows, (b.facts.Hidden+7)/8*8)
			continue
		}
		if d.handsOver() {
			r.same(d.scope, "kTasks", d.Tasks, len(tasks), "the tasks of the distribution")
		} else {
			r.same(d.scope, "kTasks", d.Tasks, 0, "no task publishes anything")
		}
		if d.body.Keeps&kernel.OwnRows != 0 || d.adds {
			for _, t := range tasks {
				rows = max(rows, (t.B-t.A+7)/8*8)
			}
		}
	}
	r.same(r.scope, "kResidualRows", r.int(r.scope, "kResidualRows"), rows,
		"the most rows of the residual that an SM owns")
	r.same(r.scope, "kBranchParts", r.int(r.scope, "kBranchParts"), parts, "the most of all kParts, or 1")
}

// checkExchanges holds what the exchange area is sized by to the longest variant and the longest vector.
func (b *builder) checkExchanges() {
	r := &b.schedule
	exchanges, longest := 0, 0
	for i := range b.variants {
		n := 0
		for _, d := range b.variants[i].stages {
			if !d.handsOver() {
				continue
			}
			if d.inLayer() && !d.single {
				layers := ir.Loop{Count: b.facts.layers, Kinds: b.kinds}
				n += layers.NumIterations(&ir.Stage{Kind: d.kind})
			} else {
				n++
			}
		}
		exchanges = max(exchanges, n)
	}
	for i := range b.p.Buffers {
		if buf := &b.p.Buffers[i]; buf.Layout.Words() {
			longest = max(longest, buf.Numel())
		}
	}
	r.same(r.scope, "kExchangesPerStep", r.int(r.scope, "kExchangesPerStep"), exchanges,
		"the exchanges of the longest variant")
	r.same(r.scope, "kTraceStride", r.int(r.scope, "kTraceStride"), b.facts.Pass.NumTokens()*longest,
		"the elements of the longest exchanged vector of all tokens")
}

// checkComments holds the comment of each descriptor to the stage: its name and its ops.
func (b *builder) checkComments() {
	r := &b.schedule
	for _, d := range b.stages {
		head := " stage " + d.scope.name + "   ir: " + d.name
		start := -1
		for i, c := range d.above {
			if strings.HasPrefix(c.text, " stage ") {
				start = i
				break
			}
		}
		if start < 0 || d.above[start].text != head {
			r.fail(d.at, "no comment //%s before struct %s", head, d.scope.name)
			continue
		}
		want := b.ops(d)
		lines := unwrap(d.above[start+1:])
		for i, line := range printed(want) {
			switch {
			case i >= len(lines):
				r.fail(d.at, "the comment before struct %s lists %d ops; its body computes %d: %s", d.scope.name,
					len(lines), len(want), line)
			case !sameOp(lines[i].text, line):
				r.fail(lines[i].at, "the comment says %s; the body of %s computes %s", lines[i].text, d.scope.name,
					line)
			}
		}
		for _, extra := range lines[min(len(want), len(lines)):] {
			r.fail(extra.at, "the comment says %s, which the body of %s does not compute", extra.text, d.scope.name)
		}
	}
}

// unwrap joins the lines of a comment that are indented further than an op; one that is indented further still goes on
// in the middle of a word.
func unwrap(comments []token) []token {
	const indent, further = "   ", "       "
	var out []token
	for i := 0; i < len(comments); {
		first := comments[i]
		var line strings.Builder
		line.WriteString(strings.TrimPrefix(first.text, indent))
		for i++; i < len(comments) && strings.HasPrefix(comments[i].text, further); i++ {
			more := strings.TrimPrefix(comments[i].text, further)
			if rest, broken := strings.CutPrefix(more, "  "); broken {
				more = rest
			} else {
				line.WriteByte(' ')
			}
			line.WriteString(more)
		}
		out = append(out, token{kind: comment, text: line.String(), at: first.at})
	}
	return out
}

// sameOp compares printed ops. Floats are equal if they are to the kernel, which has them as C++ floats.
func sameOp(a, b string) bool {
	x, y := strings.Split(a, " "), strings.Split(b, " ")
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i] == y[i] {
			continue
		}
		key, v, ok := strings.Cut(x[i], "=")
		other, w, both := strings.Cut(y[i], "=")
		if !ok || !both || key != other || !sameFloat(v, w) {
			return false
		}
	}
	return true
}

func sameFloat(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 32)
	y, errY := strconv.ParseFloat(b, 32)
	return errX == nil && errY == nil && x == y && strings.ContainsAny(a, ".e") && strings.ContainsAny(b, ".e")
}

// printOp prints an op with its floats as the kernel has them.
func printOp(o *ir.Op) string {
	c := *o
	c.Params = append([]ir.Param(nil), o.Params...)
	for i := range c.Params {
		c.Params[i].Float = float64(float32(c.Params[i].Float))
	}
	return strings.TrimSpace(ir.PrintOp(&c))
}

// checkReadings holds what each stage of a step reads to the exchange that the kernel lets it wait for: the last one,
// or one that was kept.
func (b *builder) checkReadings() {
	for i := range b.variants {
		last, held := "", map[int]string{}
		step := func(d *descriptor, layer int) bool {
			of := func(vector string) string {
				if name, err := ir.Resolve(vector, layer); err == nil && d.looped() {
					return name
				}
				return b.outside(d, vector)
			}
			waits := last
			if d.Holds > 0 {
				held[d.Holds] = last
			}
			kept := waits
			if d.ReadsHeld > 0 {
				kept = held[d.ReadsHeld]
			}
			if !d.body.ReadsTwo {
				waits = kept
			}
			if d.handsOver() {
				last = of(d.Out)
			}
			if d.In == "" || of(d.In) == waits && (!d.body.ReadsTwo || of(d.Gates) == kept) {
				return true
			}
			b.schedule.fail(d.at, "struct %s waits for the exchange of %s and reads %s; want kReadsHeld where it does "+
				"not read what was published last, and kHolds where that is kept for it", d.scope.name, waits,
				of(d.In))
			return false
		}
		if !b.eachStep(&b.variants[i], step) {
			return
		}
	}
}

// eachStep calls f for the stages of a step in their order, in each layer that has them, as long as it returns true.
func (b *builder) eachStep(l *variantList, f func(d *descriptor, layer int) bool) bool {
	layers := ir.Loop{Count: b.facts.layers, Kinds: b.kinds}
	for i := 0; i < len(l.stages); {
		n := i
		for n < len(l.stages) && l.stages[n].looped() {
			n++
		}
		if n == i {
			if !f(l.stages[i], 0) {
				return false
			}
			i++
			continue
		}
		for layer := range b.facts.layers {
			for _, d := range l.stages[i:n] {
				if layers.Runs(&ir.Stage{Kind: d.kind}, layer) && !f(d, layer) {
					return false
				}
			}
		}
		i = n
	}
	return true
}
