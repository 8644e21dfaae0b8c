package library_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/app/library"
	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/text/sampling"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// A counter is a decoder whose logits are largest at what next says of the ids so far, and whose hidden states are the
// number of them and the last. It counts what it decodes. An embedding is the id of its first element.
type counter struct {
	vocab   int
	next    func(ids []int) int
	ids     []int
	decoded int
	bursts  []int // tokens of each call of Generate
	fail    error
}

func (c *counter) Position() int { return len(c.ids) }
func (c *counter) Close() error  { return nil }

func (c *counter) Rewind(position int) error {
	if position < 0 || position > len(c.ids) {
		return errors.New("no such position")
	}
	c.ids = c.ids[:position]
	return nil
}

func (c *counter) Decode(_ context.Context, in host.Input, want host.Outputs) (next int, err error) {
	for _, id := range in.IDs {
		if c.fail != nil {
			return 0, c.fail
		}
		if id == host.Embedding {
			id, in.Embeddings = int(in.Embeddings[0]), in.Embeddings[hidden:]
		}
		c.ids = append(c.ids, id)
		c.decoded++
		next = c.next(c.ids)
		if want.Hidden != nil {
			if err := want.Hidden(len(c.ids)-1, []float32{float32(len(c.ids)), float32(id)}); err != nil {
				return 0, err
			}
		}
		if want.Logits == nil {
			continue
		}
		logits := make([]float32, c.vocab)
		logits[next] = 1
		if err := want.Logits(len(c.ids)-1, logits); err != nil {
			return 0, err
		}
	}
	return next, nil
}

const hidden = 2 // elements of a hidden state

// A burster can go on on its own too.
type burster struct{ counter }

func (b *burster) Generate(ctx context.Context, token, n int, stops []int, _ func(int) error) (out []int, err error) {
	b.bursts = append(b.bursts, n)
	for range n {
		if token, err = b.Decode(ctx, host.Input{IDs: []int{token}}, host.Outputs{}); err != nil {
			return out, err
		}
		out = append(out, token)
		for _, stop := range stops {
			if token == stop {
				return out, nil
			}
		}
	}
	return out, nil
}

func sum(ids []int) int {
	total := 0
	for _, id := range ids {
		total = (3*total + id + 1) % 50
	}
	return total
}

// model is one without a tokenizer, whose texts end with token 49.
func model(t *testing.T, d library.Decoder) *library.Model {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, host.ConfigFile), []byte(`{"eos_token_id": 49}`), 0o600))
	m, err := library.New(dir, library.Parts{Decoder: d, Name: "sums", Vocab: 50, MaxSeq: 64, Hidden: hidden})
	require.NoError(t, err)
	return m
}

func options(n int) library.Options { return library.Options{Options: sampling.Greedy(), MaxTokens: n} }

// all is what is left of a text.
func all(t *testing.T, text *library.Text) (ids []int, finish string) {
	t.Helper()
	for finish == "" {
		token, err := text.Next(nil)
		require.NoError(t, err)
		ids, finish = append(ids, token.ID), token.Finish
	}
	return ids, finish
}

// alone is what a text comes to by the definition of the counter.
func alone(prompt []int, n int) (ids []int, finish string) {
	text := append([]int{}, prompt...)
	for range n {
		id := sum(text)
		text, ids = append(text, id), append(ids, id)
		if id == 49 {
			return ids, library.Stop
		}
	}
	return ids, library.Length
}

// Texts are the same whether the decoder takes them token by token or several at once, alone or alongside others, with
// logits or without.
func TestTextsDoNotDependOnHowTheyAreDecoded(t *testing.T) {
	for _, d := range []library.Decoder{&counter{vocab: 50, next: sum}, &burster{counter{vocab: 50, next: sum}}} {
		m := model(t, d)
		for first := range 50 {
			prompt := []int{first, 7}
			want, why := alone(prompt, 20)
			text, err := m.Begin(library.Prompt{IDs: prompt}, options(20))
			require.NoError(t, err)
			got, finish := all(t, text)
			require.Equal(t, want, got)
			require.Equal(t, why, finish)

			o := options(20)
			o.LogProbs = 0
			text, err = m.Begin(library.Prompt{IDs: prompt}, o)
			require.NoError(t, err)
			got, _ = all(t, text)
			require.Equal(t, want, got)

			one, err := m.Begin(library.Prompt{IDs: prompt}, options(20))
			require.NoError(t, err)
			other, err := m.Begin(library.Prompt{IDs: []int{3}}, options(20))
			require.NoError(t, err)
			for i := range want {
				a, err := one.Next(nil)
				require.NoError(t, err)
				require.Equal(t, want[i], a.ID)
				if _, err := other.Next(nil); err != nil {
					require.ErrorContains(t, err, "has ended")
				}
			}
		}
	}
}

// What has been decoded is not decoded again, and a list of allowed tokens takes over in the middle of a burst.
func TestNothingIsDecodedTwice(t *testing.T) {
	d := &burster{counter{vocab: 50, next: func(ids []int) int { return len(ids) % 40 }}}
	m := model(t, d)
	text, err := m.Begin(library.Prompt{IDs: []int{1, 2, 3}}, options(30))
	require.NoError(t, err)
	for range 10 {
		_, err := text.Next(nil)
		require.NoError(t, err)
	}
	require.Equal(t, []int{2, 4, 8}, d.bursts)
	require.Equal(t, 3+2+4+8, d.decoded)
	token, err := text.Next([]int{48})
	require.NoError(t, err)
	require.Equal(t, 48, token.ID)
	require.Equal(t, 3+2+4+8+1, d.decoded, "one token for the logits")
	token, err = text.Next(nil)
	require.NoError(t, err)
	require.Equal(t, 14, token.ID)

	before := d.decoded
	want := host.Outputs{Logits: func(row int, l []float32) error {
		require.Zero(t, row)
		require.Equal(t, float32(1), l[15])
		return nil
	}}
	require.NoError(t, m.Outputs(library.Prompt{IDs: text.IDs()}, 1, want))
	require.Equal(t, before+1, d.decoded, "the last token alone")
}

// Embeddings are known by their numbers: what begins with the same ones is not decoded again, and what begins with
// others is. They may stand anywhere, and at the end.
func TestEmbeddingsAreKnownByTheirNumbers(t *testing.T) {
	d := &burster{counter{vocab: 50, next: sum}}
	m := model(t, d)
	given := func(first float32) library.Prompt {
		return library.Prompt{IDs: []int{7, library.Embedding, 8, library.Embedding},
			Embeddings: []float32{first, -1, 9, -1}}
	}
	for _, c := range []struct {
		first   float32
		decoded int
	}{{5, 4}, {5, 1}, {6, 3}, {6, 1}, {5, 3}} {
		before := d.decoded
		var states [][]float32
		require.NoError(t, m.Outputs(given(c.first), 1, host.Outputs{Hidden: func(_ int, h []float32) error {
			states = append(states, h)
			return nil
		}}))
		require.Equal(t, [][]float32{{4, 9}}, states)
		require.Equal(t, c.decoded, d.decoded-before)
		text, err := m.Begin(given(c.first), options(6))
		require.NoError(t, err)
		ids, _ := all(t, text)
		want, _ := alone([]int{7, int(c.first), 8, 9}, 6)
		require.Equal(t, want, ids)
		require.Equal(t, append([]int{7, -1, 8, -1}, want...), text.IDs())
	}
	before, rows := d.decoded, 0
	require.NoError(t, m.Outputs(given(5), 3, host.Outputs{Logits: func(row int, l []float32) error {
		require.Equal(t, rows, row)
		rows++
		return nil
	}}))
	require.Equal(t, 3, rows)
	require.Equal(t, 3, d.decoded-before)
}

func TestAFailureIsNotKept(t *testing.T) {
	d := &counter{vocab: 50, next: sum}
	m := model(t, d)
	text, err := m.Begin(library.Prompt{IDs: []int{5, 6}}, options(10))
	require.NoError(t, err)
	first, err := text.Next(nil)
	require.NoError(t, err)
	d.fail = errors.New("the GPU has gone")
	_, err = text.Next(nil)
	require.ErrorIs(t, err, d.fail)
	d.fail = nil
	rest, _ := all(t, text)
	want, _ := alone([]int{5, 6}, 10)
	require.Equal(t, want, append([]int{first.ID}, rest...))
}

// A watched one says how much of an input it has decoded, and ends with its context, as a session does.
type watched struct {
	counter
	tell host.Progress
}

func (w *watched) SetProgress(p host.Progress) { w.tell = p }

func (w *watched) Decode(ctx context.Context, in host.Input, want host.Outputs) (next int, err error) {
	for i := range in.IDs {
		if w.tell != nil && i%10 == 0 {
			w.tell("reading tokens", int64(i), int64(len(in.IDs)))
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if next, err = w.counter.Decode(ctx, host.Input{IDs: in.IDs[i : i+1]}, want); err != nil {
			return 0, err
		}
	}
	if w.tell != nil {
		w.tell("reading tokens", int64(len(in.IDs)), int64(len(in.IDs)))
	}
	return next, nil
}

// Who watches is told how far a prompt is, and may end it; what was decoded before is not decoded again. A failure of
// the decoder is no such end.
func TestWatchedPrompts(t *testing.T) {
	d := &watched{counter: counter{vocab: 50, next: sum}}
	m := model(t, d)
	prompt := library.Prompt{IDs: make([]int, 41)}
	var told [][2]int
	stop := 20
	m.Watch(func(done, total int) bool {
		told = append(told, [2]int{done, total})
		return done < stop
	})
	want, _ := alone(prompt.IDs, 3)
	text, err := m.Begin(prompt, options(3))
	require.NoError(t, err)
	_, err = text.Next(nil)
	var input *library.InputError
	require.ErrorAs(t, err, &input)
	require.Contains(t, input.What, "stopped after 20 of 41 tokens")
	require.Equal(t, [][2]int{{0, 41}, {10, 41}, {20, 41}}, told)
	require.Equal(t, 20, d.decoded)
	told, stop = nil, 1000
	got, _ := all(t, text)
	require.Equal(t, want, got)
	require.Equal(t, [][2]int{{0, 21}, {10, 21}}, told[:2], "of what is left")
	require.Equal(t, 41+2, d.decoded)

	m.Watch(func(done, total int) bool { return done < total })
	last := []int{3, 1, 4, 1, 5, 9, 2, 6}
	text, err = m.Begin(library.Prompt{IDs: last}, options(3))
	require.NoError(t, err)
	_, err = text.Next(nil)
	require.ErrorAs(t, err, &input)
	require.Contains(t, input.What, "stopped after 8 of 8 tokens", "after the last launch too")
	decoded := d.decoded
	m.Watch(func(int, int) bool { return true })
	want, _ = alone(last, 3)
	got, _ = all(t, text)
	require.Equal(t, want, got)
	require.Equal(t, decoded+1+2, d.decoded)

	d.fail = errors.New("the GPU has gone")
	require.ErrorIs(t, m.Outputs(library.Prompt{IDs: make([]int, 50)}, 1, host.Outputs{}), d.fail)
	d.fail, told = nil, nil
	m.Watch(nil)
	require.NoError(t, m.Outputs(library.Prompt{IDs: make([]int, 50)}, 1, host.Outputs{}))
	require.Empty(t, told)
}

// A limited one finds no token after most tokens.
type limited struct {
	burster
	most int
}

func (l *limited) Decode(ctx context.Context, in host.Input, want host.Outputs) (int, error) {
	if len(l.ids)+len(in.IDs) > l.most {
		return 0, &sampling.LogitsError{Position: l.most + 1, What: "no token"}
	}
	return l.burster.Decode(ctx, in, want)
}

func (l *limited) Generate(ctx context.Context, token, n int, stops []int, emit func(int) error) ([]int, error) {
	can := min(n, l.most-len(l.ids))
	out, err := l.burster.Generate(ctx, token, can, stops, emit)
	if err == nil && can < n {
		_, err = l.Decode(ctx, host.Input{IDs: []int{token}}, host.Outputs{})
	}
	return out, err
}

// What the kernel has chosen before logits that leave no token is of the text.
func TestTokensBeforeLogitsWithoutOneCount(t *testing.T) {
	d := &limited{burster{counter{vocab: 50, next: sum}}, 13}
	text, err := model(t, d).Begin(library.Prompt{IDs: []int{5, 6}}, options(30))
	require.NoError(t, err)
	want, _ := alone([]int{5, 6}, 12)
	var ids []int
	for range want {
		token, err := text.Next(nil)
		require.NoError(t, err)
		ids = append(ids, token.ID)
	}
	require.Equal(t, want, ids)
	require.Equal(t, []int{2, 4, 5}, d.bursts, "the last one was to be of 8")
	var none *sampling.LogitsError
	for range 2 {
		_, err = text.Next(nil)
		require.ErrorAs(t, err, &none)
		require.Equal(t, 14, none.Position)
	}
}

func TestInputIsRefused(t *testing.T) {
	m := model(t, &counter{vocab: 50, next: sum})
	var input *library.InputError
	begin := func(prompt []int, o library.Options) error {
		_, err := m.Begin(library.Prompt{IDs: prompt}, o)
		return err
	}
	wrong := func(o sampling.Options, stops ...string) error {
		return begin([]int{1}, library.Options{Options: o, Stops: stops})
	}
	embedded := func(id int, row ...float32) error {
		rows := append([]float32{1, 2}, row...)[len(row):]
		_, err := m.Begin(library.Prompt{IDs: []int{id}, Embeddings: rows}, options(1))
		return err
	}
	cold := sampling.Greedy()
	cold.Temperature = -1
	_, noText := m.Encode("x", true)
	_, noChat := m.Chat(nil)
	for what, err := range map[string]error{
		"at least one":                         begin(nil, options(1)),
		"ids 0 to 49":                          begin([]int{50}, options(1)),
		"has 64 positions":                     begin(make([]int, 65), options(0)),
		"want 1 to 63":                         begin(make([]int, 2), options(64)),
		"want 1 to 64":                         begin([]int{1}, options(-1)),
		"last 3 of 2 positions":                m.Outputs(library.Prompt{IDs: []int{1, 2}}, 3, host.Outputs{}),
		"no ids; want":                         m.Outputs(library.Prompt{}, 1, host.Outputs{}),
		"at 1 positions; want 2, 2 for each":   begin([]int{1, library.Embedding}, options(1)),
		"for embeddings at 0 positions":        embedded(1),
		"is NaN; want finite numbers":          embedded(library.Embedding, 1, float32(math.NaN())),
		"is +Inf; want finite numbers":         embedded(library.Embedding, float32(math.Inf(1)), 1),
		"reference VM":                         m.SavePrefix([]int{1}, "x"),
		"temperature is -1":                    wrong(cold),
		"repetition-penalty is 0":              wrong(sampling.Options{}),
		"model came without a tokenizer":       noText,
		"the model came without a tokenizer":   noChat,
		"tokenizer.json: the model came witho": wrong(sampling.Greedy(), "x"),
	} {
		require.ErrorContains(t, err, what)
	}
	require.ErrorAs(t, begin(nil, options(1)), &input)
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	require.ErrorContains(t, begin([]int{1}, options(1)), "closed")
}

// A build opens on a GPU and its texts are those of a session; prefixes are saved and loaded.
func TestBuild(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := hosttest.Build(t, "layers=1", func(f *host.Facts) { // a cache of one layer and head
		f.Model.Layers, f.Model.KVHeads, f.Model.CacheBlock = 1, 1, 16*64
	})
	s, err := host.Open(t.Context(), dir, host.Options{})
	require.NoError(t, err)
	prompt := []int{5, 6, 7, 8}
	want, err := s.Complete(t.Context(), prompt, 20, nil, nil)
	require.NoError(t, err)
	require.NoError(t, s.Close())

	m, err := library.Open(dir, 0)
	require.NoError(t, err)
	defer m.Close()
	require.Equal(t, []any{"fake", 4096, 128, []int{1}}, []any{m.Name(), m.Vocab(), m.MaxSeq(), m.EOS()})
	o := options(20)
	o.IgnoreEOS = true
	text, err := m.Begin(library.Prompt{IDs: prompt}, o)
	require.NoError(t, err)
	ids, finish := all(t, text)
	require.Equal(t, want.IDs, ids)
	require.Equal(t, library.Length, finish)

	path := filepath.Join(t.TempDir(), "prefix")
	require.NoError(t, m.SavePrefix(prompt, path))
	require.ErrorContains(t, m.SavePrefix(prompt, filepath.Join(dir, host.WeightsFile)), "of the build")
	other, err := library.Open(dir, 0)
	require.NoError(t, err)
	defer other.Close()
	loaded, err := other.LoadPrefix(path)
	require.NoError(t, err)
	require.Equal(t, prompt, loaded)
	text, err = other.Begin(library.Prompt{IDs: prompt}, o)
	require.NoError(t, err)
	ids, _ = all(t, text)
	require.Equal(t, want.IDs, ids)
	_, err = other.LoadPrefix(filepath.Join(dir, host.ConfigFile))
	var prefix *host.PrefixError
	require.ErrorAs(t, err, &prefix)
	text, err = other.Begin(library.Prompt{IDs: prompt}, o)
	require.NoError(t, err)
	ids, _ = all(t, text)
	require.Equal(t, want.IDs, ids, "after a file that is not a prefix")
}
