package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const served = "../../testdata/models/pycoder-5m"

// A serving is amkc serve in a process of its own.
type serving struct {
	url    string
	cmd    *exec.Cmd
	stdout *bufio.Reader
	stderr *bytes.Buffer
}

// startServing runs amkc serve, and waits until it says where it answers.
func startServing(t *testing.T, args ...string) *serving {
	t.Helper()
	s := &serving{cmd: exec.Command("amkc", append([]string{"serve", "--device", "ref", "--port", "0"}, args...)...),
		stderr: &bytes.Buffer{}}
	s.cmd.Stderr = s.stderr
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	s.stdout = bufio.NewReader(out)
	line, err := s.stdout.ReadString('\n')
	require.NoError(t, err, s.stderr)
	_, s.url, _ = strings.Cut(strings.TrimSpace(line), " answers at ")
	return s
}

// interrupt ends it as Ctrl-C does, and returns its exit code.
func (s *serving) interrupt(t *testing.T) int {
	t.Helper()
	require.NoError(t, s.cmd.Process.Signal(os.Interrupt))
	_, _ = io.Copy(io.Discard, s.stdout)
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

func post(t *testing.T, url, body string) (status int, answer string) {
	t.Helper()
	r, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, string(text)
}

// The server says what run says, for a model and for a build of it, and ends when it is interrupted.
func TestServe(t *testing.T) {
	build, served := filepath.Join(t.TempDir(), "build"), filepath.Join(t.TempDir(), filepath.Base(served))
	require.NoError(t, os.CopyFS(served, os.DirFS("../../testdata/models/pycoder-5m")))
	require.NoError(t, os.Remove(filepath.Join(served, "chat_template.jinja")))
	var out, stderr bytes.Buffer
	require.Zero(t, Main([]string{served, "-o", build, "--target", "h200", "--no-build", "-q"}, nil, &out, &stderr),
		stderr.String())
	require.Zero(t, Main([]string{"run", served, "--device", "ref", "--prompt", "def fib(n):", "--max-tokens", "8",
		"--json"}, nil, &out, &stderr), stderr.String())
	var want struct{ Text string }
	require.NoError(t, json.Unmarshal(out.Bytes(), &want))
	var embeddings []string
	for _, dir := range []string{served, build} {
		s := startServing(t, dir)
		status, body := post(t, s.url+"/v1/completions",
			`{"model": "pycoder-5m", "prompt": "def fib(n):", "max_tokens": 8, "temperature": 0}`)
		require.Equal(t, 200, status, body)
		var got struct{ Choices []struct{ Text string } }
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		require.Equal(t, want.Text, got.Choices[0].Text)
		status, body = post(t, s.url+"/v1/embeddings", `{"input": "def fib(n):"}`)
		require.Equal(t, 200, status, body)
		embeddings = append(embeddings, body)
		status, body = post(t, s.url+"/v1/chat/completions", `{"messages": [{"role": "user", "content": "hi"}]}`)
		require.Equal(t, 400, status)
		require.Contains(t, body, "no_chat_template")
		require.Zero(t, s.interrupt(t))
		require.Contains(t, s.stderr.String(), "path=/v1/completions status=200")
		require.Contains(t, s.stderr.String(), "[AMK1207]")
	}
	require.Equal(t, 255, strings.Count(embeddings[0][strings.Index(embeddings[0], `"embedding":[`):], ",")-
		strings.Count(embeddings[0][strings.Index(embeddings[0], `],"index"`):], ","), "256 elements")
	require.Equal(t, embeddings[0], embeddings[1])
}

// The key is taken from the environment too, and names that lead here are answered with a key alone.
func TestServeKey(t *testing.T) {
	ask := func(s *serving, host, key string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/models", nil)
		require.NoError(t, err)
		r.Host = host
		r.Header.Set("Authorization", "Bearer "+key)
		got, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, got.Body.Close())
		return got.StatusCode
	}
	t.Setenv("AMKC_API_KEY", "k")
	s := startServing(t, served, "-q")
	require.Equal(t, 401, ask(s, "", "x"))
	require.Equal(t, 200, ask(s, "", "k"))
	require.Equal(t, 200, ask(s, "models.example", "k"))
	require.Zero(t, s.interrupt(t))
	require.Empty(t, s.stderr.String())
	t.Setenv("AMKC_API_KEY", "")
	s = startServing(t, served)
	require.Equal(t, 200, ask(s, "", ""))
	require.Equal(t, 200, ask(s, "localhost:80", ""))
	require.Equal(t, 200, ask(s, "[::1]:80", ""))
	require.Equal(t, 421, ask(s, "models.example", ""))
	require.Zero(t, s.interrupt(t))
}

// A port that is taken is said before the model is read.
func TestServeTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	var out, stderr bytes.Buffer
	require.Equal(t, 2, Main([]string{"serve", served, "--device", "ref", "--port", port, "-q"}, nil, &out, &stderr))
	require.Contains(t, stderr.String(), "127.0.0.1:"+port+": address already in use [AMK5910]")
}

// The model of the repository calls a tool, and then answers with the type that is asked for, so that an agent can be
// tried without a GPU.
func TestServeAgentOfDemo(t *testing.T) {
	s := startServing(t, served)
	ask := func(choice, more string) string {
		status, body := post(t, s.url+"/v1/chat/completions", `{"temperature": 0, "parallel_tool_calls": false,
			"tool_choice": "`+choice+`", "tools": [{"type": "function", "function": {"name": "thermometer",
			"parameters": {"type": "object", "properties": {"city": {"enum": ["Bern", "Oslo"]}}, "required": ["city"],
			"additionalProperties": false}}}],
			"response_format": {"type": "json_schema", "json_schema": {"name": "w", "schema": {"type": "object",
			"properties": {"celsius": {"type": "integer", "minimum": -50, "maximum": 50}}, "required": ["celsius"],
			"additionalProperties": false}}},
			"messages": [{"role": "user", "content": "How warm is it in Bern?"}`+more+`]}`)
		require.Equal(t, 200, status, body)
		return body
	}
	type reply struct {
		Choices []struct {
			Message struct {
				Content   string
				ToolCalls json.RawMessage `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
		}
	}
	var call, answer reply
	require.NoError(t, json.Unmarshal([]byte(ask("required", "")), &call))
	require.Equal(t, "tool_calls", call.Choices[0].FinishReason)
	require.Contains(t, string(call.Choices[0].Message.ToolCalls), "thermometer")
	body := ask("auto", `, {"role": "assistant", "tool_calls": `+string(call.Choices[0].Message.ToolCalls)+`},
		{"role": "tool", "tool_call_id": "x", "content": "21 degrees"}`)
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	require.Equal(t, "stop", answer.Choices[0].FinishReason, body)
	require.Regexp(t, `^\s*\{\s*"celsius"\s*:\s*-?\d+\s*\}$`, answer.Choices[0].Message.Content)
	require.Zero(t, s.interrupt(t))
}

// The Python programs of docs/serving.md run unchanged, except for the port. AMKC_OPENAI names a Python with OpenAI's
// and Anthropic's clients, and AMKC_AGENTS one with OpenAI's agents.
func TestServingPageOpenAI(t *testing.T) {
	if os.Getenv("AMKC_OPENAI") == "" || os.Getenv("AMKC_AGENTS") == "" {
		t.Skip("AMKC_OPENAI and AMKC_AGENTS do not name both Pythons")
	}
	page, err := os.ReadFile("../../docs/serving.md")
	require.NoError(t, err)
	programs := regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Len(t, programs, 4)
	s := startServing(t, served)
	var said strings.Builder
	for _, program := range programs {
		require.Contains(t, program[1], "http://127.0.0.1:8080")
		python := os.Getenv("AMKC_OPENAI")
		if strings.Contains(program[1], "from agents ") {
			python = os.Getenv("AMKC_AGENTS")
		}
		run := exec.Command(python, "-c", strings.ReplaceAll(program[1], "http://127.0.0.1:8080", s.url))
		out, err := run.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NotEmpty(t, out)
		said.Write(out)
	}
	require.Equal(t, 2, strings.Count(said.String(), "Weather(city='"), said.String())
	require.Contains(t, said.String(), "\nreading the thermometer in Oslo\n")
	require.Zero(t, s.interrupt(t))
}
