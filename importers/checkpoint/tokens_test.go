package checkpoint

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTooManyTokens: a text within the size of its kind may still hold millions of values, each of which costs far
// more than its bytes. What a text costs is bounded by maxTokens, wherever in the text they stand.
func TestTooManyTokens(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	many := func(open, unit, end string) string {
		return open + strings.TrimSuffix(strings.Repeat(unit, maxTokens), ",") + end
	}
	keys := func(value string) string {
		var b strings.Builder
		for i := range maxTokens / 2 {
			fmt.Fprintf(&b, `"%x":%s,`, i, value)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	for name, text := range map[string]string{
		"array":  many(`{"eos_token_id":[`, "7,", `]}`),
		"keys":   "{" + keys("0") + "}",
		"shards": `{"weight_map":{` + keys(`"a"`) + "}}",
	} {
		if name != "array" && os.Getenv("AMKC_LONG") == "" {
			continue
		}
		_, err := parseObject("config.json", []byte(text))
		require.NotNil(t, err, name)
		requireCode(t, err, "AMK1009", "more than 1048576 keys, values and brackets")
	}
	for name, text := range map[string]string{
		"metadata": `{"__metadata__":{` + keys(`""`) + "}}",
		"tensors":  "{" + keys(`{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`) + "}",
	} {
		if name != "tensors" && os.Getenv("AMKC_LONG") == "" {
			continue
		}
		file := container(text, 0)
		_, err := newFile("f", &memory{data: file, unmap: noUnmap}, int64(len(file)))
		require.NotNil(t, err, name)
		requireCode(t, err, "AMK1009", "more than 1048576")
	}
}
