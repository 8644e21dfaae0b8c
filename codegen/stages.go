package codegen

import (
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// body names the device function that carries out a stage, found from the sequence of its ops.
type body string

const (
	bodyEmbed    body = "embed"
	bodyQKV      body = "qkv"
	bodyAttend   body = "attend"
	bodyCombine  body = "combine"
	bodyResidual body = "add_residual"
	bodyGateUp   body = "gate_up"
	bodyLMHead   body = "lm_head"
	bodySample   body = "sample"
	bodyEmit     body = "emit"
	bodyArrive   body = "arrive"
	bodyJoin     body = "join"
)

var bodies = map[string]body{
	"EMBED":                              bodyEmbed,
	"RMSNORM GEMV_TILE ROPE":             bodyQKV,
	"ATTENTION_TILE KV_APPEND KV_APPEND": bodyAttend,
	"ATTENTION_COMBINE":                  bodyCombine,
	"GEMV_TILE ADD":                      bodyResidual,
	"RMSNORM GEMV_TILE SILU_MUL":         bodyGateUp,
	"RMSNORM GEMV_TILE SAMPLE_ARGMAX":    bodyLMHead,
	"SAMPLE_ARGMAX":                      bodySample,
	"COPY":                               bodyEmit,
	"NOP":                                bodyArrive,
}

// numbered reports whether stages with the body have a descriptor, and a number in stall records. The others stand
// beside one that has: the ends of a step and of a layer.
func (b body) numbered() bool {
	return b != bodySample && b != bodyEmit && b != bodyArrive && b != bodyJoin
}

// stage is one stage as the templates see it.
type stage struct {
	IR     *ir.Stage
	Body   body
	Struct string // name of its descriptor
	Enum   string // name of its number in stall records
	Ops    []string
	Fields []field // of the descriptor
}

// field is a constant of a descriptor.
type field struct {
	Type, Name, Value, Note string
}

// classify finds the body of a stage.
func classify(s *ir.Stage) (body, error) {
	codes := make([]string, len(s.Ops))
	for i := range s.Ops {
		codes[i] = s.Ops[i].Code.String()
	}
	b, ok := bodies[strings.Join(codes, " ")]
	if !ok {
		known := make([]string, 0, len(bodies))
		for seq := range bodies {
			known = append(known, seq)
		}
		slices.Sort(known)
		return "", diag.Errorf(codeStage, "stage "+s.Name,
			"no stage body runs the ops %s; there is one for each of: %s",
			strings.Join(codes, " "), strings.Join(known, "; "))
	}
	if b == bodyArrive && len(s.Waits) > 0 {
		b = bodyJoin
	}
	return b, nil
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
