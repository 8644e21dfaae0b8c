package validate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate"
)

func requireCode(t *testing.T, rep validate.Report, code *diag.Code, says string) {
	t.Helper()
	for _, d := range rep.Diags {
		if d.Code == code.ID && strings.Contains(d.Error(), says) {
			return
		}
	}
	require.Fail(t, "another verdict", "want %s saying %q, got\n%s", code.ID, says, rep.Diags.Error())
}

func TestProgramRules(t *testing.T) {
	for _, c := range []struct {
		name  string
		code  *diag.Code
		says  string
		edits []string
	}{
		{"no end", validate.CodeStepJoin, "counter of role step",
			[]string{"counter step", "counter stop", "signal step", "signal stop"}},
		{"task after the end", validate.CodeStepJoin, "task emit", []string{
			"counter step counter gpu", "counter step counter gpu\ncounter emitted flagged gpu",
			"COPY(next.sm[0])\n  signal step", "COPY(next.sm[0])\n  signal emitted"}},
		{"no token", validate.CodeNext, "publishes no token",
			[]string{"buffer next IO", "buffer other IO", "next[0] =", "other[0] ="}},
		{"gap between variants", ir.CodeVariants, "want 32",
			[]string{"variant long pos 32..63", "variant long pos 33..63"}},
		{"variants overlap", ir.CodeVariants, "want 32",
			[]string{"variant long pos 32..63", "variant long pos 31..63"}},
		{"end too early", ir.CodeVariants, "end at position 62",
			[]string{"variant long pos 32..63", "variant long pos 32..62"}},
		{"an SM that the target lacks", validate.CodeStructure, "target toy has 3",
			[]string{"arch=sm_90a sms=4", "arch=sm_90a sms=3"}},
		{"values that nobody appends", validate.CodeAppend,
			"variant long: buffer L00.kv: error: elements [0 32 1 0] to [0 32 1 7] are not written by the " +
				"step at pos 32",
			[]string{"  L{i}.kv[a/2,pos:pos+1 block 16 part a%2 of 2,1,0:8] = " +
				"KV_APPEND(L{i}.qkv[48+a/2*8:48+(a/2+1)*8])\n", ""}},
		{"a part that nobody appends", validate.CodeAppend,
			"elements [0 48 0 0] to [0 48 0 7] are not written by the step at pos 48, and L00.attn.u000 reads",
			[]string{"L{i}.kv[a/2,pos:pos+1 block 16 part a%2 of 2,0,0:8]",
				"L{i}.kv[a/2,pos:pos+1-a%2 block 16 part a%2 of 2,0,0:8]"}},
		{"shared memory of the target", validate.CodeCapacity, "keeps 36 bytes",
			[]string{"smem_optin=232448", "smem_optin=16"}},
		{"operand of the wrong length", validate.CodeShapes, "variant short: task L00.o",
			[]string{"L{i}.o.weight[a:b,0:32]", "L{i}.o.weight[a:b,0:16]"}},
		{"name that does not exist", ir.CodeName, "variant long: ", []string{"wait L{i}.part", "wait L{i}.parts"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := validate.Program(program(t, toy, c.edits...))
			require.False(t, rep.OK)
			requireCode(t, rep, c.code, c.says)
		})
	}
	require.False(t, validate.Program(nil).OK)
	require.False(t, validate.Flat(nil).OK)
	requireCode(t, validate.Program(&ir.Program{}), ir.CodeVariants, "no variant")
}

// A step ends when every SM has arrived at its counter, by counting: what a poll has seen of a task is not all of it.
func TestStepEnds(t *testing.T) {
	s := toy
	s.step = "flagged"
	requireCode(t, validate.Program(program(t, s)), validate.CodeStepJoin, "is flagged")
	const alone = "stage sample explicit\n  task sm=0 a=0 b=4\n"
	rep := validate.Program(program(t, toy, "stage sample spread extent=4 grain=1 sms=4 rot=0 step=0\n", alone,
		"next.sm[a:b]", "next.sm[0]"))
	requireCode(t, rep, validate.CodeStepJoin,
		"task lm_head.s001: error: no producer of counter step is after it by queue order and counting")
	rep = validate.Program(program(t, toy.with("counter"), "counter best flagged", "counter best counter",
		"stage sample spread extent=4 grain=1 sms=4 rot=0 step=0\n", alone, "next.sm[a:b]", "next.sm[0]"))
	require.NoError(t, rep.Diags.Err())
}

// A view of one element has that length at every position, be its place affine in pos or not.
func TestElementThatMovesOddly(t *testing.T) {
	const text = `amk 2.0
buffer w WEIGHT F32 [16] HBM rowmajor
buffer y IO_OUTPUT F32 [16] HBM rowmajor
buffer next IO_OUTPUT I32 [1] HBM rowmajor
variant all pos 0..15
counter step counter gpu
stage y explicit
  task sm=0 a=0 b=1
  y[0:15] = COPY(w[0:15])
  y[min(pos+12,15)] = COPY(w[pos])
  y[15] = COPY(w[15])
  next[0] = SAMPLE_ARGMAX(y[0:16])
  signal step
`
	require.NoError(t, validate.Program(parse(t, text)).Diags.Err())
	rep := validate.Program(parse(t, strings.Replace(text, "  y[15] = COPY(w[15])\n", "", 1)))
	requireCode(t, rep, validate.CodeUndefined, "reads y[15:16] (bytes 60 to 63) at pos 0")
}

// The rows that a step leaves to the next are ordered by the step's end alone: the kernel copies them before any wait
// of the next step.
func TestCacheRowsAcrossSteps(t *testing.T) {
	const text = `amk 2.0
buffer w WEIGHT F32 [16] HBM rowmajor
buffer kv KV_CACHE F32 [1,64,2,16] HBM kvrows16
buffer x ACTIVATION F32 [16] GLOBAL_SCRATCH rowmajor
buffer y IO_OUTPUT F32 [16] HBM rowmajor
buffer next IO_OUTPUT I32 [1] HBM rowmajor
variant all pos 0..63
counter x counter gpu
counter y counter gpu
counter step flagged gpu
stage x explicit
  task sm=1 a=0 b=1
  x[0:16] = COPY(w[0:16])
  signal x
stage attend explicit
  task sm=0 a=0 b=1
  wait x >= 1
  y[0:16] = ATTENTION_TILE(x[0:16], kv[0,0:pos,0,0:16], kv[0,0:pos,1,0:16], w[0:16], w[0:16]) head_dim=16 n_heads=1 ` +
		`n_kv_heads=1 scale=0.25 row=pos
  next[0] = SAMPLE_ARGMAX(y[0:16])
  signal y
stage append explicit
  task sm=1 a=0 b=1
  wait y >= 1
  kv[0,pos,0,0:16] = KV_APPEND(w[0:16])
  kv[0,pos,1,0:16] = KV_APPEND(w[0:16])
  signal step
`
	rep := validate.Program(parse(t, text))
	requireCode(t, rep, validate.CodeStepJoin, "counter step: error: is flagged")
	require.Len(t, rep.Diags, 1)
	rep = validate.Program(parse(t, strings.Replace(text, "counter step flagged", "counter step counter", 1)))
	require.NoError(t, rep.Diags.Err())
}

func TestPositionsOneByOne(t *testing.T) {
	pos := ir.Symbol(ir.Pos)
	rows := func(f *ir.Flat, hi ir.Expr) {
		op := &mutant{f, t}.task("L00.attn.u000").Ops[0]
		op.In[1].Dims[1].Hi, op.In[2].Dims[1].Hi = hi, hi
	}
	f := flat(t, program(t, toy), 0)
	rows(f, pos.Min(ir.Int(20))) // not affine, and fine
	rep := validate.Flat(f)
	require.NoError(t, rep.Diags.Err())
	require.Equal(t, 32, rep.Stats.Positions)

	rows(f, pos.Max(pos.Div(17).Mul(18))) // 17 rows too many at position 17 alone: 18 rows
	rep = validate.Flat(f)
	requireCode(t, rep, validate.CodeUndefined, "at pos 17")
}

// What would take more than a budget is refused, however right it is.
func TestBudget(t *testing.T) {
	pos := ir.Symbol(ir.Pos)
	f := flat(t, program(t, toy), 0)
	f.Hi = 1<<25 - 1
	for i := range f.Tasks {
		task := &f.Tasks[i]
		task.Ops = slices.DeleteFunc(task.Ops, func(op ir.FlatOp) bool { return op.Code == ir.KVAppend })
		for k := range task.Ops {
			if op := &task.Ops[k]; op.Code == ir.ATTENTION { // not affine: tried at every position
				op.In[1].Dims[1].Hi, op.In[2].Dims[1].Hi = pos.Mod(20), pos.Mod(20)
			}
		}
	}
	rep := validate.Flat(f)
	require.False(t, rep.OK)
	requireCode(t, rep, validate.CodeBudget,
		"more than 262144 evaluations of a bound that is not affine in pos; it stops here")
	f.Hi = 1<<10 - 1
	require.NoError(t, validate.Flat(f).Diags.Err(), "within the budget it is accepted")
}

// No number of warnings may hide an error.
func TestWarningsHideNothing(t *testing.T) {
	f := flat(t, program(t, toy), 0)
	m := mutant{f, t}
	c := m.counter("L00.x")
	for i := range f.Tasks {
		if name := f.Tasks[i].Name; strings.HasPrefix(name, "L01") || strings.HasPrefix(name, "lm_head") {
			f.Tasks[i].Waits = append(f.Tasks[i].Waits, ir.FlatWait{Counter: c, Threshold: 4})
		}
	}
	rep := validate.Flat(f)
	require.True(t, rep.OK)
	requireCode(t, rep, validate.CodeIdleWait, "drop it, or realise the counter by counting")
	m.task("sample.s003").Waits = nil
	require.False(t, validate.Flat(f).OK)
}

func TestEveryCodeIsDocumented(t *testing.T) {
	for _, c := range diag.Codes() {
		if strings.HasPrefix(c.ID, "AMK31") {
			require.NotEmpty(t, c.Title, c.ID)
			require.Greater(t, len(c.Doc), 80, c.ID)
		}
	}
}

// Unrolling refuses a program of too many variants, so that no more of them are proved.
func TestTooManyVariants(t *testing.T) {
	p := program(t, toy)
	for len(p.Variants) <= ir.MaxVariants {
		p.Variants = append(p.Variants, p.Variants[0])
	}
	rep := validate.Program(p)
	require.False(t, rep.OK)
	require.Zero(t, rep.Stats.Variants)
	requireCode(t, rep, ir.CodeSize, "65 variants")
}
