package chrometrace_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/app/chrometrace"
)

func TestFile(t *testing.T) {
	var b strings.Builder
	w := chrometrace.NewWriter(&b)
	at := chrometrace.Track{Process: 1, Thread: 7}
	w.Process(1, `consumers of "x"`)
	w.Thread(at, "SM 6")
	w.Span(chrometrace.Span{Track: at, Name: "L00.qkv", Category: "compute", Start: 0, End: 1.0 / 3,
		Args: map[string]int{"step": 2}})
	w.Span(chrometrace.Span{Track: at, Name: "L00.attn", Category: "signal", Start: 1.2344, End: 1.2344})
	require.NoError(t, w.Close(map[string]string{"device": "Fake"}))
	require.Equal(t, `{"traceEvents":[
{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"consumers of \"x\""}},
{"ph":"M","pid":1,"tid":0,"name":"process_sort_index","args":{"sort_index":1}},
{"ph":"M","pid":1,"tid":7,"name":"thread_name","args":{"name":"SM 6"}},
{"ph":"M","pid":1,"tid":7,"name":"thread_sort_index","args":{"sort_index":7}},
{"ph":"X","pid":1,"tid":7,"name":"L00.qkv","cat":"compute","ts":0,"dur":0.333,"args":{"step":2}},
{"ph":"X","pid":1,"tid":7,"name":"L00.attn","cat":"signal","ts":1.234,"dur":0}
],"displayTimeUnit":"ns","otherData":{"device":"Fake"}}
`, b.String())
	require.True(t, json.Valid([]byte(b.String())))
}

func TestEmptyFile(t *testing.T) {
	var b strings.Builder
	require.NoError(t, chrometrace.NewWriter(&b).Close(nil))
	require.JSONEq(t, `{"traceEvents":[],"displayTimeUnit":"ns"}`, b.String())
}

// full is a disk.
type full struct{}

var errFull = errors.New("disk full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestErrorsAreKept(t *testing.T) {
	require.ErrorIs(t, chrometrace.NewWriter(full{}).Close(nil), errFull)
	w := chrometrace.NewWriter(&strings.Builder{})
	w.Span(chrometrace.Span{Start: math.NaN()})
	require.ErrorContains(t, w.Close(nil), "NaN")
}
