package interchange_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
)

func TestParseLimits(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+",", i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	for name, c := range map[string]struct{ text, want string }{
		"values": {`{"meta":{"x":[0` + strings.Repeat(",0", 1_600_000) + `]}}`,
			"holds more than 1572864 values; up to that many are accepted [AMK3912]"},
	} {
		t.Run(name, func(t *testing.T) {
			p, diags := interchange.Parse([]byte(c.text), "f")
			require.Nil(t, p)
			require.ErrorContains(t, diags, c.want)
		})
	}
	_, diags := interchange.Parse([]byte(`{"counters":[`+many(1000, "%d")+`]}`), "f")
	require.Len(t, diags, 50)
	p, diags := interchange.Parse([]byte(`{`+many(1000, `"k%d":0`)+`}`), "f")
	require.NotNil(t, p)
	require.Len(t, diags, 101)
	require.Contains(t, diags[100].Error(), "more than 100 warnings; further ones are not listed")
}

func TestFlattenRefusesLongRecipes(t *testing.T) {
	step := `{"op":1,"args":[{"in":0}],"out":0},`
	text := func(n int) string {
		return `{"buffers":[{"id":0,"name":"x","kind":"IO_INPUT","dtype":"F32","shape":[4],"space":"HBM"},
{"id":1,"name":"y","kind":"IO_OUTPUT","dtype":"F32","shape":[4],"space":"HBM"}],"counters":[{"id":0}],` +
			`"tasks":[{"id":0,"op":"FUSED","inputs":[0],
"outputs":[1],"out_counter":0,"params":{"recipe":{"steps":[` + strings.Repeat(step, n-1) + `{"op":1,` +
			`"args":[{"in":0}],"out":"final"}]}}}]}`
	}
	for n, want := range map[int]string{256: "", 257: "has a recipe of 257 steps; up to 256 are accepted [AMK3912]"} {
		p, diags := interchange.Parse([]byte(text(n)), "f")
		require.Empty(t, diags)
		_, diags = p.Flatten()
		if want == "" {
			require.Empty(t, diags)
			continue
		}
		require.ErrorContains(t, diags, want)
	}
}
