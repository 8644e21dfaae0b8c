// Package grammar constrains the output of a model to JSON: any object, or values of a JSON schema. A [Vocabulary] has
// the tokens of a model as bytes, a [Grammar] is a set of texts, and a [State] is the beginning of a text: it has the
// tokens that may follow. docs/schemas.md lists the supported schemas.
//
// A grammar is a pushdown automaton over bytes, so that a token may contain any part of a text: several brackets, the
// end of a string and what follows, a part of a character. The permitted tokens are found by one walk through a trie of
// all tokens, which skips branches that no text continues with. Most results of a walk depend on the place in the
// grammar and not on the stack; these are cached.
//
// The package is copied into every launcher. It imports the standard library and runtime/infile, and must not import
// any other package of amkc.
package grammar

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"sync"
	"unicode/utf8"
)

// A Vocabulary is the tokens of a model as bytes, in a trie: its nodes are in the order of a walk that visits each
// before what is below it. It is safe for concurrent use.
type Vocabulary struct {
	size  int
	texts [][]byte // by id
	nodes []node
	ids   []int32 // tokens, in the order of their texts

	longest int32 // of the tokens, in bytes

	mu     sync.Mutex
	common map[point]*local // of places that all grammars have
}

// A node of the trie stands for the bytes on the way to it.
type node struct {
	after       int32 // the next node that is not below this one
	first, last int32 // tokens with these bytes: ids[first:last]
	depth       int16 // bytes on the way, less one
	letter      byte  // the last of them
	quote       bool  // a token with these bytes has a quote
	most        int16 // no token with these bytes adds more characters to a string
}

// maxToken is the longest token that may come, in bytes. Runs of spaces have a hundred.
const maxToken = 1 << 10

// ErrVocabulary is the error for tokens that cannot spell every text in JSON.
var ErrVocabulary = errors.New("the tokenizer has no tokens for single characters, or for single bytes of those that " +
	"it has parts of, so that some JSON could not be written")

// NewVocabulary returns a vocabulary of the tokens from 0 to size-1. text returns the bytes of a token, or none for a
// token that must not occur, such as a special one.
func NewVocabulary(size int, text func(id int) []byte) (*Vocabulary, error) {
	v := &Vocabulary{size: size, texts: make([][]byte, size), common: map[point]*local{}}
	var single [256]bool
	parts := false
	for id := range v.texts {
		t := text(id)
		if len(t) == 0 || len(t) > maxToken {
			continue
		}
		v.texts[id] = bytes.Clone(t)
		v.ids = append(v.ids, int32(id))
		v.longest = max(v.longest, int32(len(t)))
		if len(t) == 1 {
			single[t[0]] = true
		}
		parts = parts || !utf8.Valid(t)
	}
	for b := range single {
		isASCII, isTail := b >= ' ' && b <= '~', b >= 0x80 && b <= 0xBF
		if !single[b] && (isASCII || parts && isTail) {
			return nil, ErrVocabulary
		}
	}
	slices.SortFunc(v.ids, func(a, b int32) int {
		return cmp.Or(bytes.Compare(v.texts[a], v.texts[b]), cmp.Compare(a, b))
	})
	v.plant()
	g := Object(v) // what follows in strings takes the longest to find
	g.local(point{at: stringBody})
	g.local(point{at: keyBody[0]})
	return v, nil
}

// A Tokenizer maps tokens to their bytes.
type Tokenizer interface {
	IsSpecial(id int) bool // and left out where a text is decoded
	Bytes(id int) []byte   // nil where there is no such token
}

// FromTokenizer returns a vocabulary of a model's tokens from 0 to size-1, without special tokens and those that end a
// text.
func FromTokenizer(size int, t Tokenizer, ends []int) (*Vocabulary, error) {
	return NewVocabulary(size, func(id int) []byte {
		if t.IsSpecial(id) || slices.Contains(ends, id) {
			return nil
		}
		return t.Bytes(id)
	})
}

// plant makes the trie of the sorted tokens.
func (v *Vocabulary) plant() {
	var path []int32 // nodes above the next
	var before []byte
	for i, id := range v.ids {
		t, same := v.texts[id], 0
		for same < min(len(t), len(before)) && t[same] == before[same] {
			same++
		}
		v.close(path[same:])
		path = path[:same]
		for d := same; d < len(t); d++ {
			path = append(path, int32(len(v.nodes)))
			v.nodes = append(v.nodes, node{depth: int16(d), letter: t[d]})
		}
		n := &v.nodes[path[len(path)-1]]
		if n.last == 0 {
			n.first = int32(i)
		}
		n.last = int32(i + 1)
		before = t
		count, quote := int16(added(t)), bytes.IndexByte(t, '"') >= 0
		for _, at := range path {
			n := &v.nodes[at]
			n.most, n.quote = max(n.most, count), n.quote || quote
		}
	}
	v.close(path)
}

// added is how many characters a text adds to a string at most, wherever that is: those that begin in it, and one that
// it begins within.
func added(text []byte) (n int) {
	for i, b := range text {
		if i == 0 || utf8.RuneStart(b) {
			n++
		}
	}
	return n
}

// close ends what lies below nodes.
func (v *Vocabulary) close(path []int32) {
	for _, n := range path {
		v.nodes[n].after = int32(len(v.nodes))
	}
}

// at are the tokens that end at a node.
func (v *Vocabulary) at(n int32) []int32 { return v.ids[v.nodes[n].first:v.nodes[n].last] }

// below are the tokens that end at a node or below it.
func (v *Vocabulary) below(n int32) []int32 {
	first, last := n, v.nodes[n].after
	for v.nodes[first].last == 0 { // the first token below is on the way down
		first++
	}
	end := len(v.ids)
	for last < int32(len(v.nodes)) && v.nodes[last].last == 0 {
		last++
	}
	if last < int32(len(v.nodes)) {
		end = int(v.nodes[last].first)
	}
	return v.ids[v.nodes[first].first:end]
}

// A Mask is a set of permitted tokens: bit i%64 of word i/64 is that of token i.
type Mask []uint64

func (v *Vocabulary) newMask() Mask { return make(Mask, (v.size+63)/64) }

func (m Mask) allow(ids []int32) {
	for _, id := range ids {
		m[id/64] |= 1 << (id % 64)
	}
}

// Allows reports whether a token may follow.
func (m Mask) Allows(id int) bool { return m[id/64]>>(id%64)&1 != 0 }
