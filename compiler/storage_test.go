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
	for _, c := range []struct {
		model, element, scale string
		stages                int
	}{
		{"llama-ct-int8-embedding", "kInt8", "kBf16", 6}, // embed, qkv, o, gate_up, down, lm_head
		{"llama-fp8-blocks", "kE4m3", "kFp32", 4},        // no embed, no lm_head
	} {
		l := lowerModel(t, "quantised/models/"+c.model, "h200", ir.BF16, 48, ir.ScheduleConfig{})
		files, err := codegen.Project(l.Program, l.Graph, "m")
		require.NoError(t, err)
		require.NoError(t, checkEmitted(files, l.Program))
		original := string(files["schedule.h"])
		stages := regexp.MustCompile(`(?m)^  `+declares+`\{.*$`).FindAllStringIndex(original, -1)
		require.Len(t, stages, c.stages, c.model)
		otherScale, otherElement := "kFp16", "kInt8"
		if c.element == otherElement {
			otherElement = "kE4m3"
		}
		for _, s := range stages {
			line := original[s[0]:s[1]]
			for _, edited := range []string{"",
				swap(line, c.scale, otherScale), swap(line, c.scale, "kInt8"), swap(line, c.scale+", ", ""),
				swap(line, c.element, otherElement), swap(line, c.element, "kInt4"),
				swap(line, "128", "64"), swap(line, "128", "0"), zeros.Replace(line), swap(line, "}", ", 1}")} {
				require.NotEqual(t, line, edited)
				files["schedule.h"] = []byte(original[:s[0]] + edited + original[s[1]:])
				require.Error(t, checkEmitted(files, l.Program), "%s -> %s", line, edited)
			}
		}
		added := "  " + declares + "{" + c.element + ", 128, " + c.scale + ", false};\n"
		beside := regexp.MustCompile(`struct (Short)?Attn \{\n`).ReplaceAllString(original, "$0"+added)
		require.NotEqual(t, original, beside)
		files["schedule.h"] = []byte(beside)
		require.Error(t, checkEmitted(files, l.Program), "attention has no matrix")
	}
}

var zeros = strings.NewReplacer("true", "false", "false", "true")

// swap replaces the first word of a line that is one.
func swap(line, word, by string) string { return strings.Replace(line, word, by, 1) }
