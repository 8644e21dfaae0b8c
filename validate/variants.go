package validate

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/op"
)

// checkVariants: the variants have names of their own and cover every position that the model can decode, each once, so
// that a step always has exactly one program. All rows of a pass are of one variant, so that of several rows there may
// be positions between two variants at which no pass begins: fewer than it has rows.
func checkVariants(prog *ir.Program) diag.List {
	var diags diag.List
	if len(prog.Variants) == 0 {
		diags.Add(diag.Errorf(ir.CodeVariants, "",
			"the program has no variant, want one for each interval of positions"))
		return diags
	}
	byLo := make([]*ir.Variant, len(prog.Variants))
	names := map[string]bool{}
	for i := range prog.Variants {
		v := &prog.Variants[i]
		byLo[i] = v
		if names[v.Name] {
			diags.Add(diag.Errorf(ir.CodeVariants, "variant "+v.Name, "is defined twice"))
		}
		names[v.Name] = true
	}
	slices.SortStableFunc(byLo, func(a, b *ir.Variant) int { return cmp.Compare(a.Lo, b.Lo) })
	next, rows := 0, prog.Pass.NumRows()
	for _, v := range byLo {
		if left := v.Lo - next; left < 0 || left >= rows {
			diags.Add(diag.Errorf(ir.CodeVariants, "variant "+v.Name,
				"starts at position %d, want %d: variants follow each other from 0 without overlap, and leave out "+
					"fewer positions than a pass has rows", v.Lo, next))
		}
		next = v.Hi + 1
	}
	if end := prog.Model.MaxSeq - rows + 1; prog.Model.MaxSeq > 0 && (next > end || end-next >= rows) {
		diags.Add(diag.Errorf(ir.CodeVariants, "variant "+byLo[len(byLo)-1].Name,
			"the variants end at position %d, want %d, the last at which the model can decode a pass", next-1, end-1))
	}
	if most := op.MaxIndex - rows + 1; next-1 > most {
		diags.Add(diag.Errorf(ir.CodeVariants, "variant "+byLo[len(byLo)-1].Name,
			"the variants end at position %d, want at most %d: positions are of type I32", next-1, most))
	}
	return diags
}

// proofOf is the outcome of one variant: what unrolling it said, and its proof if it could be unrolled.
type proofOf struct {
	diags diag.List
	proof *Proof
}

// maxTogether bounds the proofs that are made at a time, and with them the memory that they take.
const maxTogether = 2

// proveVariants proves the variants of a program on their own, two at a time if there are processors. Nothing that
// one proof finds depends on another, but what those before it have spent decides whether it is made at all: the list
// ends with a finding where they have spent too much. It is the same list whichever proof ends first, because a
// variant is only left out for the sake of variants before it.
func proveVariants(b Backend, prog *ir.Program, w without) []proofOf {
	out, spent := make([]proofOf, len(prog.Variants)), make([]work, len(prog.Variants))
	var next atomic.Int64
	var lock sync.Mutex // of spent and running
	running, ended := 0, sync.NewCond(&lock)
	var workers sync.WaitGroup
	for range min(len(out), runtime.GOMAXPROCS(0), maxTogether) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(out); i = int(next.Add(1)) - 1 {
				lock.Lock()
				for running > 0 && exceeded(prog, spent[:i], 1) { // what is running may be the last
					ended.Wait()
				}
				if exceeded(prog, spent[:i], sharedBudget) {
					lock.Unlock()
					return
				}
				running++
				lock.Unlock()
				v := proveVariant(b, prog, &prog.Variants[i], w)
				lock.Lock()
				if out[i] = v; v.proof != nil {
					spent[i] = v.proof.work
				}
				running--
				ended.Broadcast()
				lock.Unlock()
			}
		})
	}
	workers.Wait()
	for i := range out {
		if exceeded(prog, spent[:i], sharedBudget) {
			d := diag.Errorf(CodeBudget, "variant "+prog.Variants[i].Name,
				"the proofs of the variants before it have needed more than %d%% of what one may need; it is not "+
					"proved, and what is not proved is refused", 100*sharedBudget/2).
				Suggest("make the program smaller, or leave variants out")
			for k := i; k < len(out); k++ {
				if p := out[k].proof; p != nil {
					p.release()
				}
			}
			return append(out[:i], proofOf{diags: diag.List{d}})
		}
	}
	return out
}

func proveVariant(b Backend, prog *ir.Program, v *ir.Variant, w without) proofOf {
	flat, diags := ir.UnrollWithPeers(prog, v)
	out := proofOf{diags: diags}
	if flat != nil {
		p := prove(flat, b, w)
		out.proof = p
		if p.sound() {
			p.checkStep()
			if p.contract != nil {
				p.contract.CheckModel(&prog.Model)
			}
		}
		p.shed()
		if len(prog.Variants) > 1 {
			name(p.diags, v.Name)
		}
	}
	if len(prog.Variants) > 1 {
		name(diags, v.Name)
	}
	return out
}
