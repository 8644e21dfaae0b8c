package cli

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/runtime/driver"
)

// TestKnownGPUs: what the driver calls a GPU leads to its record, and to none where the chip has another size.
func TestKnownGPUs(t *testing.T) {
	for _, c := range []struct {
		device     string
		major, sms int
		minor      int
		want       string
	}{
		{"NVIDIA H200", 9, 132, 0, "h200"},
		{"NVIDIA H100 80GB HBM3", 9, 132, 0, "h100"},
		{"NVIDIA H100 PCIe", 9, 114, 0, ""},
		{"NVIDIA L40", 8, 142, 9, "l40"},
		{"NVIDIA L40S", 8, 142, 9, "l40s"},
		{"NVIDIA L4", 8, 58, 9, "l4"},
		{"NVIDIA RTX A6000", 8, 84, 6, "a6000"},
		{"NVIDIA GeForce RTX 4090", 8, 128, 9, "rtx4090"},
		{"NVIDIA GeForce RTX 4080 SUPER", 8, 80, 9, ""},
		{"NVIDIA GB200", 10, 152, 0, "gb200"},
		{"NVIDIA B200", 10, 148, 0, "b200"},
		{"Orin", 8, 16, 7, "jetson-orin"},
		{"NVIDIA A100-SXM4-40GB", 8, 108, 0, "a100"},
		{"NVIDIA A10G", 8, 80, 6, "a10g"},
		{"Tesla T4", 7, 40, 5, "t4"},
		{"NVIDIA GH200 480GB", 9, 132, 0, ""}, // other memory than an H200's
		{"NVIDIA GH200 144G HBM3e", 9, 132, 0, ""},
		{"NVIDIA RTX 6000 Ada Generation", 8, 142, 9, ""},
	} {
		found := knownAs(&driver.Facts{Name: c.device, Major: c.major, Minor: c.minor, SMs: c.sms})
		if c.want == "" {
			require.Nil(t, found, c.device)
			continue
		}
		require.NotNil(t, found, c.device)
		require.Equal(t, c.want, found.Name, c.device)
	}
}

// TestDocumentedTargets holds README.md to the targets there are.
func TestDocumentedTargets(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "`--target` takes ")
	require.True(t, found)
	list, _, found := strings.Cut(rest, ", or any")
	require.True(t, found)
	require.ElementsMatch(t, targetNames(),
		strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }))
	require.Contains(t, rest, "sm_"+strconv.Itoa(ir.Capabilities()[0]))
}
