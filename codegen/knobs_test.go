package codegen

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
	"amkc/runtime"
	"amkc/templates"
)

// A knob that is a constant of the kernel does something: device code reads it.
func TestDeviceCodeUsesTheConstantsOfKnobs(t *testing.T) {
	var code []byte
	for _, text := range runtime.DeviceSources() {
		code = append(code, regexp.MustCompile(`//.*`).ReplaceAll(text, nil)...)
	}
	prompt, err := templates.FS.ReadFile(promptFile + ".tmpl") // the one source that chooses what a constant is for
	require.NoError(t, err)
	code = append(code, prompt...)
	for _, r := range knobs.Rows() {
		if r.Constant != nil {
			require.Regexp(t, `\b`+r.Constant.Name+`\b`, string(code), r.Path(""))
		}
	}
}
