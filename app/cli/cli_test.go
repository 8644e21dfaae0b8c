package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"amkc/app/cli"
	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// build is a fake build with the tokenizer of the small trained model.
func build(t *testing.T, settings string, edits ...func(*host.Facts)) string {
	t.Helper()
	dir := hosttest.Build(t, settings, func(f *host.Facts) {
		for _, edit := range edits {
			edit(f)
		}
	})
	tok, err := os.ReadFile("../../testdata/models/pycoder-5m/tokenizer.json")
	require.NoError(t, err)
	hosttest.Write(t, dir, host.TokenizerFile, tok)
	return dir
}

// run runs the command line of a build whose kernels and reference agree.
func run(t *testing.T, dir, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runAgainst(false, dir, stdin, args...)
}

func runAgainst(broken bool, dir, stdin string, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	l := cli.Launcher{Model: hosttest.Facts().Model, Dir: dir, Check: func(r host.Resident) (host.Reference, error) {
		return &hosttest.Twin{Resident: r, Broken: broken}, nil
	}}
	code = l.Main(args, strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

type result struct {
	Version   int     `json:"version"`
	PromptIDs []int   `json:"prompt_ids"`
	IDs       []int   `json:"ids"`
	Text      *string `json:"text"`
	Stopped   string  `json:"stopped"`
}

func TestRun(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := build(t, "eos_at=20")
	code, out, stderr := run(t, dir, "", "run", "--prompt", "def fibonacci(n):", "--max-tokens", "30", "--json")
	require.Empty(t, stderr)
	require.Zero(t, code)
	var r result
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, 1, r.Version)
	require.Equal(t, "eos", r.Stopped)
	require.Equal(t, 1, r.IDs[len(r.IDs)-1])
	require.Equal(t, 21, len(r.PromptIDs)+len(r.IDs)-1)

	code, out, stderr = run(t, dir, "", "run", "--prompt", "def fibonacci(n):")
	require.Empty(t, stderr)
	require.Zero(t, code)
	require.Equal(t, "def fibonacci(n):"+*r.Text+"\n", out)

	code, piped, _ := run(t, dir, "def fibonacci(n):", "run", "--prompt", "-")
	require.Zero(t, code)
	require.Equal(t, out, piped)

	// A begin token that the prompt has already is not put in front of it a second time.
	code, out, stderr = run(t, dir, "", "run", "--prompt", "<|begin_of_text|>def fibonacci(n):", "--max-tokens", "2")
	require.Zero(t, code)
	require.Equal(t, "fake: the prompt begins with <|begin_of_text|>, so no other is put in front\n", stderr)
	require.True(t, strings.HasPrefix(out, "def fibonacci(n):"))

	code, out, _ = run(t, dir, "", "run", "--ids", "5, 6,7", "--max-tokens", "40", "--ignore-eos", "--json")
	require.Zero(t, code)
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, []int{5, 6, 7}, r.PromptIDs)
	require.Len(t, r.IDs, 40)
	require.Equal(t, "length", r.Stopped)
}

// pieces keeps what was written at a time.
type pieces struct{ all []string }

func (p *pieces) Write(b []byte) (int, error) { p.all = append(p.all, string(b)); return len(b), nil }

// The fake's tokens are arbitrary, and many of them are parts of characters.
func TestRunNeverPrintsHalfACharacter(t *testing.T) {
	hosttest.NeedDriver(t)
	var out pieces
	l := cli.Launcher{Model: hosttest.Facts().Model, Dir: build(t, "")}
	require.Zero(t, l.Main([]string{"run", "--prompt", "é", "--ignore-eos", "--max-tokens", "120"}, nil, &out,
		os.Stderr))
	require.Greater(t, len(out.all), 40)
	for _, p := range out.all {
		require.True(t, utf8.ValidString(p), "%q", p)
	}
}

func TestRunWithoutATokenizer(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := build(t, "")
	ids := []string{"run", "--ids", "1,2", "--max-tokens", "3"}
	code, old, stderr := run(t, dir, "", "run", "--prompt-ids", "1,2", "--max-tokens", "3")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "--prompt-ids is --ids now")
	code, now, stderr := run(t, dir, "", ids...)
	require.Zero(t, code, stderr)
	require.Equal(t, now, old)
	_, help, _ := run(t, dir, "", "run", "--help")
	require.NotContains(t, help, "prompt-ids")
	hosttest.Write(t, dir, host.TokenizerFile, []byte(`{"model": {"type": "Unigram"}}`))
	code, out, stderr := run(t, dir, "", "run", "--prompt", "x")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, stderr, "Unigram")
	require.Contains(t, stderr, "--ids works without a tokenizer")
	code, out, _ = run(t, dir, "", ids...)
	require.Zero(t, code)
	require.Len(t, strings.Fields(out), 3)

	require.NoError(t, os.Remove(filepath.Join(dir, host.TokenizerFile)))
	_, _, stderr = run(t, dir, "", "run", "--prompt", "x")
	require.Contains(t, stderr, "the model came without a tokenizer; --ids works without a tokenizer")
	code, again, _ := run(t, dir, "", append(ids, "--json")...)
	require.Zero(t, code)
	require.Contains(t, again, `"text":null`)
}

func TestUsage(t *testing.T) {
	dir := build(t, "")
	for _, c := range []struct {
		args []string
		text string
	}{
		{nil, "no command"},
		{[]string{"train"}, `unknown command "train"`},
		{[]string{"run"}, "give one of --prompt TEXT, --messages FILE, --ids 1,2,3 and --prompts FILE"},
		{[]string{"run", "--prompt", "a", "--ids", "1"}, "give one of --prompt TEXT, --messages FILE,"},
		{[]string{"run", "--prompt", "a", "--max-tokens", "0"},
			`"0" for flag --max-tokens: want a whole number from 1`},
		{[]string{"run", "--ids", "1,x"}, `"x" is not an id`},
		{[]string{"run", "--ids", ","}, "no ids"},
		{[]string{"run", "--heat", "1"}, "flag provided but not defined: --heat"},
		{[]string{"run", "--ids", "1", "--temperature", "hot"}, "want 0, or a number from 1e-06 to 1e+06"},
		{[]string{"run", "--ids", "1", "--top-k", "5"}, "--top-k is for drawing tokens; want --temperature T"},
		{[]string{"run", "--ids", "1", "--logprobs", "1"}, "--logprobs goes with --json"},
		{[]string{"run", "--ids", "1", "--logit-bias", "4096:1"},
			"--logit-bias is for token 4096; want ids from 0 to 4095"},
		{[]string{"bench", "--gpu", "x"}, `invalid value "x" for flag --gpu; want a whole number`},
		{[]string{"info", "--json=x"}, `invalid boolean value "x" for --json; want true or false`},
		{[]string{"info", "extra"}, `unexpected argument "extra"`},
	} {
		code, out, stderr := run(t, dir, "", c.args...)
		require.Equal(t, 2, code, c.args)
		require.Empty(t, out)
		require.Contains(t, stderr, "fake: error: ")
		require.Contains(t, stderr, c.text)
	}
	for _, args := range [][]string{{"--help"}, {"help"}, {"run", "--help"}} {
		code, out, stderr := run(t, dir, "", args...)
		require.Zero(t, code)
		require.Empty(t, stderr)
		require.Contains(t, out, "usage: fake")
	}
	for _, verb := range []string{"run", "chat", "serve", "bench", "check", "info"} {
		_, out, _ := run(t, dir, "", verb, "--help")
		for _, line := range strings.Split(out, "\n") {
			require.LessOrEqual(t, len(line), 80, line)
		}
	}
	_, out, _ := run(t, dir, "", "run", "--help")
	require.Contains(t, out, "--max-tokens N")
}

func TestErrorsAndExitCodes(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := build(t, "stall_at=5")
	code, _, stderr := run(t, dir, "", "run", "--ids", "1", "--max-tokens", "200")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "recompile with --max-seq 200")
	code, _, stderr = run(t, dir, "", "run", "--ids", "5000")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "token id 5000: the model has ids 0 to 4095")
	code, _, stderr = run(t, dir, "", "run", "--ids", "1")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "L01.qkv (step 4): SM 1 waited in vain")
	code, _, stderr = run(t, dir, "", "run", "--ids", "1", "--gpu", "9", "--json")
	require.Equal(t, 2, code)
	var d map[string]string
	require.NoError(t, json.Unmarshal([]byte(stderr), &d))
	require.Equal(t, "error", d["severity"])
	require.Contains(t, d["message"], "no such GPU")
	require.NotContains(t, stderr, "\x1b")

	code, _, stderr = run(t, t.TempDir(), "", "info")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "not a build of amkc")
	other := hosttest.Build(t, "", func(f *host.Facts) { f.Model.Layers = 3 })
	code, _, stderr = run(t, other, "", "info")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "3 layers, vocab 4096, max_seq 128), and this launcher was made for fake "+
		"(LlamaForCausalLM, BF16, 2 layers")
}

func TestCheckAndBench(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := build(t, "")
	code, out, stderr := run(t, dir, "", "check")
	require.Zero(t, code)
	require.Empty(t, stderr)
	require.Equal(t, `positions 0 to 31: logit error 0.00e+00 RMS, 0.00e+00 max; two runs bit-identical
positions 120 to 127: logit error 0.00e+00 RMS, 0.00e+00 max; two runs bit-identical
passed (allowed: 6e-02 RMS, 1e-01 max, relative to the reference logits)
`, out)
	code, out, stderr = run(t, dir, "", "bench", "--steps-per-launch", "15", "--position", "10", "--launches", "10")
	require.Zero(t, code)
	require.Empty(t, stderr)
	require.Equal(t, `check      passed in this run: largest logit error 0.00e+00 (allowed 1e-01)
device     Fake A, driver 580.1, CUDA 13.0
clocks     SM 1755 of 1980 MHz, memory 3201 of 3201 MHz, 512 W, 61 °C; limited by sw_power_cap, unknown_0x200
context    positions 10 to 24, 15 tokens per launch, 10 launches
latency    200.0 µs per token (p10 200.0, p90 200.0)
ceiling    180.0 µs (p10 180.0, p90 180.0): the same bytes streamed in the same run, no dependencies
drain      130.0 µs (p10 130.0, p90 130.0): decoding with the stream taken away
traffic    0.0 MB per token, 0 GB/s; ceiling 0 GB/s, plain read 0 GB/s
           all of that fits the L2, which these rates are of: the memory is hardly touched
share      90.0 % of the ceiling, 107.6 % of the plain read
`, out)
	code, out, _ = run(t, dir, "", "bench", "--json")
	require.Zero(t, code)
	var r map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Contains(t, r, "latency_us")
	for _, key := range []string{"share_of_ceiling", "drain_us", "read_gbs"} {
		require.Contains(t, r, key)
	}
	require.NotContains(t, r, "trace")
}

func TestCheckBisect(t *testing.T) {
	hosttest.NeedDriver(t)
	code, out, stderr := run(t, build(t, ""), "", "check", "--bisect")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "240 stages of 40 positions compared, each from the megakernel's own inputs\n"+
		"all agree: error 0.00e+00 RMS, 0.00e+00 max (allowed besides one rounding: 5e-04 RMS, 1e-03 max; attention "+
		"8e-03 and 2e-02)\n")

	// Wrong only in what is published, so that nothing but the comparison of stages can see it.
	dir := build(t, "bad_at=5 bad_ordinal=3 bad_element=9")
	code, out, stderr = run(t, dir, "", "check", "--bisect")
	require.Equal(t, 1, code)
	require.Contains(t, out, "position 5: stage L01.qkv is the first that is wrong: element 9, row 9 (q of head "+
		"0, dim 12), is ")
	require.Contains(t, stderr, "check failed: stage L01.qkv is wrong at position 5")
	code, out, _ = run(t, dir, "", "check", "--bisect", "--json")
	require.Equal(t, 1, code)
	var r struct {
		Passed bool
		Bisect host.BisectReport
	}
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.True(t, r.Passed)
	require.Equal(t, 9, r.Bisect.First.Element)
	code, out, _ = run(t, dir, "", "check", "--json")
	require.Zero(t, code)
	require.NotContains(t, out, "bisect")
}

func TestNoLatencyAfterAFailedCheck(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := build(t, "")
	code, out, stderr := runAgainst(true, dir, "", "check")
	require.Equal(t, 1, code)
	require.Contains(t, out, "FAILED")
	require.Contains(t, stderr, "check failed")
	code, out, stderr = runAgainst(true, dir, "", "bench")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, stderr, "check failed")
	require.NotContains(t, stderr, "µs")
	code, out, _ = runAgainst(true, dir, "", "check", "--json")
	require.Equal(t, 1, code)
	require.Contains(t, out, `"version":1,"passed":false`)
}

func TestInfo(t *testing.T) {
	dir := build(t, "")
	code, out, _ := run(t, dir, "", "info")
	require.Zero(t, code)
	for _, s := range []string{"fake (LlamaForCausalLM, BF16)", "0 to 127", "sm_90a, 4 SMs", "variant   all",
		"megakernel.fatbin: 0.0 MB"} {
		require.Contains(t, out, s)
	}
	code, out, _ = run(t, dir, "", "info", "--json")
	require.Zero(t, code)
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &m))
	require.Equal(t, "test", m["amkc"], "all of the manifest")

	m["compiler"] = map[string]any{"version": "1.2.3", "commit": "abc", "runtime_abi": 7}
	m["source"] = map[string]any{"model": "org/name", "revision": "0123", "checkpoint": "feed",
		"options": []string{"--rows=4", "--name=\x1b[2J"}, "adapters": []map[string]string{
			{"name": "org/one", "revision": "45", "weights": "beef"}, {"name": "\x1b[2J", "weights": "cafe"}}}
	text, err := json.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, host.ManifestFile), text, 0o644))
	code, out, _ = run(t, dir, "", "info")
	require.Zero(t, code)
	for _, s := range []string{"amkc      1.2.3, commit abc, device runtime ABI 7\n",
		"source    org/name at revision 0123\n", "weights   SHA-256 feed\n",
		"adapter   org/one at revision 45, SHA-256 beef\nadapter   \\u001b[2J, SHA-256 cafe\n",
		`options   --rows=4 --name=\u001b[2J` + "\n"} {
		require.Contains(t, out, s)
	}
}

// interrupts sends the process what Ctrl-C does, again and again until stop is called: a command may not listen yet.
func interrupts() (stop func()) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGINT) // which would end the process
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			time.Sleep(200 * time.Millisecond)
			select {
			case <-ended:
				return
			default:
			}
			_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
			<-caught // so that none is on its way when this ends
		}
	}()
	return func() {
		close(ended)
		<-done
		signal.Stop(caught)
	}
}

func TestInterrupt(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := build(t, "hang_at=5")
	defer interrupts()()
	code, _, stderr := run(t, dir, "", "run", "--ids", "1")
	require.Equal(t, 130, code)
	require.Equal(t, "fake: error: interrupted\n", stderr)
}
