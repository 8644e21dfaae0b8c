package codegen

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
)

// body names what carries out a stage: a function of the device runtime, or for a matrix product one of stages.h that
// is emitted with it. It is found from the ops of the stage.
type body string

const (
	bodyEmbed           body = "embed"
	bodyEmbedReplicated body = "embed_replicated"
	bodyAddNorm         body = "add_norm"
	bodyAddNormRows     body = "add_norm_rows"
	bodyProduct         body = "gemv"
	bodyAttend          body = "attend"
	bodyCombine         body = "combine"
	bodyArrive          body = "arrive"
	bodyJoin            body = "join"
	bodyKeepHidden      body = "keep_hidden"

	bodySample   body = "sample"
	bodyStop     body = "stop"
	bodyEmit     body = "emit"
	bodyJoinStep body = "join_step"
)

// A declaration is what stands behind a sequence of ops: the body of the runtime that carries them out, and for
// attention the reader that takes the heads of q and k in.
type declaration struct {
	body  body
	heads string
}

// Readers of heads, in attention.cuh: as they are, or normalised.
const (
	plainHeads  = "PlainHeads"
	normedHeads = "NormedHeads"
)

// bodies are those of the runtime, by the ops that each carries out.
var bodies = map[string]declaration{
	"EMBED":                              {body: bodyEmbed},
	"EMBED ADD":                          {body: bodyEmbed},
	"ATTENTION_TILE KV_APPEND KV_APPEND": {bodyAttend, plainHeads},
	"RMSNORM RMSNORM ATTENTION_TILE KV_APPEND KV_APPEND":               {bodyAttend, normedHeads},
	"RMSNORM RMSNORM ROPE ROPE ATTENTION_TILE KV_APPEND KV_APPEND":     {bodyAttend, normedHeads},
	"LAYERNORM LAYERNORM ATTENTION_TILE KV_APPEND KV_APPEND":           {bodyAttend, normedHeads},
	"LAYERNORM LAYERNORM ROPE ROPE ATTENTION_TILE KV_APPEND KV_APPEND": {bodyAttend, normedHeads},
	"RMSNORM ADD":       {body: bodyAddNorm},
	"RMSNORM":           {body: bodyKeepHidden},
	"LAYERNORM":         {body: bodyKeepHidden},
	"ATTENTION_COMBINE": {body: bodyCombine},
	"SAMPLE":            {body: bodySample},
	"STOP":              {body: bodyStop},
	"COPY":              {body: bodyEmit},
	"NOP":               {body: bodyArrive},
}

// codesOf are the ops of a stage, as bodies has them: without those that add up the parts of a branch.
func codesOf(s *ir.Stage) string {
	var codes []string
	for _, o := range s.Ops[sumsOfParts(s):] {
		codes = append(codes, o.Code.String())
	}
	return strings.Join(codes, " ")
}

// headsOf is the reader of an attention stage's heads, and normsHeads whether that normalises them: with normsWhole all
// of q and all of k, and else each by itself. rotatesHeads is whether it rotates what it has normalised.
func headsOf(s *ir.Stage) string    { return bodies[codesOf(s)].heads }
func normsHeads(s *ir.Stage) bool   { return headsOf(s) == normedHeads }
func normsWhole(s *ir.Stage) bool   { return normsHeads(s) && !centresHeads(s) && len(s.Ops[0].In) == 3 }
func rotatesHeads(s *ir.Stage) bool { return normsHeads(s) && op(s, ir.ROPE).In != nil }

// centresHeads is whether a norm of heads takes the mean off, and shiftsHeads whether it adds a bias then. hasOwnGains
// is whether each head has weights of its own, and not all the same.
func centresHeads(s *ir.Stage) bool { return normsHeads(s) && s.Ops[0].Code == ir.LAYERNORM }
func shiftsHeads(s *ir.Stage) bool {
	return centresHeads(s) && len(s.Ops[0].In) == 3 && len(s.Ops[1].In) == 3
}
func hasOwnGains(s *ir.Stage) bool {
	weights := operand(s.Ops[0].In, 1).Dims
	if !normsHeads(s) || len(weights) != 1 {
		return false
	}
	_, fixed := weights[0].Lo.IsConst()
	return !fixed
}

// addsToResidual reports whether a stage has a sum of rows that are kept on chip.
func addsToResidual(s *ir.Stage) bool {
	return slices.ContainsFunc(s.Ops, func(o ir.Op) bool { return o.Code == ir.ADD && !operand(o.In, 0).IsTemp() })
}

// choosesToken reports whether a stage looks for the largest logit of an SM's rows.
func choosesToken(s *ir.Stage) bool {
	return isProduct(s.Ops) && s.Ops[len(s.Ops)-1].Code == ir.SAMPLE
}

// numbered reports whether stages with the body have a descriptor, and a number in stall records. The others stand
// beside one that has: the ends of a step and of a layer.
func (b body) numbered() bool {
	return !b.endsStep() && b != bodyArrive && b != bodyJoin
}

// replicated reports whether the body is for a residual that every SM has all of, which it changes and hands nothing
// over.
func (b body) replicated() bool { return b == bodyEmbedReplicated || b == bodyAddNorm }

// stage is one stage as the templates see it.
type stage struct {
	IR     *ir.Stage
	Body   body
	Struct string // name of its descriptor
	Enum   string // name of its number in stall records
	Ops    []string
	Fields []field       // of the descriptor
	Matrix format.Format // of the matrix that it streams, or takes rows of; nil: none
	Func   *stageFunc    // of a matrix product; nil otherwise
}

// field is a constant of a descriptor.
type field struct {
	Type, Name, Value, Note string
}

// Is gives the constant its value, in C++: a list of them is in braces already.
func (f field) Is() string {
	if strings.HasPrefix(f.Value, "{") {
		return f.Value
	}
	return " = " + f.Value
}

// classify finds the body of a stage; that of the end of a step is taken for an arrival at a barrier.
func classify(s *ir.Stage) (body, error) {
	if isProduct(s.Ops) {
		return bodyProduct, nil
	}
	codes := codesOf(s)
	declared, ok := bodies[codes]
	if !ok {
		return "", diag.Errorf(codeStage, "stage "+s.Name, "no stage body runs the ops %s; there is one for %s", codes,
			nearest(strings.Fields(codes)))
	}
	b := declared.body
	switch {
	case b == bodyArrive && len(s.Waits) > 0:
		b = bodyJoin
	case b == bodyEmbed && len(operand(s.Ops[0].Out, 0).Dims) == 2:
		b = bodyEmbedReplicated
	case b == bodyAddNorm && len(op(s, ir.RMSNORM).In) == 3: // of rows, with the mean of all
		b = bodyAddNormRows
	}
	return b, nil
}

// nearest spells the sequences of ops that bodies carry out and that have an op of the given ones. Norms and rotations
// do not count, which stages of several bodies have. Where no sequence has one, it spells all.
func nearest(codes []string) string {
	product := "RMSNORM, LAYERNORM or nothing, GEMV_TILE, and then some of " + finishingOps()
	if slices.Contains(codes, ir.GEMV.String()) {
		return product
	}
	var near, all []string
	for seq := range bodies {
		all = append(all, seq)
		if slices.ContainsFunc(strings.Fields(seq), func(code string) bool {
			return code != ir.RMSNORM.String() && code != ir.ROPE.String() && slices.Contains(codes, code)
		}) {
			near = append(near, seq)
		}
	}
	if near == nil {
		near = append(all, product)
	}
	slices.Sort(near)
	return strings.Join(near, "; ")
}

// classify is classify for a stage of the program, where it is known which counters end a step.
func (b *builder) classify(s *ir.Stage) (body, error) {
	kind, err := classify(s)
	if kind == bodyArrive && b.steps[s.Signal] {
		kind = bodyJoinStep
	}
	return kind, err
}

// op returns the stage's first op with the given code. The stage has been classified, so it is there.
func op(s *ir.Stage, code ir.Opcode) *ir.Op {
	for i := range s.Ops {
		if s.Ops[i].Code == code {
			return &s.Ops[i]
		}
	}
	return &ir.Op{Code: code}
}

// BodyOf names the body that carries out a stage. That of a matrix product, which is emitted for its stage, goes by the
// ops around it, what multiplies, and of what.
func BodyOf(p *ir.Program, s *ir.Stage) string {
	b, err := classify(s)
	if err != nil || b != bodyProduct {
		return string(b)
	}
	units, matrix := "fma", ""
	if p.Target.RunsOnTensorCores(p.Model.Weights) {
		units = "mma"
	}
	product := op(s, ir.GEMV)
	for i := range p.Buffers {
		if m := &p.Buffers[i]; m.Name == operand(product.In, 1).Buf {
			matrix = m.DType.String()
			if q := m.Layout.Scales; q.Group > 0 {
				matrix += fmt.Sprintf(" by %d", q.Group)
				if q.Zeros {
					matrix += " with zeros"
				}
			}
		}
	}
	of := fmt.Sprintf("%s_%s(%s, %v)", b, units, matrix, p.Model.Weights)
	return strings.Replace(codesOf(s), product.Code.String(), of, 1)
}
