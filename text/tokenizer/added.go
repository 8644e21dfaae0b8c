package tokenizer

import (
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"amkc/text/tokenizer/chars"
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
	hidden  bool   // skipped where special tokens are: what Decode prints is a special token
}

// maxAdded bounds the bytes of an added token, and with them the time of looking for it at each place of a text. The
// longest in use are runs of 31 spaces or marks.
const maxAdded = 1024

// loadAdded gives every added token the id that the library gives it: its id in the vocabulary, or else the next one
// after the vocabulary. A file that says otherwise would encode differently there and here, and is refused.
func (t *Tokenizer) loadAdded(list []addedJSON) error {
	t.added = make(map[int]addedToken, len(list))
	t.raw, t.normal = newMatcher(), newMatcher()
	next := t.model.size()
	seen := make(map[string]bool, len(list))
	for i, a := range list {
		where := fmt.Sprintf("added_tokens[%d]", i)
		if a.Content == "" {
			return malformed(where, "has no content")
		}
		if len(a.Content) > maxAdded {
			return &UnsupportedError{where, fmt.Sprintf("a token of %d bytes", len(a.Content)),
				fmt.Sprintf("at most %d", maxAdded)}
		}
		if seen[a.Content] {
			return malformed(where, "%q is listed twice", a.Content)
		}
		seen[a.Content] = true
		id, inModel := t.model.id(a.Content)
		if !inModel {
			id = next
			next++
		}
		if a.ID != id {
			return malformed(where, "%q has id %d, but its place after the vocabulary gives it %d", a.Content, a.ID, id)
		}
		if other, taken := t.model.text(id); taken && other != a.Content {
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
			return malformed(where, "%q is empty once normalized, or the same as another added token", a.Content)
		}
	}
	t.hideSpecial()
	return nil
}

// hideSpecial marks the tokens that Decode skips. As in the library since 0.23, a special token that normalization
// changes is not one of them.
func (t *Tokenizer) hideSpecial() {
	special := map[string]bool{}
	for _, a := range t.added {
		if a.Special {
			special[a.Content] = true
		}
	}
	for id, a := range t.added {
		a.hidden = special[a.pattern]
		t.added[id] = a
	}
}

// A matcher finds added tokens: at the leftmost position the longest, then onwards from its end.
type matcher struct {
	nodes  []trieNode
	roots  [256]int32 // the nodes of the first bytes, 0 for none
	tokens []addedToken
}

// A trieNode is a byte of added tokens, in a list with the others that may follow the same bytes.
type trieNode struct {
	child, sibling int32 // 0 for none: node 0 is not a byte
	token          int32 // that ends here, an index into tokens, or -1
	char           byte
}

func newMatcher() *matcher { return &matcher{nodes: make([]trieNode, 1)} }

// step returns the node of a byte after a node, 0 for none.
func (m *matcher) step(at int32, c byte) int32 {
	if at == 0 {
		return m.roots[c]
	}
	for at = m.nodes[at].child; at != 0 && m.nodes[at].char != c; {
		at = m.nodes[at].sibling
	}
	return at
}

// insert reports false if the pattern is empty, or another token has the same.
func (m *matcher) insert(t addedToken) bool {
	at := int32(0)
	for i := 0; i < len(t.pattern); i++ {
		c := t.pattern[i]
		next := m.step(at, c)
		if next == 0 {
			next = int32(len(m.nodes))
			node := trieNode{token: -1, char: c}
			if at == 0 {
				m.roots[c] = next
			} else {
				node.sibling = m.nodes[at].child
				m.nodes[at].child = next
			}
			m.nodes = append(m.nodes, node)
		}
		at = next
	}
	if at == 0 || m.nodes[at].token >= 0 {
		return false
	}
	m.nodes[at].token = int32(len(m.tokens))
	m.tokens = append(m.tokens, t)
	return true
}

// longest returns the longest token that text starts with.
func (m *matcher) longest(text string) (t *addedToken, ok bool) {
	best := int32(-1)
	for at, i := int32(0), 0; i < len(text); i++ {
		if at = m.step(at, text[i]); at == 0 {
			break
		}
		if token := m.nodes[at].token; token >= 0 {
			best = token
		}
	}
	if best < 0 {
		return nil, false
	}
	return &m.tokens[best], true
}

// split cuts text around the added tokens in it: it emits their ids, and the stretches of text between them, which are
// not empty, with where they begin. It ends where emit reports that nothing more is wanted.
func (m *matcher) split(text string, emit func(part string, at int, id int) bool) {
	done := 0 // text[:done] has been dealt with
	gap := func(end int) bool { return done >= end || emit(text[done:end], done, noToken) }
	for i := 0; i < len(text); {
		if m.roots[text[i]] == 0 {
			i++
			continue
		}
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
		if t.LStrip { // of what a token before has not taken
			start = max(done, len(strings.TrimRightFunc(text[:start], unicode.IsSpace)))
		}
		if t.RStrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
		}
		// Nothing is left of a token of white space that one before has taken.
		if !gap(start) || start < end && !emit("", 0, t.ID) {
			return
		}
		done = end
	}
	gap(len(text))
}

// wordTable is what \w means for added tokens that are single words.
var wordTable = sync.OnceValue(func() *chars.Table { return chars.PlainWord().Table() })

func endsInWord(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s != "" && wordTable().Has(r)
}

func startsWithWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && wordTable().Has(r)
}
