package cli

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// An agent is a client of `amkc mcp`, which runs as a process of its own.
type agentClient struct {
	*mcp.ClientSession
	t    *testing.T
	root string

	mu   sync.Mutex
	told []*mcp.ProgressNotificationParams
	each func() // what is called for each of them
}

// newAgent starts a server with a model in its root.
func newAgent(t *testing.T) *agentClient {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	a := &agentClient{t: t, root: t.TempDir()}
	require.NoError(t, os.CopyFS(filepath.Join(a.root, "model"), os.DirFS("../../testdata/models/zoo/llama-gqa")))
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) {
			a.mu.Lock()
			a.told = append(a.told, n.Params)
			each := a.each
			a.mu.Unlock()
			if each != nil {
				each()
			}
		}})
	command := exec.Command(self, "mcp", "--root", a.root, "--key", filepath.Join(t.TempDir(), "verdict.key"))
	command.Env = append(os.Environ(), "CUDA_VISIBLE_DEVICES=")
	a.ClientSession, err = client.Connect(t.Context(), &mcp.CommandTransport{Command: command}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { a.Close() })
	return a
}

type fields = map[string]any

// call calls a tool and returns what it returned, as JSON, which has to be a result.
func (a *agentClient) call(tool string, arguments fields) fields {
	a.t.Helper()
	text, failed := a.try(tool, arguments)
	require.False(a.t, failed, text)
	var out fields
	require.NoError(a.t, json.Unmarshal([]byte(text), &out))
	return out
}

// refused calls a tool, which has to fail.
func (a *agentClient) refused(want, tool string, arguments fields) {
	a.t.Helper()
	text, failed := a.try(tool, arguments)
	require.True(a.t, failed, text)
	require.NotEmpty(a.t, want, "any failure would do")
	require.Contains(a.t, text, want)
}

// noGPU is what check and bench say of a build that was made without nvcc, on whatever machine.
const noGPU = "missing"

func (a *agentClient) try(tool string, arguments fields) (text string, failed bool) {
	a.t.Helper()
	params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	params.SetProgressToken(tool)
	result, err := a.CallTool(a.t.Context(), params)
	require.NoError(a.t, err)
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

func (a *agentClient) read(uri string) string {
	a.t.Helper()
	result, err := a.ReadResource(a.t.Context(), &mcp.ReadResourceParams{URI: uri})
	require.NoError(a.t, err)
	return result.Contents[0].Text
}

func with(base, more fields) fields {
	out := fields{}
	for _, m := range []fields{base, more} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// A client runs a whole campaign, on the cost model and the reference VM: what docs/program.md says, step by step.
func TestAgentRunsACampaign(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	a := newAgent(t)
	require.Contains(t, a.read("amkc://docs/program.md"), "# A campaign, step by step")
	prompt, err := a.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "campaign", Arguments: map[string]string{
		"model": "model", "target": "h200", "device": "cost", "trials": "20"}})
	require.NoError(t, err)
	require.Contains(t, prompt.Messages[0].Content.(*mcp.TextContent).Text, `Model "model", target "h200"`)
	require.NotEmpty(t, a.call("targets", nil)["targets"])
	require.NotEmpty(t, a.call("models", nil)["families"])
	require.Contains(t, a.call("doctor", nil), "checks")
	require.Contains(t, a.call("explain", fields{"codes": []string{"AMK6002"}}), "codes")
	model := fields{"model": "model", "target": "h200"}
	require.NotEmpty(t, a.call("cost", with(model, fields{"positions": []int{0, 40}})))
	require.NotEmpty(t, a.call("cost", with(model, fields{"rows": 4}))["passes"])
	require.NotEmpty(t, a.call("cost", with(model, fields{"prompts": []int{20}}))["prompts"])

	campaign := with(model, fields{"campaign": "camp", "cold": true, "positions": []int{0, 40}, "trials": 1})
	require.Equal(t, "1 trials are made", a.call("search", campaign)["stop"])
	require.NotEmpty(t, a.told, "progress of looking for the space")
	for i, p := range a.told[1:] {
		require.Greater(t, p.Progress, a.told[i].Progress)
	}
	knobs := a.call("space", model)["knobs"].([]any)
	require.NotEmpty(t, knobs)

	// A hypothesis: all defaults instead of all unoptimised values. What is refused is a finding too.
	for _, candidate := range []fields{{}, {"pipelining_depth": 16}, {"tiling.loop.barrier": 1}} {
		next := a.call("campaign_next", fields{"campaign": "camp"})
		verdict := a.call("eval", with(model, fields{"candidate": candidate, "baseline": next["against"],
			"positions": []int{0, 40}, "save": "verdict.json"}))["verdict"].(map[string]any)
		trial := a.call("campaign_record", fields{"campaign": "camp", "verdict": "verdict.json"})["trial"]
		require.Equal(t, verdict["signature"], trial.(map[string]any)["verdict"].(map[string]any)["signature"])
	}
	require.Equal(t, map[string]any{}, a.call("campaign_status", fields{"campaign": "camp"})["best"],
		"the defaults are the best")

	done := a.call("search", with(campaign, fields{"trials": 12}))
	require.Contains(t, done["stop"], "trials are made")
	require.NotNil(t, done["confirmed"])
	sound := a.call("campaign_verify", fields{"campaign": "camp"})["soundness"].(map[string]any)
	require.Equal(t, 0.0, sound["accepted_unproved"])
	a.call("campaign_report", fields{"campaign": "camp"})
	require.Contains(t, a.read("amkc://report/camp"), "<html")

	require.Contains(t, a.read("amkc://results/camp"), "experiment\ttag")
	require.Equal(t, int(sound["trials"].(float64)), strings.Count(a.read("amkc://trials/camp"), "\n"))

	// A verdict that was edited, and a number without one.
	text, err := os.ReadFile(filepath.Join(a.root, "verdict.json"))
	require.NoError(t, err)
	forged := strings.Replace(string(text), `"seconds":`, `"seconds":1`, 1)
	require.NoError(t, os.WriteFile(filepath.Join(a.root, "forged.json"), []byte(forged), 0o644))
	a.refused("AMK6002", "campaign_record", fields{"campaign": "camp", "verdict": "forged.json"})
	require.NoError(t, os.WriteFile(filepath.Join(a.root, "stated.json"), []byte(`{"latency_us": 12.5}`), 0o644))
	a.refused("has no verdict", "campaign_record", fields{"campaign": "camp", "verdict": "stated.json"})

	// Builds, without nvcc; a program is proved, and a build is compared with another.
	for out, settings := range map[string]fields{"a": {}, "b": {"tiling.ring.pace": 500}} {
		a.call("build", with(model, fields{"out": out, "settings": settings, "no_build": true}))
	}
	require.Equal(t, true, a.call("validate", fields{"file": "a/schedule.amk"})["ok"])
	require.Equal(t, false, a.call("diff", fields{"a": "a", "b": "b"})["ok"], "differences are a result")
	a.refused(noGPU, "check", fields{"build": "a"})
	a.refused(noGPU, "bench", fields{"builds": []string{"a", "b"}})
}

// Every verb that an agent may need is a tool, with a schema that refuses what it does not know.
func TestAgentTools(t *testing.T) {
	a := newAgent(t)
	var names []string
	for tool, err := range a.Tools(t.Context(), nil) {
		require.NoError(t, err)
		names = append(names, tool.Name)
		require.NotEmpty(t, tool.Description)
		schema := tool.InputSchema.(map[string]any)
		require.Equal(t, "object", schema["type"])
		require.Equal(t, false, schema["additionalProperties"], tool.Name)
		properties, _ := schema["properties"].(map[string]any)
		for name, of := range properties {
			require.NotEmpty(t, of.(map[string]any)["description"], "%s: %s", tool.Name, name)
			if name == "target" { // of which the default is not the same for all tools
				require.Contains(t, of.(map[string]any)["description"], "default h200, to build or measure auto")
			}
		}
	}
	slices.Sort(names)
	require.Equal(t, []string{"bench", "build", "campaign_next", "campaign_record", "campaign_report",
		"campaign_status", "campaign_verify", "check", "cost", "diff", "doctor", "eval", "explain", "formats", "models",
		"quality", "search", "simulate", "space", "targets", "validate", "verify"}, names)
	doc, err := os.ReadFile("../../docs/agents.md")
	require.NoError(t, err)
	for _, name := range names {
		require.Contains(t, string(doc), "`"+name+"`")
	}
	a.refused("latency_us", "cost", fields{"model": "model", "latency_us": 1})
}

// racing is a program whose second stage reads what the first one writes, and does not wait for it.
const racing = `amk 2.0
buffer w WEIGHT F32 [16] HBM rowmajor
buffer x ACTIVATION F32 [16] GLOBAL_SCRATCH rowmajor
buffer next IO_OUTPUT I32 [1] HBM rowmajor
variant all pos 0..0
counter x counter gpu
counter step counter gpu
stage make explicit
  task sm=0 a=0 b=1
  x[0:16] = COPY(w[0:16])
  signal x
stage next explicit
  task sm=1 a=0 b=1
  next[0] = SAMPLE_ARGMAX(x[0:16])
  signal step
`

// A tool whose verb cannot run fails, with the diagnostics; what a verb finds is a result, though it be
// nothing good.
func TestAgentErrors(t *testing.T) {
	a := newAgent(t)
	model := fields{"model": "model"}
	a.refused("AMK5906", "cost", with(model, fields{"target": "nope"}))
	a.refused("AMK3602", "cost", with(model, fields{"positions": []int{0, 99999}}))
	a.refused("AMK5901", "explain", fields{"codes": []string{"AMK6002", "AMK9999"}})
	a.refused("AMK5903", "validate", fields{"file": "model"})
	a.refused("AMK6019", "search", with(model, fields{"campaign": "none", "trials": 1, "only": []string{"embed"}}))
	a.refused("AMK5903", "diff", fields{"a": "model", "b": "model/config.json"})

	require.NoError(t, os.WriteFile(filepath.Join(a.root, "race.amk"), []byte(racing), 0o644))
	for _, file := range []string{"race.amk", "model/config.json"} {
		found := a.call("validate", fields{"file": file})
		require.Equal(t, []any{false, 1.0}, []any{found["ok"], found["exit"]}, "a rejection is what was asked for")
		require.NotEmpty(t, found["errors"])
	}
	refused := a.call("eval", with(model, fields{"candidate": fields{
		"tiling.ring.run_ahead": 0, "tiling.ring.pace": 1200}}))
	require.Equal(t, "REJECTED", refused["verdict"].(fields)["class"])
	require.Contains(t, a.call("doctor", nil), "checks", "with whatever exit code")
}

// Whatever an agent proposes gets a verdict with a code, which its campaign records: no loop ends at a refusal.
func TestAgentRecordsRefusals(t *testing.T) {
	a := newAgent(t)
	model := fields{"model": "model", "target": "h200"}
	a.call("search", with(model, fields{"campaign": "camp", "trials": 1}))
	refused := []struct {
		candidate fields
		code      string
	}{
		{fields{"pipelining_depth": 99}, "AMK2002"},
		{fields{"pipelining_depth": 0}, "AMK2002"},
		{fields{"tiling.ring.pace": "often"}, "AMK2002"},
		{fields{"tiling.ring.pace": 1.5}, "AMK2002"},
		{fields{"tiling.ring.pace": nil}, "AMK2002"},
		{fields{"tiling.ring.pace": true}, "AMK2002"},
		{fields{"page_allocation": "some"}, "AMK2002"},
		{fields{"sm_assignment": "by_hand"}, "AMK2001"},
		{fields{"sm_assignment": fields{"qkv": 3}}, "AMK2001"},
		{fields{"tiling.ring.pase": 600}, "AMK2001"},
		{fields{"a knob of my own\x1b[31m": 1}, "AMK2001"},
		{fields{"threads_per_block": 256}, "AMK2001"},
		{fields{"tiling.prompt.tokens": 64}, "AMK2001"},
		{fields{"tiling": 3}, "AMK2001"},
		{fields{"pipelining_depth": 16}, "AMK2007"},                               // no room for that many chunks
		{fields{"smem_bytes_per_block": 1000}, "AMK2007"},                         // none for a ring
		{fields{"tiling.ring.run_ahead": 0, "tiling.ring.pace": 1200}, "AMK2001"}, // no effect together
		{fields{"tiling.gemv.split_k": 8}, "AMK6109"},                             // no effect in this model
	}
	for i, r := range refused {
		judged := a.call("eval", with(model, fields{"candidate": r.candidate, "save": "verdict.json"}))
		verdict := judged["verdict"].(fields)
		require.Equal(t, "REJECTED", verdict["class"], "%v", r.candidate)
		require.Equal(t, r.code, verdict["reason"].(fields)["code"], "%v", r.candidate)
		trial := a.call("campaign_record", fields{"campaign": "camp", "verdict": "verdict.json"})["trial"].(fields)
		require.Equal(t, float64(i+1), trial["n"])
	}
	sound := a.call("campaign_verify", fields{"campaign": "camp"})["soundness"].(fields)
	require.Equal(t, float64(len(refused)), sound["rejected"])
	results, report := a.read("amkc://results/camp"), a.read("amkc://report/camp")
	require.Equal(t, len(refused), strings.Count(results, "\tREJECTED\t"), "the table is that of all trials")
	require.False(t, strings.Contains(results+report, "\x1b"))

	// What states no settings is not a proposal.
	a.refused("AMK6203", "eval", with(model, fields{"candidate": fields{"tiling": 3, "tiling.ring.pace": 600}}))
	a.refused("AMK2001", "eval", with(model, fields{"baseline": fields{"tiling.ring.pase": 600}}))
}

// What is proved can be run in other orders, a build held to its program, and a model to another one on a text.
func TestAgentLooks(t *testing.T) {
	a := newAgent(t)
	model := fields{"model": "model", "target": "h200"}
	a.call("build", with(model, fields{"out": "a", "no_build": true}))
	require.Greater(t, a.call("verify", fields{"build": "a"})["stages"], 0.0)
	require.NoError(t, os.WriteFile(filepath.Join(a.root, "a/schedule.h"), nil, 0o644))
	found := a.call("verify", fields{"build": "a"})
	require.Equal(t, []any{false, 1.0}, []any{found["ok"], found["exit"]}, "what is found is a result")

	ran := a.call("simulate", fields{"file": "a/schedule.amk", "orders": 2, "seed": 3, "positions": []string{"5"}})
	require.Equal(t, []any{true, []any{5.0}, 3.0}, []any{ran["ok"], ran["positions"], ran["seed"]})
	require.NoError(t, os.WriteFile(filepath.Join(a.root, "race.amk"), []byte(racing), 0o644))
	require.NotEmpty(t, a.call("simulate", fields{"file": "race.amk"})["hazard"])

	ids := fields{"ids": []int{1, 2, 3, 4, 5, 6}, "device": "ref"}
	held := a.call("quality", with(model, with(ids, fields{"against": "model", "weights": "int8", "greedy": 0})))
	require.Greater(t, held["kl"].(fields)["mean"], 0.0)
	chosen := a.call("formats", with(model, with(ids, fields{"formats": []string{"int8"}, "kl": 100.0})))
	require.Equal(t, 100.0, chosen["allowed_kl"])

	for tool, arguments := range map[string]fields{
		"simulate": {"file": "../race.amk"},
		"verify":   {"build": "../a"},
		"quality":  with(with(model, ids), fields{"against": "../model"}),
		"formats":  with(model, fields{"text": "../text", "device": "ref"}),
	} {
		a.refused("AMK6202", tool, arguments)
	}
}

// Nothing outside of the root is read or written, whichever way leads there.
func TestAgentStaysInTheRoot(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	a := newAgent(t)
	outside := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(outside, "model"), os.DirFS("../../testdata/models/zoo/llama-gqa")))
	link := func(to, name string) {
		require.NoError(t, os.Symlink(to, filepath.Join(a.root, name)))
	}
	link(outside, "out")
	link(filepath.Join(outside, "new"), "dangling")
	link("model", "inner")
	require.NoError(t, os.CopyFS(filepath.Join(a.root, "mixed"), os.DirFS(filepath.Join(a.root, "model"))))
	require.NoError(t, os.Remove(filepath.Join(a.root, "mixed/config.json")))
	link(filepath.Join(outside, "model/config.json"), "mixed/config.json")

	rel, err := filepath.Rel(a.root, filepath.Join(outside, "model"))
	require.NoError(t, err)
	for _, model := range []string{"out/model", rel, filepath.Join(outside, "model"), "mixed",
		"../" + filepath.Base(a.root)} {
		a.refused("AMK6202", "space", fields{"model": model})
	}
	a.refused("is not there", "space", fields{"model": "nowhere"})
	a.refused("is not there", "space", fields{"model": "--help"})
	require.NotEmpty(t, a.call("cost", fields{"model": "inner"}), "a link within the root does not lead out")
	require.NotEmpty(t, a.call("cost", fields{"model": filepath.Join(a.root, "model")}), "absolute, and in the root")

	for _, to := range []string{"out/x", "dangling", "dangling/x", "../x", filepath.Join(outside, "x")} {
		a.refused("AMK6202", "build", fields{"model": "model", "out": to, "no_build": true})
		a.refused("AMK6202", "eval", fields{"model": "model", "save": to})
		a.refused("AMK6202", "search", fields{"model": "model", "campaign": to, "trials": 1})
	}
	a.refused("AMK6202", "validate", fields{"file": "out/model/config.json"})
	_, err = a.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "amkc://trials/out/model"})
	require.Error(t, err)
	_, err = a.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "amkc://trials/..%2f.."})
	require.Error(t, err)
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing was written outside")

	// A campaign is of the model and the flags that it was begun with: what somebody has written into it is not run.
	search := fields{"model": "model", "campaign": "camp", "trials": 1}
	a.call("search", search)
	path := filepath.Join(a.root, "camp/campaign.json")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	command := `"` + filepath.Join(a.root, "model") + `"`
	require.Contains(t, string(text), command)
	require.NoError(t, os.Remove(filepath.Join(a.root, "camp/trials.jsonl")))
	// Its chain would show the change too.
	require.NoError(t, os.WriteFile(filepath.Join(a.root, "camp/trials.jsonl"), nil, 0o644))
	for _, edited := range []string{`"` + filepath.Join(outside, "model") + `"`,
		command + `, "--dump-ir=` + outside + `"`, command + `, "--calibrate", "` + outside + `"`} {
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), command, edited, 1)), 0o644))
		a.refused("holds a campaign with another command", "search", search)
	}
}

// A call that is cancelled ends its process, and lets go of the campaign.
func TestAgentCancels(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	a := newAgent(t)
	search := fields{"model": "model", "campaign": "camp", "trials": 100_000, "cold": true}
	ctx, cancel := context.WithCancel(t.Context())
	a.mu.Lock()
	a.each = func() {
		trials, _ := os.ReadFile(filepath.Join(a.root, "camp/trials.jsonl"))
		if strings.Count(string(trials), "\n") > 2 {
			cancel()
		}
	}
	a.mu.Unlock()
	params := &mcp.CallToolParams{Name: "search", Arguments: search}
	params.SetProgressToken("search")
	_, err := a.CallTool(ctx, params)
	require.ErrorIs(t, err, context.Canceled)
	made := 0
	require.Eventually(t, func() bool {
		status := a.call("campaign_status", fields{"campaign": "camp"})
		made = int(status["soundness"].(map[string]any)["trials"].(float64))
		text, failed := a.try("search", with(search, fields{"trials": made + 1}))
		require.True(t, !failed || strings.Contains(text, "AMK6007"), text) // as long as the process is ending
		return !failed
	}, time.Minute, 50*time.Millisecond)
	require.Greater(t, made, 2)
	a.call("campaign_verify", fields{"campaign": "camp"})
}
