package serve

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// embedded is what a test reads of an answer.
type embedded struct {
	Object, Model string
	Data          []struct {
		Object    string
		Index     int
		Embedding json.RawMessage
	}
	Usage map[string]int
}

// embed asks for embeddings, and returns them.
func (s *testServer) embed(t testing.TB, fields string) (vectors [][]float32, whole embedded) {
	t.Helper()
	status, body := s.post(t, "/v1/embeddings", "{"+fields+"}")
	require.Equal(t, 200, status, body)
	require.NoError(t, json.Unmarshal([]byte(body), &whole))
	for i, d := range whole.Data {
		require.Equal(t, i, d.Index)
		require.Equal(t, "embedding", d.Object)
		var text string
		var v []float32
		if json.Unmarshal(d.Embedding, &text) != nil {
			require.NoError(t, json.Unmarshal(d.Embedding, &v))
		} else {
			raw, err := base64.StdEncoding.DecodeString(text)
			require.NoError(t, err)
			for ; len(raw) > 0; raw = raw[4:] {
				v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(raw)))
			}
		}
		vectors = append(vectors, v)
	}
	return vectors, whole
}

// An embedding is the last hidden state after an input, of length 1, in whichever form the inputs and the numbers are.
func TestEmbeddings(t *testing.T) {
	s := serve(t, newScripted(nil))
	of := func(at int) []float32 { // of an input whose first token is 3k+at
		v := []float32{3. / 13, 4. / 13, 12. / 13}
		return append(v[at:], v[:at]...)
	}
	got, whole := s.embed(t, `"input": [6, 7, 8], "model": "m"`)
	require.Equal(t, [][]float32{of(0)}, got)
	require.Equal(t, "list", whole.Object)
	require.Equal(t, "m", whole.Model)
	require.Equal(t, map[string]int{"prompt_tokens": 3, "total_tokens": 3}, whole.Usage)
	got, whole = s.embed(t, `"input": [[7], [8, 8], [9]], "encoding_format": "base64", "user": "u"`)
	require.Equal(t, [][]float32{of(1), of(2), of(0)}, got)
	require.Equal(t, 4, whole.Usage["total_tokens"])
	text, _, err := words().EncodePrompt("a b")
	require.NoError(t, err)
	got, whole = s.embed(t, `"input": "a b"`)
	require.Equal(t, [][]float32{of(text[0] % 3)}, got)
	require.Equal(t, len(text), whole.Usage["prompt_tokens"])
	got, _ = s.embed(t, `"input": ["a b", "a b"], "encoding_format": "float"`)
	require.Equal(t, [][]float32{of(text[0] % 3), of(text[0] % 3)}, got)
	got, _ = s.embed(t, `"input": [6], "dimensions": 2`)
	require.Equal(t, [][]float32{{3. / 5, 4. / 5}}, got, "what is cut has length 1 again")

	_, _, metrics := s.send(t, "GET", "/metrics", "", nil)
	require.Contains(t, metrics, "amkc_embeddings_total 8\n")
	require.NotContains(t, metrics, "amkc_completions_total{")
	log := s.log.String()
	require.Contains(t, log, "prompt_tokens=4 ")
	require.NotContains(t, log, "completion_tokens")
	require.NotContains(t, log, "a b")
}

// NaN is the engine's fault, and zeros have no direction.
func TestUnit(t *testing.T) {
	v, err := unit([]float32{0, 0})
	require.NoError(t, err)
	require.Equal(t, []float32{0, 0}, v)
	for _, wrong := range []float64{math.NaN(), math.Inf(1)} {
		_, err := unit([]float32{1, float32(wrong)})
		require.Error(t, err)
		require.Equal(t, errInternal, asAPI(err))
	}
}

// Embeddings wait in the queue among completions; the inputs of a request have one place in it, one after the other. A
// client that goes away leaves, and a server that ends refuses what is left.
func TestEmbeddingsWaitTheirTurn(t *testing.T) {
	e := newScripted(hashed)
	e.gate = make(chan struct{})
	s := newTest(e, func(c *Config) { c.Queue = 1 }).start(t)
	type answer struct {
		status int
		body   string
	}
	several, one := make(chan answer, 1), make(chan answer, 1)
	ask := func(to chan answer, path, body string) {
		status, text := s.post(t, path, body)
		to <- answer{status, text}
	}
	running := func(run, wait int) {
		t.Helper()
		eventually(t, func() bool { r, w, _, _ := s.scheduler.load(); return r == run && w == wait })
	}
	go ask(several, "/v1/embeddings", `{"input": [[6], [7], [8]]}`)
	running(1, 0)
	go ask(one, "/v1/completions", `{"prompt": [5], "max_tokens": 1}`)
	running(1, 1)
	status, body := s.post(t, "/v1/embeddings", `{"input": [6]}`)
	require.Equal(t, 429, status, body)
	for range 4 { // the completion comes between the inputs, and none of them is refused
		e.gate <- struct{}{}
	}
	require.Equal(t, 200, (<-one).status)
	got := <-several
	require.Equal(t, 200, got.status, got.body)
	require.Equal(t, 3, strings.Count(got.body, `"index"`))

	go ask(several, "/v1/embeddings", `{"input": [[6], [7]]}`)
	running(1, 0)
	s.scheduler.stop()
	e.gate <- struct{}{}
	e.gate <- struct{}{}
	got = <-several
	require.Equal(t, 200, got.status, "what was accepted before the end is answered: %s", got.body)
	require.Equal(t, 2, strings.Count(got.body, `"index"`))
	<-s.scheduler.done
	status, body = s.post(t, "/v1/embeddings", `{"input": [[6], [7]]}`)
	require.Equal(t, 503, status, body)
	require.Equal(t, "shutting_down", faultOf(t, body).Code)
}

// On the reference VM embeddings are its last hidden states, with what an earlier request has left in the cache and
// without, and completions around them do not notice.
func TestEmbeddingsOfAModel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	s := serve(t, NewSingle(newVM(t), limits, 4))
	prompts := [][]int{{0, 300, 400, 7, 9, 11, 13}, {0, 300, 400, 8}, {0, 300, 400, 7, 9, 11, 13}, {5}}
	text := s.complete(t, `"prompt": [0, 300, 400], "max_tokens": 5, "temperature": 0`)
	for _, p := range prompts {
		v := newVM(t)
		_, err := v.Feed(t.Context(), p, nil)
		require.NoError(t, err)
		want, err := unit(v.Hidden())
		require.NoError(t, err)
		raw, err := json.Marshal(p)
		require.NoError(t, err)
		got, _ := s.embed(t, fmt.Sprintf(`"input": %s`, raw))
		require.Equal(t, [][]float32{want}, got)
	}
	require.Equal(t, text.Text, s.complete(t, `"prompt": [0, 300, 400], "max_tokens": 5, "temperature": 0`).Text)
}
