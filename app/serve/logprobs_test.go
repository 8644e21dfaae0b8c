package serve

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Logprobs are those of the model, whatever a bias did to the choice.
func TestChatLogprobs(t *testing.T) {
	tokens := append(idsOf(t, "a wö"), eos)
	s := serve(t, newScripted(func(_, out []int) int { return tokens[min(len(out), len(tokens)-1)] }))
	fields := `{"messages": [{"role": "user", "content": "x"}], "logprobs": true, "top_logprobs": 3}`
	status, body := s.post(t, "/v1/chat/completions", fields)
	require.Equal(t, 200, status, body)
	var whole struct {
		Choices []struct {
			Message  struct{ Content string }
			Logprobs struct {
				Content []struct {
					Token   string
					Logprob float64
					Bytes   []int
					Top     []struct {
						Token   string
						Logprob float64
					} `json:"top_logprobs"`
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &whole))
	rows := whole.Choices[0].Logprobs.Content
	require.Len(t, rows, len(tokens)-1, "the end has none")
	sum := 0.0
	for _, x := range logitsOf(0) {
		sum += math.Exp(float64(x))
	}
	var all []byte
	for i, r := range rows {
		for _, b := range r.Bytes {
			all = append(all, byte(b))
		}
		require.InDelta(t, 5-math.Log(sum), r.Logprob, 1e-9)
		require.Len(t, r.Top, 3)
		require.Equal(t, r.Token, r.Top[0].Token)
		for k, top := range r.Top {
			require.InDelta(t, 5-float64(k)/64-math.Log(sum), top.Logprob, 1e-9)
		}
		raw := words().Bytes(tokens[i])
		require.Equal(t, utf8.Valid(raw), r.Token == string(raw))
	}
	require.Equal(t, whole.Choices[0].Message.Content, string(all), "bytes of tokens are those of the text")

	// In a stream they come with the text.
	_, body = s.post(t, "/v1/chat/completions", strings.Replace(fields, "{", `{"stream": true, `, 1))
	n := 0
	for _, event := range strings.Split(body, "\n\n") {
		var chunk struct {
			Choices []struct {
				Delta    chatDelta
				Logprobs *struct{ Content []any }
			}
		}
		if strings.HasPrefix(event, "data: {") {
			require.NoError(t, json.Unmarshal([]byte(event[len("data: "):]), &chunk))
			if l := chunk.Choices[0].Logprobs; l != nil {
				n += len(l.Content)
			}
		}
	}
	require.Equal(t, len(rows), n)
}

// Those of completions are lists side by side; tokens whose text is after a stop string have none.
func TestCompletionLogprobs(t *testing.T) {
	const text = "one two"
	ids := idsOf(t, text)
	s := serve(t, says(t, text))
	var whole struct {
		Choices []struct {
			Text     string
			Logprobs struct {
				Tokens   []string
				Logprobs []float64            `json:"token_logprobs"`
				Top      []map[string]float64 `json:"top_logprobs"`
				Offsets  []int                `json:"text_offset"`
			}
		}
	}
	_, body := s.post(t, "/v1/completions", `{"prompt": "x", "logprobs": 2}`)
	require.NoError(t, json.Unmarshal([]byte(body), &whole))
	got := whole.Choices[0]
	require.Equal(t, text, strings.Join(got.Logprobs.Tokens, ""))
	require.Len(t, got.Logprobs.Logprobs, len(ids))
	for i, offset := range got.Logprobs.Offsets {
		require.True(t, strings.HasPrefix(text[offset:], got.Logprobs.Tokens[i]))
		require.NotEmpty(t, got.Logprobs.Top[i])
	}
	_, body = s.post(t, "/v1/completions", `{"prompt": "x", "logprobs": 0, "stop": " two"}`)
	require.NoError(t, json.Unmarshal([]byte(body), &whole))
	got = whole.Choices[0]
	require.Equal(t, "one", got.Text)
	require.Equal(t, "one", strings.Join(got.Logprobs.Tokens, ""))
}

// Tokens that are not characters on their own have the name of their bytes in completions.
func TestNamesOfBytes(t *testing.T) {
	const text = "€"
	require.Greater(t, len(idsOf(t, text)), 1)
	s := serve(t, says(t, text))
	_, body := s.post(t, "/v1/completions", `{"prompt": "x", "logprobs": 0}`)
	var whole struct {
		Choices []struct {
			Text     string
			Logprobs struct{ Tokens []string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &whole))
	require.Equal(t, text, whole.Choices[0].Text)
	require.Equal(t, `bytes:\xe2bytes:\x82bytes:\xac`, strings.Join(whole.Choices[0].Logprobs.Tokens, ""))
}
