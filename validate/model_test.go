package validate_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
	"amkc/validate/kernel"
)

// labels are the facts of a model that are compared with nothing, and why.
var labels = map[string]string{
	"Name":         "names the build, and nothing is computed from it",
	"Architecture": "says what was imported; what it computes is in the ops",
}

// Every fact of the model is compared with the program, in both directions: a field that is added to ir.Model fails
// here until it is compared with something, or is listed as a label.
func TestEveryFactOfTheModelIsHeld(t *testing.T) {
	fields := slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[ir.Model]()), func(f reflect.StructField) bool {
		types := len(f.Index) > 1 && f.Index[0] == indexOf("DTypes") // which are changed together
		return types || f.Type == reflect.TypeFor[ir.Mixer]()
	})
	for _, field := range fields {
		for _, by := range []int{-1, 1, 1000} {
			p := goldenProgram(t)
			require.True(t, validate.ProgramFor(kernel.Backend, p).OK)
			changed := change(t, reflect.ValueOf(&p.Model).Elem().FieldByIndex(field.Index), by)
			rep := validate.ProgramFor(kernel.Backend, p)
			if labels[field.Name] != "" {
				require.True(t, rep.OK, field.Name)
				continue
			}
			require.False(t, rep.OK, "%s is %v, and nothing says that this is wrong", field.Name, changed)
			if field.Name == "MaxSeq" {
				requireCode(t, rep, ir.CodeVariants, "") // which is looked at first
				continue
			}
			for _, d := range rep.Diags.Errors() {
				require.Equal(t, kernel.CodeModel.ID, d.Code, d)
			}
		}
	}
	doc := read(t, "kernel/model.go")
	for _, field := range fields {
		require.Regexp(t, `(?m)^//\t.*\b`+field.Name+`\b`, doc,
			"the comment of checkFacts says what it is compared with")
	}
}

// indexOf is where a model has a field.
func indexOf(name string) int {
	f, _ := reflect.TypeFor[ir.Model]().FieldByName(name)
	return f.Index[0]
}

// change moves a fact by a step, small or large, whatever its type.
func change(t *testing.T, fact reflect.Value, by int) any {
	switch fact.Kind() {
	case reflect.Int:
		fact.SetInt(fact.Int() + int64(by))
	case reflect.Struct:
		require.Equal(t, reflect.TypeFor[ir.DTypes](), fact.Type())
		fact.Set(reflect.ValueOf(ir.Uniform(ir.BF16)))
	case reflect.Slice:
		if kinds, ok := fact.Addr().Interface().(*[]int); ok {
			*kinds = []int{by}
		} else {
			fact.Set(reflect.ValueOf([]ir.LayerFacts{{KVHeads: by}}))
		}
	case reflect.Bool:
		fact.SetBool(!fact.Bool())
	case reflect.Float64:
		fact.SetFloat(fact.Float() * (3 + float64(by)))
	case reflect.String:
		fact.SetString(fact.String() + "x")
	default:
		require.Fail(t, "a fact of a type that this test does not know", "%v", fact.Type())
	}
	return fact.Interface()
}

// What the messages say of each contradiction; the reference VM does not ask the model.
func TestModelFacts(t *testing.T) {
	for _, c := range []struct{ from, to, says string }{
		{"kv_heads=2", "kv_heads=1", "buffer L00.kv: error: has shape [2 64 2 8]; the model's caches are [1, " +
			"64, 2, 8]"},
		{"head_dim=8 vocab", "head_dim=16 vocab", "ROPE has head_dim 8; by the model's facts it is 16"},
		{"hidden=32", "hidden=31", "RMSNORM has a weight of length 32; by the model's facts it is 31"},
		{"hidden=32", "hidden=31", "takes lm_head.weight for the embedding table, and it has shape [60 32]; by the " +
			"model's facts it is [60, 31]"},
		{"vocab=60", "vocab=59", "EMBED has a table of height 60; by the model's facts it is 59"},
		{"vocab=60", "vocab=59", "takes lm_head.weight for the head's matrix, and it has shape [60 32]; by the " +
			"model's facts it is [59, 32]"},
		{"vocab=60", "vocab=59", "buffer logits: error: has 60 elements; the model has a vocabulary of 59, and the " +
			"host makes room for as many logits"},
		{"dtype=BF16", "dtype=BF16 cache=F32",
			"buffer L00.kv: error: holds BF16; the type of the model's cache is F32"},
		{"dtype=BF16", "dtype=F16 activations=BF16 cache=BF16", "buffer lm_head.weight: error: holds BF16; the type " +
			"of the model's weights is F16"},
		{"dtype=BF16", "dtype=BF16 activations=F16", "error: holds BF16; the type of the model's activations is F16"},
		{"layers=2", "layers=1", "there are 2 caches; the model has 1 layers"},
		{" heads=4", " heads=2", "ATTENTION_TILE has 2 query heads for a kv head; the model has 2 query heads " +
			"and 2 kv heads"},
		{" heads=4", " heads=5", "the model has 5 query heads and 2 kv heads; kv heads have as many query heads each"},
		{"intermediate=40", "intermediate=48",
			"the longest result of SILU_MUL has 40 elements; by the model's facts the intermediate size is 48"},
		{" heads=4", " experts=8 per_token=2 heads=4", "the model has 8 experts in a layer, and the program no router"},
		{" heads=4", " experts=1 per_token=2 heads=4", "layers that choose 2 of 1 experts for each token"},
		{"tied=true", "tied=false", "the embedding table is lm_head.weight and the head's matrix lm_head.weight; " +
			"the model says tied=false"},
		{"tied=true eps=1e-05", "tied=true eps=1e-06", "RMSNORM has eps 1e-05; by the model's facts it is 1e-06"},
	} {
		p := program(t, toy, c.from, c.to)
		require.True(t, validate.Program(p).OK, "the reference VM does not ask the model")
		rep := validate.ProgramFor(kernel.Backend, p)
		require.False(t, rep.OK)
		requireCode(t, rep, kernel.CodeModel, c.says)
		require.Less(t, strings.Count(rep.Diags.Error(), "\n"), 12, "what all tasks of a stage get wrong is said once")
	}
	rep := validate.ProgramFor(kernel.Backend, program(t, toy, "eps=1e-05\ntarget", "eps=1.00000000001e-05\ntarget"))
	require.NoError(t, rep.Diags.Err(), "the kernel has 32 bits of it")
}
