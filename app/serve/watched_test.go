package serve

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// With an API key nothing of the model is had without it; health, metrics and the page, which say nothing of texts, are
// open.
func TestAPIKey(t *testing.T) {
	s := newTest(says(t, "x"), func(c *Config) { c.APIKey = "secret" }).start(t)
	ask := func(method, path, authorization string) (int, http.Header, string) {
		header := http.Header{}
		if authorization != "" {
			header["Authorization"] = []string{authorization}
		}
		return s.send(t, method, path, `{"prompt": "x"}`, header)
	}
	paths := strings.NewReplacer("{$}", "", "{model...}", "m")
	for _, wrong := range []string{"", "secret", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets",
		"Basic secret"} {
		for _, r := range s.routes() {
			status, header, body := ask(r.method, paths.Replace(r.path), wrong)
			if r.open {
				require.Equal(t, 200, status, r.path)
				continue
			}
			require.Equal(t, 401, status, r.path)
			require.Equal(t, "Bearer", header.Get("WWW-Authenticate"))
			require.Equal(t, "invalid_api_key", codeOf(t, r.path, body))
		}
	}
	for _, right := range []string{"Bearer secret", "bearer secret"} {
		status, _, body := ask(http.MethodPost, "/v1/completions", right)
		require.Equal(t, 200, status, body)
	}
	require.NotContains(t, s.log.String(), "secret")
}

// Every request has an id in its answer and in the log: the client's, if that can be written anywhere.
func TestRequestIDs(t *testing.T) {
	s := serve(t, says(t, "the answer"))
	for given, kept := range map[string]bool{"abc-1": true, "": false, "a b": false, `a"b`: false, "ü": false,
		strings.Repeat("x", 128): true, strings.Repeat("x", 129): false} {
		_, header, _ := s.send(t, http.MethodPost, "/v1/completions", `{"prompt": "the prompt", "model": "other"}`,
			http.Header{"X-Request-Id": {given}})
		id := header.Get("X-Request-Id")
		if kept {
			require.Equal(t, given, id)
		} else {
			require.Regexp(t, `^req-[0-9a-f]{24}$`, id)
		}
		require.Contains(t, s.log.String(), "request_id="+id+" ")
	}
	s.post(t, "/v1/completions", `{"prompt": "the prompt"}`)
	log := s.log.String()
	require.Contains(t, log, "status=404")
	require.Contains(t, log, "code=model_not_found")
	require.Contains(t, log, "prompt_tokens="+strconv.Itoa(1+len(idsOf(t, "the prompt"))))
	require.Contains(t, log, "finish=stop")
	require.NotContains(t, log, "the prompt", "texts are nobody's business")
	require.NotContains(t, log, "the answer")
}

// Metrics are in the text format of Prometheus.
func TestMetrics(t *testing.T) {
	s := serve(t, says(t, "abc"))
	n := len(idsOf(t, "abc")) + 1
	s.complete(t, `"prompt": [5, 6]`)
	s.post(t, "/v1/completions", `{}`)
	s.send(t, http.MethodGet, `/nothing"here`, "", nil)
	status, header, body := s.send(t, http.MethodGet, "/metrics", "", nil)
	require.Equal(t, 200, status)
	require.Equal(t, "text/plain; version=0.0.4; charset=utf-8", header.Get("Content-Type"))
	for _, line := range []string{
		`amkc_http_requests_total{path="/v1/completions",status="200"} 2`,
		`amkc_http_requests_total{path="/v1/completions",status="400"} 1`,
		`amkc_http_requests_total{path="other",status="404"} 1`,
		`amkc_completions_total{finish="stop"} 2`,
		`amkc_prompt_tokens_total 4`,
		`amkc_cached_tokens_total 0`,
		`amkc_completion_tokens_total ` + strconv.Itoa(2*n),
		`amkc_requests_running 0`,
		`amkc_first_token_seconds_count 2`,
		`amkc_next_token_seconds_count ` + strconv.Itoa(2*(n-1)),
		`amkc_next_token_seconds_bucket{le="+Inf"} ` + strconv.Itoa(2*(n-1)),
	} {
		require.Contains(t, body, line+"\n")
	}
	sample := regexp.MustCompile(`^[a-z_]+(\{[a-z]+="[^"\\]*"(,[a-z]+="[^"\\]*")*\})? [0-9.e+-]+$`)
	typed := map[string]bool{}
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		if name, found := strings.CutPrefix(line, "# TYPE "); found {
			name, _, _ = strings.Cut(name, " ")
			require.False(t, typed[name], "a family is in one place")
			typed[name] = true
		} else if !strings.HasPrefix(line, "# HELP ") {
			require.Regexp(t, sample, line)
			name, _, _ := strings.Cut(strings.SplitN(line, " ", 2)[0], "{")
			family := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			require.True(t, typed[name] || typed[family], line)
		}
	}
}
