package codegen

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate"
	"amkc/validate/kernel"
)

// late is a stage that reads the vector of lm_head, and hands one over that nobody reads.
const late = `stage late spread extent=352 grain=8 sms=40 rot=3 step=0
  wait L03.x >= 8
  %n = RMSNORM(L03.x[0:64], final_norm.weight[0:64]) eps=1e-06
  %y = GEMV_TILE(%n, L00.gate_up.weight[a:b,0:64])
  late[a/2:b/2] = SILU_MUL(%y)
`

// Two of the stages that end a step.
const (
	stopStage = "stage stop spread extent=40 grain=1 sms=40 rot=0 step=0\n" +
		"  stop[a:b] = STOP(next.sm[a:b], stop.ids[0:256], stop.last[0])\n"
	emitStage = "stage emit explicit\n  task sm=0 a=0 b=1\n  next[0] = COPY(next.sm[0])\n"
)

// more is a stage of each layer like gate_up, into a vector of its own.
const more = `stage L{i}.more spread extent=352 grain=8 sms=40 rot=3 step=3
  wait L{i}.h >= 8
  %n = RMSNORM(L{i}.h[0:64], L{i}.post_norm.weight[0:64]) eps=1e-06
  %y = GEMV_TILE(%n, L{i}.gate_up.weight[a:b,0:64])
  L{i}.late[a/2:b/2] = SILU_MUL(%y)
  signal COUNTER
`

// ownPages gives each vector of a program a page, so that a stage may read one from further back.
func ownPages(text string) string {
	vector := regexp.MustCompile(`(?m)^(buffer (?:L\{i\}\.)?(\w+) .*ACTIVATION .* GLOBAL_SCRATCH (word\w+)) page \w+$`)
	pages := ""
	text = vector.ReplaceAllStringFunc(text, func(line string) string {
		m := vector.FindStringSubmatch(line)
		pages += "page own" + m[2] + " GLOBAL_SCRATCH " + m[3] + " bytes=4096\n"
		return m[1] + " page own" + m[2]
	})
	text = strings.Replace(text, "page xchg0", "page late GLOBAL_SCRATCH word32x2 bytes=704\npage xchg0", 1)
	return strings.Replace(text, "page xchg0", pages+"page xchg0", 1)
}

// The kernel waits for the stage before, whatever the program says: programs that are proved with other waits are
// refused.
func TestWaitOrder(t *testing.T) {
	raw, err := os.ReadFile("../testdata/golden/llama-gqa_t4_fp16_split/schedule.amk")
	require.NoError(t, err)
	const one, many = "buffer late ACTIVATION F16 [176] GLOBAL_SCRATCH word32x2 page late\nbuffer best.value",
		"buffer L{i}.late for 0..2 ACTIVATION F16 [176] GLOBAL_SCRATCH word32x2 page late\nbuffer best.value"
	rowsOfX := "buffer late ACTIVATION F16 [64] GLOBAL_SCRATCH word32x2 page late\nbuffer best.value"
	second := `stage embed2 spread extent=64 grain=8 sms=40 rot=0 step=0
  residual[a:b], late[a:b] = EMBED(token[0], embed.weight[0:512,a:b], embeddings[a:b])
`
	for name, c := range map[string]struct {
		counted bool // with counted exchanges alone: flagged words of other exchanges are refused by validate
		once    bool // only the first of each text is edited
		want    string
		edits   []string
	}{
		"nothing": {},
		"another embedding first": {edits: []string{"buffer best.value", rowsOfX, "stage embed ",
			second + "stage embed "}},
		"a stage after sample": {want: "stage late: error: is not a stage that the kernel can end a step with here",
			edits: []string{"buffer best.value", one, "stage emit", late + "stage emit"}},
		"a stage before sample": {want: "stage late: error: publishes its rows and signals nothing",
			edits: []string{"buffer best.value", one, "stage sample", late + "stage sample"}},
		"a stage before lm_head": {want: "stage late: error: publishes its rows and signals nothing",
			edits: []string{"buffer best.value", one, "stage lm_head", late + "stage lm_head"}},
		"two stages of one counter": {counted: true, want: "signals L00.act, and so does stage L00.gate_up",
			edits: []string{"buffer best.value", many, "stage L{i}.down",
				strings.Replace(more, "COUNTER", "L{i}.act", 1) + "stage L{i}.down", "wait L{i}.act >= 40",
				"wait L{i}.act >= 80"}},
		"the token chosen twice": {want: "stage sample2: error: is not a stage that the kernel can end a step with",
			edits: []string{"stage stop", "stage sample2 spread extent=40 grain=1 sms=40 rot=0 step=0\n  wait best " +
				">= 40\n  next.sm[a:b] = SAMPLE(best.value[0:40], best.index[0:40], sampling[0:4]) pos=pos\n" +
				"stage stop"}},
		"stop after emit": {want: "stage emit: error: is not a stage that the kernel can end a step with here",
			edits: []string{stopStage, "", emitStage, emitStage + stopStage}},
		"nothing stops": {want: "stage emit: error: is not a stage that the kernel can end a step with here",
			edits: []string{stopStage, ""}},
		"stop at other tokens": {want: "the kernel's stop would compute stop[a:b] = STOP(next.sm[a:b], " +
			"stop.ids[0:256], stop.last[0])", edits: []string{"stop.ids[0:256]", "stop.ids[0:255]"}},
		"stop at another's token": {want: "the kernel's stop would compute",
			edits: []string{"STOP(next.sm[a:b]", "STOP(token[0]", "stop[a:b]", "stop[a]"}},
		"emit on another SM": {want: "stage emit: error: runs elsewhere than on SM 0",
			edits: []string{"task sm=0 a=0 b=1\n  next", "task sm=0 a=0 b=2\n  next"}},
		"a hidden state on another SM": {want: "stage hidden: error: runs elsewhere than on SM 0",
			edits: []string{"task sm=0 a=0 b=1\n  wait", "task sm=1 a=0 b=1\n  wait"}},
		"a hidden state that is waited for": {want: "stage hidden: error: signals step, or keeps the last hidden state",
			edits: []string{"stage lm_head", "  signal step\nstage lm_head"}},
		"emit signals": {want: "stage emit: error: signals step, and the kernel's emit nothing",
			edits: []string{"COPY(next.sm[0])\n", "COPY(next.sm[0])\n  signal step\n"}},
		"stop waits": {want: "stage stop: error: waits for best, and the kernel goes on",
			edits: []string{"  stop[a:b] =", "  wait best >= 40\n  stop[a:b] ="}},
		"two joins of an SM": {want: "stage join: error: is distributed spread, extent 80",
			edits: []string{"stage join spread extent=40", "stage join spread extent=80"}},
		"another stage signals step": {want: "stage late: error: signals step, as the kernel does where a step ends",
			edits: []string{"buffer best.value", one, "stage lm_head", late + "  signal step\nstage lm_head"}},
		"the vector before last": {edits: []string{"wait L{i}.h >= 8\n  %n = RMSNORM(L{i}.h[0:64]", // is kept
			"wait L{i}.x >= 8\n  %n = RMSNORM(L{i}.x[0:64]"}},
		"an older vector after a later count": {counted: true,
			edits: []string{"%n = RMSNORM(L{i}.h[0:64]", "%n = RMSNORM(L{i}.x[0:64]"}},
		"embed on every SM": {counted: true, want: "stage embed: error: begins a step",
			edits: []string{"stage embed spread extent=64 grain=8 sms=40 rot=0 step=0",
				"stage embed spread extent=64 grain=8 sms=40 rot=0 step=0 empty",
				"stage L{i}.down spread extent=64 grain=8 sms=40 rot=0 step=0",
				"stage L{i}.down spread extent=64 grain=8 sms=40 rot=0 step=0 empty", "wait L{i}.x >= 8",
				"wait L{i}.x >= 40", "wait L03.x >= 8", "wait L03.x >= 40"}},
		"embed that waits": {counted: true, want: "stage embed: error: waits for step2, and reads nothing",
			edits: []string{"buffer best.value", rowsOfX, "counter step ", "counter step2 counter gpu\ncounter step ",
				"stage embed ", second + "  signal step2\nstage embed ",
				"  residual[a:b], L00.x[a:b] = EMBED", "  wait step2 >= 8\n  residual[a:b], L00.x[a:b] = EMBED"}},
		"other frequencies": {edits: []string{"buffer embed.weight",
			"buffer other CONST F32 [8] HBM rowmajor from rows(@inv_freq)\nbuffer embed.weight",
			"%y, rope.inv_freq[0:8]", "%y, other[0:8]"}},
		"two frequencies": {once: true, // two tables of angles
			edits: []string{"buffer embed.weight",
				"buffer other CONST F32 [8] HBM rowmajor from rows(@inv_freq)\nbuffer embed.weight",
				"%y, rope.inv_freq[0:8]", "%y, other[0:8]"}},
		"frequencies by the name": {edits: []string{"buffer embed.weight",
			"buffer rope.inv_freq2 CONST F32 [8] HBM rowmajor from rows(@inv_freq)\nbuffer embed.weight"}},
		"the same token again": {want: "the kernel's emit would compute next[0] = COPY(next.sm[0])",
			edits: []string{"COPY(next.sm[0])", "COPY(token[0])"}},
		"another output": {want: "stage emit: error: is not a stage that the kernel can end a step with here",
			edits: []string{"buffer next.sm", "buffer again IO_OUTPUT I32 [1] HBM rowmajor\nbuffer next.sm",
				"stage emit explicit", "stage again explicit\n  task sm=0 a=0 b=1\n  again[0] = COPY(next.sm[0])\n" +
					"stage emit explicit"}},
		"a page of no vector": {edits: []string{"buffer token ",
			"page idle GLOBAL_SCRATCH word32 bytes=256\nbuffer token "}},
	} {
		for _, how := range []string{"flagged", "counter"} {
			if c.counted && how == "flagged" {
				continue
			}
			t.Run(name+", "+how, func(t *testing.T) {
				text := ownPages(string(raw))
				if how == "counter" {
					text = regexp.MustCompile(`(?m)^(counter L.*) flagged gpu`).ReplaceAllString(text, "$1 counter gpu")
				}
				for i := 0; i < len(c.edits); i += 2 {
					require.Contains(t, text, c.edits[i])
					times := -1
					if c.once {
						times = 1
					}
					text = strings.Replace(text, c.edits[i], c.edits[i+1], times)
				}
				p, err := ir.Parse([]byte(text), "edited.amk")
				require.NoError(t, err)
				require.NoError(t, ir.Check(p).Err())
				rep := validate.ProgramFor(kernel.Backend, p)
				require.True(t, rep.OK, "it is proved: %.500s", rep.Diags)
				_, err = CUDA(p)
				if c.want == "" {
					require.NoError(t, err)
					return
				}
				var d *diag.Diagnostic
				require.ErrorAs(t, err, &d)
				require.Contains(t, d.Error(), c.want)
			})
		}
	}
}
