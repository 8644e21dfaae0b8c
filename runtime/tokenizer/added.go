package tokenizer

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedJSON is an entry of added_tokens.
type addedJSON struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // not inside a longer word
	LStrip     bool   `json:"lstrip"`      // takes the white space before it
	RStrip     bool   `json:"rstrip"`      // takes the white space after it
	Normalized bool   `json:"normalized"`  // looked for in the normalized text
	Special    bool   `json:"special"`
}

// An addedToken is found in text before any pre-tokenizer or merge runs.
type addedToken struct {
	addedJSON
	pattern string // what is looked for and what Decode prints: Content, normalized if Normalized
}

// loadAdded gives every added token the id that the library gives it: its id in the vocabulary, or else the next one
// after the vocabulary. A file that says otherwise would encode differently there and here, and is refused.
func (t *Tokenizer) loadAdded(list []addedJSON) error {
	t.added = make(map[int]addedToken, len(list))
	t.raw, t.normal = newMatcher(), newMatcher()
	next := len(t.model.ids)
	seen := make(map[string]bool, len(list))
	for i, a := range list {
		where := fmt.Sprintf("added_tokens[%d]", i)
		if a.Content == "" {
			return malformed(where, "has no content")
		}
		if seen[a.Content] {
			return malformed(where, "%q is listed twice", a.Content)
		}
		seen[a.Content] = true
		id, inModel := t.model.ids[a.Content]
		if !inModel {
			id = next
			next++
		}
		if a.ID != id {
			return malformed(where, "%q has id %d, but its place after the vocabulary gives it %d", a.Content, a.ID, id)
		}
		if other, taken := t.model.texts[id]; taken && other != a.Content {
			return malformed(where, "%q and %q have the same id %d", a.Content, other, id)
		}
		token := addedToken{addedJSON: a, pattern: a.Content}
		into := t.raw
		if a.Normalized {
			into = t.normal
			token.pattern = applyNormalizers(t.normalize, a.Content)
		}
		t.added[id] = token
		if !into.insert(token) {
			return malformed(where, "%q is the same as another added token once normalized", a.Content)
		}
	}
	return nil
}

// A matcher finds added tokens: at the leftmost position the longest, then onwards from its end.
type matcher struct {
	nodes  []trieNode
	tokens []addedToken
}

type trieNode struct {
	children map[byte]int
	token    int // index into tokens, or -1
}

func newMatcher() *matcher { return &matcher{nodes: []trieNode{{token: -1}}} }

// insert reports false if a token with the same pattern is there.
func (m *matcher) insert(t addedToken) bool {
	at := 0
	for i := 0; i < len(t.pattern); i++ {
		node := &m.nodes[at]
		if node.children == nil {
			node.children = map[byte]int{}
		}
		child, ok := node.children[t.pattern[i]]
		if !ok {
			child = len(m.nodes)
			node.children[t.pattern[i]] = child
			m.nodes = append(m.nodes, trieNode{token: -1})
		}
		at = child
	}
	if m.nodes[at].token >= 0 {
		return false
	}
	m.nodes[at].token = len(m.tokens)
	m.tokens = append(m.tokens, t)
	return true
}

// longest returns the longest token that text starts with.
func (m *matcher) longest(text string) (t addedToken, ok bool) {
	best := -1
	for at, i := 0, 0; i < len(text); i++ {
		child, ok := m.nodes[at].children[text[i]]
		if !ok {
			break
		}
		at = child
		if m.nodes[at].token >= 0 {
			best = m.nodes[at].token
		}
	}
	if best < 0 {
		return t, false
	}
	return m.tokens[best], true
}

// split cuts s around the added tokens in it. Empty stretches of text are left out.
func (m *matcher) split(s segment) []segment {
	var out []segment
	text := s.text
	done := 0 // text[:done] has been dealt with
	gap := func(end int) {
		if done < end {
			out = append(out, segment{text[done:end], noToken, s.first && done == 0})
		}
	}
	for i := 0; i < len(text); {
		t, ok := m.longest(text[i:])
		if !ok {
			i++
			continue
		}
		start, end := i, i+len(t.pattern)
		i = end
		if t.SingleWord && (endsInWord(text[:start]) || startsWithWord(text[end:])) {
			continue
		}
		if t.LStrip {
			start = len(strings.TrimRightFunc(text[:start], unicode.IsSpace))
		}
		if t.RStrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
		}
		gap(start)
		out = append(out, segment{id: t.ID})
		done = end
	}
	gap(len(text))
	return out
}

func endsInWord(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s != "" && isWord(r)
}

func startsWithWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && isWord(r)
}
