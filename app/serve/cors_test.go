package serve

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseOrigin(t *testing.T) {
	for text, want := range map[string]string{
		"*": "*", "https://app.example": "https://app.example", "http://localhost:3000": "http://localhost:3000",
		"HTTPS://App.Example:443": "https://app.example", "http://a:80": "http://a", "http://a:443": "http://a:443",
		"http://[::1]:80": "http://[::1]", "app://obsidian.md": "app://obsidian.md",
		"http://[0:0::1]:03000": "http://[::1]:3000", "http://127.0.0.1:8000": "http://127.0.0.1:8000",
		"https://bücher.example": "", "https://xn--b.example": "https://xn--b.example",
		"": "", "app.example": "", "https://": "", "https://a/": "", "https://a?b": "", "https://u@a": "", "null": "",
		"https://a#b": "", "https://:80": "", "*.example": "", "http://a b": "",
	} {
		got, err := ParseOrigin(text)
		require.Equal(t, want, got, text)
		require.Equal(t, want == "", err != nil, text)
	}
}

// from are the headers of a request of a page.
func from(origin string, more ...string) http.Header {
	h := http.Header{"Origin": {origin}}
	for i := 0; i < len(more); i += 2 {
		h[more[i]] = []string{more[i+1]}
	}
	return h
}

// Pages of other origins read no answer unless they are allowed to, and a browser that asks is told.
func TestOrigins(t *testing.T) {
	const page, other = "https://app.example", "https://other.example"
	asks := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers",
		"content-type,x-api-key"}
	paths := strings.NewReplacer("{$}", "", "{model...}", "m")
	for _, c := range []struct {
		origins []string
		origin  string
		want    string
	}{
		{nil, page, ""}, {[]string{page}, page, page}, {[]string{page}, other, ""}, {[]string{page}, "null", ""},
		{[]string{page, other}, other, other}, {[]string{"*"}, other, "*"},
	} {
		s := newTest(says(t, "x"), func(config *Config) { config.Origins, config.APIKey = c.origins, "k" }).start(t)
		for _, route := range s.routes() {
			path := paths.Replace(route.path)
			status, header, _ := s.send(t, http.MethodOptions, path, "", from(c.origin, asks...)) // which has no key
			require.Equal(t, c.want, header.Get("Access-Control-Allow-Origin"), path)
			if c.want == "" {
				require.NotEqual(t, 204, status, path)
				require.Empty(t, header.Get("Access-Control-Allow-Headers"))
			} else {
				require.Equal(t, 204, status, path)
				require.Equal(t, "content-type,x-api-key", header.Get("Access-Control-Allow-Headers"))
				require.Equal(t, route.method, header.Get("Access-Control-Allow-Methods"))
			}
			vary := strings.Join(header["Vary"], ",")
			require.Equal(t, len(c.origins) > 0 && c.origins[0] != "*", strings.Contains(vary, "Origin"))
		}
		// Errors can be read as well.
		status, header, _ := s.send(t, http.MethodPost, "/v1/completions", `{"prompt": "x"}`, from(c.origin))
		require.Equal(t, 401, status)
		require.Equal(t, c.want, header.Get("Access-Control-Allow-Origin"))
		status, header, body := s.send(t, http.MethodPost, "/v1/completions", `{"prompt": "x", "stream": true}`,
			from(c.origin, "Authorization", "Bearer k"))
		require.Equal(t, 200, status, body)
		require.Equal(t, c.want, header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, len(c.origins) > 0, header.Get("Access-Control-Expose-Headers") != "")
		require.Empty(t, header.Get("Access-Control-Allow-Credentials"))
	}
	// A browser does not ask in front of a body that is not JSON, which is refused.
	s := newTest(says(t, "x"), func(config *Config) { config.Origins = []string{page} }).start(t)
	status, _, _ := s.send(t, http.MethodPost, "/v1/completions", `{"prompt": "x"}`,
		from(other, "Content-Type", "text/plain"))
	require.Equal(t, 415, status)
	status, _, _ = s.send(t, http.MethodOptions, "/v1/completions", "", from(page))
	require.Equal(t, 405, status, "nobody asks what a page may do")
}
