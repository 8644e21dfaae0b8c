package grammar

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Schemas that are open to many alternatives cost in proportion to their size, however those are combined.
func TestManyAlternatives(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	v := pieces(t, rng)
	var tower, wide, arrays strings.Builder
	for i := range 40 { // each level has two ways to the next, which has two
		fmt.Fprintf(&tower, `"a%d": {"anyOf": [{"$ref": "#/$defs/b%d"}, {"$ref": "#/$defs/c%d"}]},`, i, i, i)
		fmt.Fprintf(&tower, `"b%d": {"$ref": "#/$defs/a%d"}, "c%d": {"$ref": "#/$defs/a%d"},`, i, i+1, i, i+1)
	}
	for i := range maxAlternatives {
		fmt.Fprintf(&wide, `"p%d": {"type": "null"},`, i)
	}
	fmt.Fprint(&arrays, `{"anyOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}, "maxItems": 3}]}`)
	for name, schema := range map[string]string{
		"tower":  `{"$ref": "#/$defs/a0", "$defs": {` + tower.String() + `"a40": {"type": "null"}}}`,
		"wide":   `{"properties": {` + strings.TrimSuffix(wide.String(), ",") + `}, "additionalProperties": false}`,
		"arrays": arrays.String(),
	} {
		start := time.Now()
		g, err := Schema(v, []byte(schema))
		require.NoError(t, err, name)
		for range 3 {
			if text, ended := sample(t, g, rng); ended {
				require.True(t, json.Valid([]byte(text)), "%q", text)
			}
		}
		require.Less(t, time.Since(start), 20*time.Second, name)
		t.Logf("%s: %v", name, time.Since(start))
	}
	_, err := Schema(v, []byte(`{"properties": {`+wide.String()+`"more": {}}}`))
	require.ErrorContains(t, err, "# has 501 properties; want at most 500")
	_, err = Schema(v, []byte(`{"anyOf": [{}`+strings.Repeat(",{}", maxAlternatives)+`]}`))
	require.ErrorContains(t, err, "#/anyOf has 501 schemas; want at most 500")
}
