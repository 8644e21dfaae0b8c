package compiler

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
)

// Every edit of how a stage says that its matrix is stored contradicts the program, also where the bytes stay as many.
func TestStorageOfEveryStageIsReadBack(t *testing.T) {
	const declares = `static constexpr WeightFormat kWeights`
	l := lowerModel(t, "quantised/models/llama-ct-int8-embedding", "h200", ir.BF16, 48, ir.ScheduleConfig{})
	files, err := codegen.Project(l.Program, l.Graph, "m")
	require.NoError(t, err)
	require.NoError(t, checkEmitted(files, l.Program))
	original := string(files["schedule.h"])
	stages := regexp.MustCompile(`(?m)^  `+declares+`\{.*$`).FindAllStringIndex(original, -1)
	require.Len(t, stages, 6, "embed, qkv, o, gate_up, down, lm_head")
	for _, s := range stages {
		line := original[s[0]:s[1]]
		for _, edited := range []string{"",
			swap(line, "kBf16", "kFp16"), swap(line, "kBf16", "kInt8"), swap(line, "kInt8", "kInt4"),
			swap(line, "128", "64"), swap(line, "128", "0"), zeros.Replace(line), swap(line, "kBf16, ", ""),
			swap(line, "}", ", 1}")} {
			require.NotEqual(t, line, edited)
			files["schedule.h"] = []byte(original[:s[0]] + edited + original[s[1]:])
			require.Error(t, checkEmitted(files, l.Program), "%s -> %s", line, edited)
		}
	}
	added := "  " + declares + "{kInt8, 128, kBf16, false};\n"
	beside := regexp.MustCompile(`struct (Short)?Attn \{\n`).ReplaceAllString(original, "$0"+added)
	require.NotEqual(t, original, beside)
	files["schedule.h"] = []byte(beside)
	require.Error(t, checkEmitted(files, l.Program), "attention has no matrix")
}

var zeros = strings.NewReplacer("true", "false", "false", "true")

// swap replaces the first word of a line that is one.
func swap(line, word, by string) string { return strings.Replace(line, word, by, 1) }
