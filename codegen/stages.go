package codegen

import (
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// body names what carries out a stage: a function of the device runtime, or for a matrix product one of stages.h that
// is emitted with it. It is found from the ops of the stage.
type body string

const (
	bodyEmbed   body = "embed"
	bodyProduct body = "gemv"
	bodyAttend  body = "attend"
	bodyCombine body = "combine"
	bodyArrive  body = "arrive"
	bodyJoin    body = "join"

	bodySample   body = "sample"
	bodyStop     body = "stop"
	bodyEmit     body = "emit"
	bodyJoinStep body = "join_step"
)

// bodies are those of the runtime, by the ops that each carries out.
var bodies = map[string]body{
	"EMBED":                              bodyEmbed,
	"ATTENTION_TILE KV_APPEND KV_APPEND": bodyAttend,
	"RMSNORM RMSNORM ROPE ROPE ATTENTION_TILE KV_APPEND KV_APPEND": bodyAttend,
	"ATTENTION_COMBINE": bodyCombine,
	"SAMPLE_ARGMAX":     bodySample,
	"STOP":              bodyStop,
	"COPY":              bodyEmit,
	"NOP":               bodyArrive,
}

// addsToResidual reports whether a stage has a sum of rows that are kept on chip.
func addsToResidual(s *ir.Stage) bool {
	return slices.ContainsFunc(s.Ops, func(o ir.Op) bool { return o.Code == ir.ADD && !operand(o.In, 0).IsTemp() })
}

// normsHeads reports whether an attention stage normalises and rotates the heads of q and k that it reads.
func normsHeads(s *ir.Stage) bool { return s.Ops[0].Code == ir.RMSNORM }

// choosesToken reports whether a stage looks for the largest logit of an SM's rows.
func choosesToken(s *ir.Stage) bool {
	return isProduct(s.Ops) && s.Ops[len(s.Ops)-1].Code == ir.ArgMax
}

// numbered reports whether stages with the body have a descriptor, and a number in stall records. The others stand
// beside one that has: the ends of a step and of a layer.
func (b body) numbered() bool {
	return !b.endsStep() && b != bodyArrive && b != bodyJoin
}

// stage is one stage as the templates see it.
type stage struct {
	IR     *ir.Stage
	Body   body
	Struct string // name of its descriptor
	Enum   string // name of its number in stall records
	Ops    []string
	Fields []field    // of the descriptor
	Func   *stageFunc // of a matrix product; nil otherwise
}

// field is a constant of a descriptor.
type field struct {
	Type, Name, Value, Note string
}

// classify finds the body of a stage; that of the end of a step is taken for an arrival at a barrier.
func classify(s *ir.Stage) (body, error) {
	if isProduct(s.Ops) {
		return bodyProduct, nil
	}
	codes := make([]string, len(s.Ops))
	for i := range s.Ops {
		codes[i] = s.Ops[i].Code.String()
	}
	b, ok := bodies[strings.Join(codes, " ")]
	if !ok {
		return "", diag.Errorf(codeStage, "stage "+s.Name, "no stage body runs the ops %s; there is one for %s",
			strings.Join(codes, " "), nearest(codes))
	}
	if b == bodyArrive && len(s.Waits) > 0 {
		b = bodyJoin
	}
	return b, nil
}

// nearest spells the sequences of ops that bodies carry out and that have an op of the given ones. Norms and rotations
// do not count, which stages of several bodies have. Where no sequence has one, it spells all.
func nearest(codes []string) string {
	product := "RMSNORM or nothing, GEMV_TILE, and then some of " + finishingOps()
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
