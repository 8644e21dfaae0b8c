package validate_test

import (
	"amkc/simulate"
	"amkc/validate"
)

// Order: races, provenance and exchange words.

var orderRemovals = []removal{
	{validate.CodeReadRace, "and nothing orders the two; missing: wait c >= 1", simulate.Race,
		stage("t", 0, makes, "signal c") + stage("u", 1, takes) + emit(0), nil, flatly, nil},
	{validate.CodeReadRace, "at pos 0, written by t.s000", simulate.Race,
		stage("t", 0, "a[pos] = COPY(in[0])", "signal c") + stage("u", 1, "%t = COPY(a[pos])") + emit(0), nil, flatly,
		nil},
	{validate.CodeOverwriteRace, "still read by", simulate.Race,
		stage("r", 0, makes, "signal c") + stage("t", 0, takes) + stage("u", 1, "wait c >= 1", makes) + emit(0), nil,
		flatly, nil},
	{validate.CodeOverwriteRace, "and nothing orders the two; missing: wait e >= 1 in y.s001", simulate.Race,
		stage("t", 0, "f[0:2] = COPY(in[0:2])", "signal c") +
			stage("y", 1, "wait c >= 1", "g[0:2] = COPY(in[0:2])", "signal d") + stage("l", 0) + stage("u", 0,
			"%t = COPY(f[0:2])", "signal e") + emit(0), nil, flatly, nil},
	{validate.CodeWriteRace, "both signal c, so no wait can order them", simulate.Race,
		stage("t", 0, makes, "signal c") + stage("u", 1, makes, "signal c") + emit(0), nil, flatly, nil},
	{validate.CodeFlaggedPlain, "flagged counter e orders its exchange words only", simulate.Race,
		stage("t", 0, makes, "x[0:2] = COPY(in[0:2])", "signal e") +
			stage("u", 1, "wait e >= 1", "%x = COPY(x[0:2])", takes) + emit(0), nil, flatly, nil},
	{validate.CodeTwice, "cannot tell which of the two it polled", simulate.WhichProducer,
		stage("t", 0, "z[0:2] = COPY(in[0:2])", "z[0:2] = COPY(in[2:4])", "signal e") +
			stage("u", 1, "wait e >= 1", "%t = COPY(z[0:2])") + emit(0), nil, flatly, nil},
	{validate.CodeUnread, "read by nobody", simulate.Stuck,
		stage("t", 0, "x[0:2] = COPY(in[0:2])", "z[0:2] = COPY(in[0:2])", "signal f") +
			stage("v", 1, "wait f >= 1", "%t = COPY(z[0:2])", "y[0:2] = COPY(in[0:2])", "signal g") + stage("w", 0,
			"wait g >= 1", "%t = COPY(y[0:2])") + emit(0), nil, flatly, nil},
	{validate.CodeUnread, "read by nobody else", simulate.Stuck,
		stage("t", 0, "z[0:2] = COPY(in[0:2])", "%t = COPY(z[0:2])", "x[0:2] = COPY(in[0:2])", "signal e") +
			stage("u", 1, "wait e >= 1", "%t = COPY(x[0:2])", "z[0:2] = COPY(in[0:2])", "signal f") + stage("v", 0,
			"wait f >= 1", "%t = COPY(z[0:2])") + emit(0), nil, flatly, nil},
	{validate.CodeUnread, "read by nobody else in copy 1 of 2", simulate.Stuck,
		stage("t", 0, "x[0:2] = COPY(in[0:2])", "signal e") + stage("u", 0, "wait e >= 1", "%t = COPY(x[0:2])",
			"z[0:2] = COPY(in[0:2])", "signal f") + stage("v", 1, "wait f >= 1", "%t = COPY(z[0:2])",
			"y[0:2] = COPY(in[0:2])", "signal g") + stage("w", 1, "wait g >= 1", "%t = COPY(y[0:2])") + emit(0),
		func(m mutant) {
			for _, b := range []string{"x", "y"} {
				m.Buffers[m.buffer(b)].Layout.Copies = 2
			}
			m.Pages[0].Layout.Copies = 2
		}, flatly, nil},
	{validate.CodePollOrder, "list the reading op first", simulate.Stuck,
		stage("t", 0, "x[0:2] = COPY(in[0:2])", "signal e") +
			stage("u", 1, "wait e >= 1", "z[0:2] = COPY(in[0:2])", "%t = COPY(x[0:2])", "signal f") +
			stage("v", 0, "wait f >= 1", "%t = COPY(z[0:2])", "y[0:2] = COPY(in[0:2])", "signal g") + stage("w", 0,
			"wait g >= 1", "%t = COPY(y[0:2])") + emit(0), nil, flatly, nil},
	{validate.CodeStale, "has rewritten them", simulate.Stuck,
		stage("t", 0, "z[0:2] = COPY(in[0:2])", "signal e") + stage("t2", 0, "z[0:2] = COPY(in[0:2])", "signal f") +
			stage("u", 0, "wait e >= 1", "%t = COPY(z[0:2])") + emit(0), nil, flatly, nil},
	{validate.CodeUndefined, "no task writes it earlier in the step", simulate.Undefined,
		stage("t", 0, takes) + emit(0), nil, flatly, nil},
	{validate.CodeUndefined, "only rows below pos are initial state", simulate.Undefined,
		stage("t", 0, "%t = COPY(kv[0,pos,0,0:2])") + emit(0), nil, flatly, nil},
	{validate.CodeUndefined, "reads temporary %u before an op of the task writes it", simulate.Refused,
		stage("t", 0, "%t = COPY(in[0:2])", "%u = COPY(in[0:2])") + emit(0), func(m mutant) {
			op := firstOp(m)
			op.In[0].Buf, op.In[0].Dims, op.InBuf[0] = "%u", nil, -1
		}, flatly, nil},
	{validate.CodeClobbered, "the two are live together", simulate.Clobbered,
		stage("t", 0, "f[0:2] = COPY(in[0:2])", "g[0:2] = COPY(in[0:2])", "%t = COPY(f[0:2])") + emit(0), nil, flatly,
		nil},
	{validate.CodeAppend, "are not written by the step", simulate.Undefined,
		stage("t", 0, "%t = ATTENTION_TILE(in[0:2], kv[0,0:pos,0,0:2], kv[0,0:pos,1,0:2]) head_dim=2 n_heads=1 "+
			"n_kv_heads=1 scale=1.0") + emit(0), nil, stepwise, nil},
}
