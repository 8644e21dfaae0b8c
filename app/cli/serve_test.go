package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"amkc/app/cli"
	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/runtime/shape"
	"amkc/text/chat"
)

// A launcher answers with what run decodes, until it is interrupted, and then ends well: one request at a time, or as
// many as passes of the build take, with drafts of these and without.
func TestServe(t *testing.T) {
	t.Run("one at a time", func(t *testing.T) { testServe(t, build(t, "")) })
	t.Run("several", func(t *testing.T) {
		testServe(t, build(t, "", func(f *host.Facts) {
			hosttest.AddPasses(f, shape.Pass{Rows: 4}, shape.Pass{Rows: 1, Sequences: 3})
		}))
	})
	t.Run("drafts", func(t *testing.T) {
		dir := build(t, "", func(f *host.Facts) {
			hosttest.AddPasses(f, shape.Pass{Rows: 1, Sequences: 3}, shape.Pass{Rows: 2, Sequences: 3})
		})
		testServe(t, dir, "--draft", "ngram")
		code, _, stderr := run(t, dir, "", "serve", "--draft", "words")
		require.Equal(t, 2, code)
		require.Contains(t, stderr, `serve: --draft "words"; ngram is known`)
	})
}

func testServe(t *testing.T, dir string, flags ...string) {
	hosttest.NeedDriver(t)
	hosttest.Write(t, dir, chat.TemplateFile, []byte(chatTemplate))
	hosttest.Write(t, dir, chat.ConfigFile, []byte(`{"bos_token": "<|begin_of_text|>"}`))
	_, out, _ := run(t, dir, "", "run", "--prompt", "# user: hi\n", "--max-tokens", "9", "--json")
	var want result
	require.NoError(t, json.Unmarshal([]byte(out), &want))

	read, write := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		l := cli.Launcher{Model: hosttest.Facts().Model, Dir: dir}
		args := append([]string{"serve", "--port", "0", "--api-key", "k", "--json", "--alias", "other",
			"--alias", "third", "--cors", "https://App.example"}, flags...)
		ended <- l.Main(args, nil, write, &stderr)
	}()
	var started struct{ URL string }
	require.NoError(t, json.NewDecoder(read).Decode(&started))

	ask := func(path, body string) (status int, answer string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, started.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer k")
		got, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer got.Body.Close()
		text, err := io.ReadAll(got.Body)
		require.NoError(t, err)
		return got.StatusCode, string(text)
	}
	for range 2 { // the second time with the rows of the first
		status, body := ask("/v1/completions",
			`{"prompt": "# user: hi\n", "max_tokens": 9, "model": "fake", "temperature": 0}`)
		require.Equal(t, 200, status, body)
		var got struct{ Choices []struct{ Text string } }
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		require.Equal(t, *want.Text, got.Choices[0].Text)
	}
	status, body := ask("/v1/chat/completions", `{"messages": [{"role": "user", "content": "hi"}],
		"max_tokens": 9, "temperature": 0}`)
	require.Equal(t, 200, status, body)
	var got struct {
		Choices []struct{ Message struct{ Content string } }
		Usage   struct {
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Equal(t, *want.Text, got.Choices[0].Message.Content)
	require.Equal(t, len(want.PromptIDs)-1, got.Usage.Details.Cached)

	status, body = ask("/v1/messages", `{"model": "third", "messages": [{"role": "user", "content": "hi"}],
		"max_tokens": 9, "temperature": 0, "min_tokens": 9}`)
	require.Equal(t, 200, status, body)
	require.Contains(t, body, `"model":"third"`)
	require.Contains(t, body, `"stop_reason":"max_tokens"`)
	require.Contains(t, body, `"output_tokens":9`)

	var answers sync.WaitGroup
	for i := range 9 { // greedy and drawn, concurrently with one another
		answers.Go(func() {
			status, body := ask("/v1/completions", `{"prompt": "# user: hi\n", "max_tokens": 9, "model": "fake",
				"temperature": `+strconv.Itoa(i%2)+`, "seed": 5}`)
			var got struct{ Choices []struct{ Text string } }
			if assert.Equal(t, 200, status, body) && assert.NoError(t, json.Unmarshal([]byte(body), &got)) && i%2 == 0 {
				assert.Equal(t, *want.Text, got.Choices[0].Text)
			}
		})
	}
	answers.Wait()

	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
	require.Zero(t, <-ended)
	for line := range strings.Lines(stderr.String()) {
		require.True(t, json.Valid([]byte(line)), line)
	}
	require.Contains(t, stderr.String(), `"path":"/v1/completions","status":200`)
}

func TestServeRefuses(t *testing.T) {
	dir := build(t, "")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--port", "65536"}, `"65536" for flag --port: want a whole number from 0 to 65535`},
		{[]string{"--queue", "-1"}, `"-1" for flag --queue: want a whole number from 0 to 2147483647`},
		{[]string{"--host", ""}, `"" for flag --host: want a value that is not empty`},
		{[]string{"--api-key", ""}, `"" for flag --api-key: want a value that is not empty, or no such flag`},
		{[]string{"--alias", ""}, `"" for flag --alias: want a value that is not empty, or no such flag`},
		{[]string{"--cors", "app.example"}, `"app.example" for flag --cors: want an origin, as https://app.example`},
		{[]string{"--port", port}, "serve: 127.0.0.1:" + port + ": address already in use"},
	} {
		code, _, stderr := run(t, dir, "", append([]string{"serve"}, c.args...)...)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, c.want)
	}
	require.NoError(t, os.Remove(dir+"/"+host.TokenizerFile))
	code, _, stderr := run(t, dir, "", "serve", "--port", "0")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "the model came without a tokenizer")
}

// A GPU that is lost ends the launcher with an error, so that what has started it starts it again.
func TestServeLost(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := build(t, "fault_at=12")
	read, write := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		l := cli.Launcher{Model: hosttest.Facts().Model, Dir: dir}
		ended <- l.Main([]string{"serve", "--port", "0", "--json", "--grace", "5"}, nil, write, &stderr)
	}()
	var started struct{ URL string }
	require.NoError(t, json.NewDecoder(read).Decode(&started))
	r, err := http.Post(started.URL+"/v1/completions", "application/json",
		strings.NewReader(`{"prompt": [5, 6], "max_tokens": 30, "ignore_eos": true}`))
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, 500, r.StatusCode)
	require.Equal(t, 2, <-ended)
	require.Contains(t, stderr.String(), "the engine is lost until the process is started again: ")
	require.Contains(t, stderr.String(), "CUDA_ERROR_ILLEGAL_ADDRESS")
}
