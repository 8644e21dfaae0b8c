package validate_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate"
)

var update = flag.Bool("update", false,
	"write the goldens of the worked examples, and their blocks of docs/validator.md")

const (
	examples = "../testdata/validator"
	manual   = "../docs/validator.md"
)

// The worked examples are refused with the message that the manual shows, and accepted after the change that it shows.
func TestWorkedExamples(t *testing.T) {
	files, err := filepath.Glob(examples + "/*.amk")
	require.NoError(t, err)
	require.Len(t, files, 15)
	doc := read(t, manual)
	codes, loops := map[string]bool{}, 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".amk")
		t.Run(name, func(t *testing.T) {
			text, fix := read(t, file), read(t, filepath.Join(examples, name+".fix"))
			rep := validate.Program(parse(t, text))
			require.False(t, rep.OK)
			if strings.HasPrefix(name, "loop-") { // of families that have an example without a loop
				loops++
				verdict := subject{prog: parse(t, text)}.judge()
				require.True(t, verdict.Unsafe(), "the oracle sees it go wrong")
			} else {
				codes[rep.Diags[0].Code] = true
			}
			rep.Diags.Sort()
			for _, d := range rep.Diags {
				require.NotEmpty(t, d.Fix, d)
				require.Contains(t, d.Msg, d.Fix)
			}
			message, golden := rep.Diags.Error()+"\n", filepath.Join(examples, name+".txt")
			block := regexp.MustCompile(`(?s)(\(\.\./testdata/validator/` + name +
				"\\.amk\\)\n\n```text\n)(.*?)(```\n\n```diff\n)(.*?)```")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(message), 0o644))
				doc = block.ReplaceAllString(doc, "${1}"+strings.ReplaceAll(message, "$", "$$")+"${3}"+
					strings.ReplaceAll(fix, "$", "$$")+"```")
			}
			require.Equal(t, read(t, golden), message)
			shown := block.FindStringSubmatch(doc)
			require.NotNil(t, shown, "the manual shows the example")
			require.Equal(t, message, shown[2])
			require.Equal(t, fix, shown[4])
			rep = validate.Program(parse(t, apply(t, text, fix)))
			require.NoError(t, rep.Diags.Err(), "after the change")
			require.Empty(t, rep.Diags)
		})
	}
	require.Equal(t, 5, loops)
	require.Len(t, codes, len(files)-loops, "one per family")
	if *update {
		require.NoError(t, os.WriteFile(manual, []byte(doc), 0o644))
	}
}

func read(t *testing.T, path string) string {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// apply makes a change to a text: its lines with - and those it keeps are replaced by those with + and those it keeps.
func apply(t *testing.T, text, change string) string {
	var before, after strings.Builder
	for _, line := range strings.SplitAfter(strings.TrimSuffix(change, "\n"), "\n") {
		line = strings.TrimSuffix(line, "\n") + "\n"
		if line[0] != '+' {
			before.WriteString(line[1:])
		}
		if line[0] != '-' {
			after.WriteString(line[1:])
		}
	}
	require.Equal(t, 1, strings.Count(text, before.String()), "the change fits one place")
	return strings.Replace(text, before.String(), after.String(), 1)
}

// Every code of the package has a row in the manual, with the file of its rule, and what explain says of it has an
// example.
func TestEveryRuleIsInTheManual(t *testing.T) {
	rows := map[string][]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (AMK31\d\d) \| (.*) \| (.*) \|$`).
		FindAllStringSubmatch(read(t, manual), -1) {
		require.NotContains(t, rows, row[1])
		rows[row[1]] = row[2:]
	}
	for _, c := range diag.Codes() {
		if !strings.HasPrefix(c.ID, "AMK31") {
			continue
		}
		require.Contains(t, rows, c.ID)
		require.Equal(t, c.Title, rows[c.ID][0])
		require.Contains(t, c.Doc, "\n    ", "%s has an example", c.ID)
		for _, file := range strings.Split(rows[c.ID][1], ", ") {
			require.FileExists(t, file)
		}
		delete(rows, c.ID)
	}
	require.Empty(t, rows, "rows of codes that are gone")
}

// The parts of a finding are data too.
func TestFindingsAsData(t *testing.T) {
	rep := validate.Program(parse(t, read(t, examples+"/wait.amk")))
	require.Equal(t, &diag.Diagnostic{
		Code: "AMK3130", Severity: diag.Error, Pos: "task use.s000", Task: "use.s000", Other: "make.s001", Buffer: "x",
		Elements: &[2]int{32, 64}, Bytes: &[2]int{128, 256}, Fix: "missing: wait x >= 2",
		Msg: "reads x[32:64] (bytes 128 to 255), written by make.s001 (sm 1), and nothing orders the two; " +
			"missing: wait x >= 2",
	}, rep.Diags[0])
	rep = validate.Program(parse(t, read(t, examples+"/bounds.amk")))
	require.Equal(t, 64, *rep.Diags[0].Position)

	p := program(t, toy, "L{i}.kv[a,0:pos,0,0:8]", "L{i}.kv[a,0:pos+1,0,0:8]", "L{i}.kv[a,0:pos,1,0:8]",
		"L{i}.kv[a,0:pos+1,1,0:8]")
	d := validate.Program(p).Diags[0]
	require.Equal(t, validate.CodeUndefined.ID, d.Code)
	require.Equal(t, "short", d.Variant)
	require.Equal(t, []any{"L00.attn.u000", "L00.kv", [2]int{0, 8}, 0},
		[]any{d.Task, d.Buffer, *d.Elements, *d.Position})
	b := ir.Buffer{Shape: []int{2, 64, 2, 8}, DType: ir.BF16, Layout: ir.Layout{Kind: ir.KVBlock16}}
	require.LessOrEqual(t, d.Bytes[0], b.Offset(0))
	require.Greater(t, d.Bytes[1], b.Offset(7))
	require.Contains(t, d.Msg, "within bytes")
}
