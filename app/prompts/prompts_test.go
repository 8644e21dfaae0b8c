package prompts

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/app/serve"
	"amkc/internal/watch"
	"amkc/text/tokenizer"
)

func load(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	data, err := os.ReadFile("../../testdata/models/pycoder-5m/tokenizer.json")
	require.NoError(t, err)
	tok, err := tokenizer.Load(data)
	require.NoError(t, err)
	return tok
}

func TestParse(t *testing.T) {
	got, err := Parse([]byte("{\"prompt\": \"a\\nb\", \"max_tokens\": 3}\r\n{\"ids\": [1, 2]}\n \n"))
	require.Error(t, err, "the last line break ends the file, and another line is empty")
	require.Nil(t, got)
	got, err = Parse([]byte("{\"prompt\": \"a\\nb\", \"max_tokens\": 3}\r\n{\"ids\": [1, 2]}\n"))
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, "a\nb", *got[0].Text)
	require.Equal(t, 3, got[0].MaxTokens)
	require.Equal(t, []int{1, 2}, got[1].IDs)
	require.Equal(t, 2, got[1].Line)
	for text, says := range map[string]string{
		"":                               "line 1: there is no prompt",
		"\n":                             "line 1: it is empty",
		"{}":                             `line 1: it has both of "prompt" and "ids", or neither`,
		`{"prompt": "a", "ids": [1]}`:    `it has both of "prompt" and "ids", or neither`,
		`{"prompt": null}`:               `or neither`,
		"{\"ids\": [1]}\n\n{}":           "line 2: it is empty",
		`{"ids": []}`:                    `"ids" is empty`,
		`{"ids": [1.5]}`:                 "want an integer",
		`{"ids": [1], "max_tokens": 0}`:  `"max_tokens" is 0; want 1 or more`,
		`{"ids": [1], "max_tokens": -4}`: `"max_tokens" is -4`,
		`{"ids": [1], "max-tokens": 4}`:  `"max-tokens" is not known`,
		"{\"ids\": [1]}\n{\"ids\": [1]":  "line 2: column 12: the text ends too early",
		`[1]`:                            "an array; want an object",
		`"a"`:                            "a string; want an object",
		`{"prompt": "a"} {}`:             "want the end of the text",
	} {
		_, err := Parse([]byte(text))
		require.ErrorContains(t, err, says, text)
		require.ErrorAs(t, err, new(*LineError))
	}
}

// Any bytes are prompts, or an error that names a line.
func FuzzParse(f *testing.F) {
	f.Add([]byte("{\"prompt\": \"a\"}\n{\"ids\": [1]}"))
	f.Add([]byte("{\"ids\": [1], \"max_tokens\": 1e3}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer watch.Execution()()
		all, err := Parse(data)
		if err != nil {
			require.ErrorAs(t, err, new(*LineError))
			return
		}
		for i, p := range all {
			require.Equal(t, i+1, p.Line)
			require.NotEqual(t, p.Text == nil, p.IDs == nil)
		}
	})
}

func TestJobs(t *testing.T) {
	tok, limits, text := load(t), serve.Limits{Vocab: 4096, MaxSeq: 16}, "import os"
	ids, err := tok.Encode(text, true)
	require.NoError(t, err)
	jobs, err := Jobs([]Prompt{{Text: &text, Line: 1}, {IDs: []int{3, 4, 5}, MaxTokens: 14, Line: 2},
		{IDs: make([]int, 16), Line: 3}}, tok, nil, 8, limits)
	require.NoError(t, err)
	require.Equal(t, []Job{{1, ids, 8}, {2, []int{3, 4, 5}, 14}, {3, make([]int, 16), 1}}, jobs)
	for says, p := range map[string]Prompt{
		"line 7: token 4096 is not in the vocabulary of 4096":            {IDs: []int{1, 4096}},
		"line 7: token -1 is not":                                        {IDs: []int{-1}},
		"line 7: 17 tokens and 1 after them do not fit the 16 positions": {IDs: make([]int, 17)},
		"line 7: 3 tokens and 15 after them do not fit the 16 positions": {IDs: make([]int, 3), MaxTokens: 15},
		"line 7: 16 tokens and 2 after them do not fit the 16 positions": {IDs: make([]int, 16), MaxTokens: 2},
		"line 7: the prompt has no tokens; want some text, or ids":       {IDs: []int{}},
	} {
		p.Line = 7
		_, err := Jobs([]Prompt{p}, tok, nil, 8, limits)
		require.ErrorContains(t, err, says)
	}
	missing := errors.New("no tokenizer")
	_, err = Jobs([]Prompt{{IDs: []int{1}}, {Text: &text}}, nil, missing, 8, limits)
	require.ErrorIs(t, err, missing)
	_, err = Jobs([]Prompt{{IDs: []int{1}}}, nil, missing, 8, limits)
	require.NoError(t, err)
}
