package serve

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/text/grammar"
)

// The grammars that were used last are kept, and told apart by all that they are of; what is refused is not kept.
func TestGrammarsAreKept(t *testing.T) {
	v, err := grammar.FromTokenizer(vocab, words(), []int{eos})
	require.NoError(t, err)
	var k grammars
	made := 0
	get := func(kind string, what any) *grammar.Grammar {
		g, err := k.of(kind, what, func() (*grammar.Grammar, error) {
			made++
			return grammar.Object(v), nil
		})
		require.NoError(t, err)
		return g
	}
	first := get("a", 1)
	require.Same(t, first, get("a", 1))
	require.NotSame(t, first, get("b", 1))
	require.NotSame(t, first, get("a", "1"))
	require.Equal(t, 3, made)
	for i := range mostGrammars - 1 {
		get("c", i)
		require.Same(t, first, get("a", 1), "it is used again and again")
	}
	for i := range mostGrammars {
		get("d", i)
	}
	require.NotSame(t, first, get("a", 1))
	require.Len(t, k.last, mostGrammars)

	refused := errors.New("refused")
	for range 2 {
		_, err := k.of("e", nil, func() (*grammar.Grammar, error) { return nil, refused })
		require.ErrorIs(t, err, refused)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			g, _ := k.of("f", i%2, func() (*grammar.Grammar, error) { return grammar.Object(v), nil })
			g.Begin(eos).Mask()
		})
	}
	all.Wait()
}

// A request that says the same is answered by what the first one has left, and the answers are the same.
func TestSchemasThatComeAgain(t *testing.T) {
	s := serve(t, longer())
	const fields = `"messages": [{"role": "user", "content": "a"}], "max_tokens": 60, "temperature": 2, "seed": 3,
		"n": 3, "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "array",
			"items": {"const": "a"}}}}`
	first, _ := s.ask(t, "/v1/chat/completions", fields)
	again, _ := s.ask(t, "/v1/chat/completions", fields)
	require.Equal(t, first, again)
	require.Len(t, s.grammars.last, 1)
	status, body := s.post(t, "/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}],
		"response_format": {"type": "json_schema", "json_schema": {"schema": "json_object"}}}`)
	require.Equal(t, 400, status, body)
}
