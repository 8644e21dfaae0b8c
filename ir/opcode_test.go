package ir

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"amkc/ir/op"
)

// What package op takes for granted about declarations holds for all of them.
func TestDeclarations(t *testing.T) {
	names, params := map[string]bool{}, map[string]op.Param{}
	for _, spec := range Ops {
		require.False(t, names[spec.Name], "%s is declared twice", spec.Name)
		require.True(t, strings.HasSuffix(spec.Doc, "."), "%s says what it computes", spec.Name)
		names[spec.Name] = true
		for i := range spec.Forms {
			f := &spec.Forms[i]
			require.Equal(t, i < len(spec.Forms)-1, f.If != nil, "%s: the last form, and it alone, has no condition",
				spec.Name)
			require.Equal(t, len(spec.Forms) > 1, f.When != "", "%s names its forms", spec.Name)
			checkOperands(t, spec, f.In)
			checkOperands(t, spec, f.Out)
			for k := range f.In {
				require.Equal(t, spec.Role(k), f.In[k].Role, "%s: input %d has one role", spec.Name, k+1)
				require.NotEqual(t, op.AsInput, f.In[k].Elem, "%s: it is for results", spec.Name)
			}
			for k := range f.Out {
				require.False(t, f.Out[k].Optional, "%s: results are not left out", spec.Name)
			}
		}
		for _, p := range spec.Params {
			p.Needed = false
			if have, again := params[p.Key]; again {
				require.Equal(t, have, p, "%s of %s means the same everywhere", p.Key, spec.Name)
			}
			params[p.Key] = p
			require.NotEmpty(t, p.Doc, p.Key)
		}
	}
	for _, spec := range Ops {
		if spec.Finisher == nil {
			continue
		}
		operands := 1
		if spec.Finisher.Shape != "" {
			operands = 2
		}
		require.True(t, spec.Kernel && spec.Forms[0].NIn.Has(operands), "%s: the kernel has it, with %d operands",
			spec.Name, operands)
		for _, key := range spec.Finisher.Args {
			p := spec.Param(key)
			require.True(t, p != nil && p.Real, "%s of %s is a real parameter", key, spec.Name)
		}
		require.Len(t, spec.Finisher.Args, len(spec.Params), "the call of %s states every parameter", spec.Name)
	}
	for _, v := range params["qdtype"].Values {
		require.Equal(t, v.Name, DType(v.Value).String())
	}
}

func checkOperands(t *testing.T, spec *op.Spec, list []op.Operand) {
	for i := range list {
		require.True(t, i == len(list)-1 || list[i].Most == 0, "%s: only the last operand may be several", spec.Name)
		require.True(t, i == 0 || !list[i-1].Optional || list[i].Optional, "%s: what may be left out comes last",
			spec.Name)
	}
}

// The numbers of the constants are those that the declarations state.
func TestOpcodesAreDeclared(t *testing.T) {
	for code, spec := range map[Opcode]*op.Spec{
		NOP: op.NOP, COPY: op.COPY, EMBED: op.EMBED, RMSNORM: op.RMSNORM, LAYERNORM: op.LAYERNORM, GEMV: op.GEMV,
		GEMM: op.GEMM, ATTENTION: op.ATTENTION, ROPE: op.ROPE, SiluMul: op.SiluMul, GELU: op.GELU, ADD: op.ADD,
		MUL: op.MUL, DEQUANT: op.DEQUANT, SOFTMAX: op.SOFTMAX, ALLREDUCE: op.ALLREDUCE, KVAppend: op.KVAppend,
		ArgMax: op.ArgMax, AttentionCombine: op.AttentionCombine, FUSED: op.FUSED, SoftCap: op.SoftCap,
		STOP: op.STOP, GeluTanhMul: op.GeluTanhMul, GeluTanh: op.GeluTanh, ReLU: op.ReLU, ReLU2: op.ReLU2,
		SAMPLE: op.SAMPLE,
	} {
		require.Same(t, spec, Ops[code])
	}
}

// The proofs follow indices through EMBED, COPY, SAMPLE, SAMPLE_ARGMAX, TOPK and SELECTED_TILE; another op that yields
// or takes any needs a rule there (validate/indices.go).
func TestOpsWithIndices(t *testing.T) {
	for c, spec := range Ops {
		for i := range spec.Forms {
			for _, out := range spec.Forms[i].Out {
				switch out.Elem {
				case op.Index:
					require.Contains(t, []Opcode{ArgMax, SAMPLE, STOP, TOPK}, Opcode(c))
				case op.AsInput:
					require.Equal(t, COPY, Opcode(c))
				}
			}
			for _, in := range spec.Forms[i].In {
				require.True(t, in.Role != op.Table || Opcode(c) == EMBED || Opcode(c) == SELECTED)
			}
		}
	}
}

const manual = "../docs/ir.md"

// TestManual holds the table of ops in docs/ir.md to the declarations; -update writes it.
func TestManual(t *testing.T) {
	text, err := os.ReadFile(manual)
	require.NoError(t, err)
	const begin, end = "<!-- ops -->\n", "<!-- end of ops -->\n"
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	require.True(t, found && closed, "%s has no place for the ops", manual)
	want := before + begin + opsTable() + paramsTable() + meanings() + end + after
	if *update {
		require.NoError(t, os.WriteFile(manual, []byte(want), 0o666))
		return
	}
	require.Equal(t, want, string(text), "go test ./ir -run Manual -update")
}

func opsTable() string {
	var b strings.Builder
	b.WriteString("\n| opcode | inputs | outputs, each | parameters |\n|---|---|---|---|\n")
	for _, spec := range Ops {
		for i := range spec.Forms {
			f := &spec.Forms[i]
			name, params, results := strings.TrimSpace(spec.Name+" "+f.When), "", operands(f.Out)
			if len(f.Out) == 0 {
				results = "none"
			}
			if i == 0 {
				params = strings.Join(spec.Keys(true), ", ")
				if optional := spec.Keys(false); len(optional) > 0 {
					params = strings.TrimPrefix(params+", ["+strings.Join(optional, ", ")+"]", ", ")
				}
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, operands(f.In), results, params)
		}
	}
	return strings.ReplaceAll(b.String(), "|  |", "| |")
}

func operands(list []op.Operand) string {
	var out []string
	for _, o := range list {
		s := o.Name + o.Shape
		if o.Name == "out" {
			s = o.Shape
		}
		switch o.Elem {
		case op.Index:
			s += " of I32"
		case op.Quantised:
			s += " of qdtype"
		case op.Any:
			s += " of any type"
		case op.AsInput:
			s += ", I32 if and only if x is"
		}
		switch {
		case o.Most == op.Unbounded:
			s = "any number of " + s
		case o.Most > 1 && o.Name != "out" && o.Elem != op.Index:
			s = fmt.Sprintf("1 to %d of %s", o.Most, s)
		}
		if o.Optional {
			s = "[" + s + "]"
		}
		out = append(out, strings.ReplaceAll(s, "*", `\*`))
	}
	return strings.Join(out, ", ")
}

func paramsTable() string {
	var b strings.Builder
	b.WriteString("\n| parameter | values | what it is |\n|---|---|---|\n")
	seen := map[string]bool{}
	for _, spec := range Ops {
		for i := range spec.Params {
			p := &spec.Params[i]
			if seen[p.Key] {
				continue
			}
			seen[p.Key] = true
			values := strings.NewReplacer("-2147483647", "-(2^31-1)", "2147483647", "2^31-1").Replace(p.Want())
			if p.Moves {
				values += "; may depend on pos and t"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", p.Key, values, p.Doc)
		}
	}
	return b.String()
}

// meanings lists what each op computes.
func meanings() string {
	var b strings.Builder
	b.WriteString("\n")
	for _, spec := range Ops {
		b.WriteString(wrap("* **"+spec.Name+"**: "+strings.ReplaceAll(spec.Doc, "*", `\*`), 120))
	}
	b.WriteString("\n")
	return b.String()
}

// wrap breaks a list item into lines of a width.
func wrap(text string, width int) string {
	var b strings.Builder
	line := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case line+1+n > width:
			b.WriteString("\n  ")
			line = 2
		default:
			b.WriteString(" ")
			line++
		}
		b.WriteString(word)
		line += n
	}
	return b.String() + "\n"
}
