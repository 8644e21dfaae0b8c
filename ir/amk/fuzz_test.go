package amk_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/amk"
)

// Parse never panics, and what it accepts is printed in a form that reads and prints the same, without a warning.
func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte(`{"ir_version":"0.3","meta":{"a":[NaN,1e400,-0,"\ud83d\ude00"],"a":{}},"target":[],"config":{"sm_assignment":{"1":2,"01":3}}}`))
	f.Add([]byte(`{"tasks":[{"id":0,"op":"ADD","inputs":[0],"outputs":[1],"out_counter":0,"waits":[{"counter":0,"threshold":1}],"params":{"x":1.5},"sm":3,"z":0}]}`))
	f.Add([]byte(`{"counters":[{"id":`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, diags := amk.Parse(data, "fuzz.json")
		require.Equal(t, p == nil, diags.Err() != nil)
		if p == nil {
			return
		}
		text := p.Marshal()
		again, diags := amk.Parse(text, "again.json")
		require.Empty(t, diags)
		require.Equal(t, string(text), string(again.Marshal()))
	})
}

// Neither reading nor lowering a request panics.
func FuzzLower(f *testing.F) {
	f.Add([]byte(`{` + shapeJSON + `, "scheme": "toy", "pos": 40, "dtype": "BF16", "batch": 2}`))
	f.Add([]byte(`{` + shapeJSON + `, "scheme": "hf-llama", "tied": true, "target": "l4", "pos": 255, "dtype": "F16",
		"config": {"tiling": {"gemv": {"N_tile": 48}, "attention": {"n_partitions": 3}}}, "quant": {"bits": 4, "group": 24}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		q, diags := amk.ParseRequest(data, "fuzz.json")
		if diags.Err() != nil || q.Shape.NLayers > 4 {
			return
		}
		p, err := amk.Lower(q)
		if err != nil {
			require.Nil(t, p)
			return
		}
		_, diags = amk.Parse(p.Marshal(), "lowered.json")
		require.Empty(t, diags)
	})
}
