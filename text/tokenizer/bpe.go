package tokenizer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"amkc/runtime/infile"
)

// bpe is the vocabulary and the ranked merges. Where the pre-tokenizer writes bytes as characters, words come as the
// bytes themselves, and ids and texts have the bytes that tokens stand for.
type bpe struct {
	bytes        bool
	ids          map[string]int32
	others       map[string]int32 // tokens that stand for no bytes, which no word has in it
	texts        []string         // by id
	kinds        []textKind
	merges       pairs
	unk          int32 // noToken if unknown characters are dropped
	fuseUnk      bool
	byteFallback bool
	ignoreMerges bool
	byteTokens   [256]int32 // the <0xNN> tokens, noToken where absent
	initial      [256]int32 // the tokens of one byte, which are those of ASCII characters if words are text
	longest      [256]int   // bytes of a word that a token which has the byte may stand for; 0: any number
	before       map[rune]bool
}

// A textKind says what stands in texts.
type textKind uint8

const (
	absent  textKind = iota // no token has the id
	literal                 // the token
	ofBytes                 // the bytes that the token stands for
)

// modelJSON is the model, its large lists as text.
type modelJSON struct {
	Type         string   `json:"type"`
	Dropout      *float64 `json:"dropout"`
	Unk          *string  `json:"unk_token"`
	Prefix       string   `json:"continuing_subword_prefix"`
	Suffix       string   `json:"end_of_word_suffix"`
	FuseUnk      bool     `json:"fuse_unk"`
	ByteFallback bool     `json:"byte_fallback"`
	IgnoreMerges bool     `json:"ignore_merges"`

	Vocab  json.RawMessage `json:"vocab"`
	Merges json.RawMessage `json:"merges"`
}

// loadModel reads the model. With toBytes its tokens stand for bytes.
func loadModel(text json.RawMessage, toBytes bool) (*bpe, error) {
	const where = "model"
	var f modelJSON
	if err := unmarshal(text, where, &f); err != nil {
		return nil, err
	}
	untyped := f.Type == "" && f.Merges != nil // GPT-2's own file has no type; only BPE has merges
	switch {
	case f.Type != "BPE" && !untyped:
		return nil, &UnsupportedError{where + ".type", fmt.Sprintf("%q", f.Type), `"BPE"`}
	case f.Dropout != nil && *f.Dropout != 0:
		return nil, &UnsupportedError{where + ".dropout", fmt.Sprint(*f.Dropout), "null or 0"}
	case f.Prefix != "":
		return nil, &UnsupportedError{where + ".continuing_subword_prefix", fmt.Sprintf("%q", f.Prefix),
			"null or empty"}
	case f.Suffix != "":
		return nil, &UnsupportedError{where + ".end_of_word_suffix", fmt.Sprintf("%q", f.Suffix), "null or empty"}
	}
	m := &bpe{bytes: toBytes, unk: noToken, fuseUnk: f.FuseUnk, byteFallback: f.ByteFallback,
		ignoreMerges: f.IgnoreMerges}
	if err := m.loadVocab(f.Vocab); err != nil {
		return nil, err
	}
	if f.Unk != nil {
		id, ok := m.id(*f.Unk)
		if !ok {
			return nil, malformed(where+".unk_token", "%q is not in the vocabulary", *f.Unk)
		}
		m.unk = int32(id)
	}
	return m, m.loadMerges(f.Merges)
}

// id returns the id of a token by its text.
func (m *bpe) id(token string) (int, bool) {
	if !m.bytes {
		id, ok := m.ids[token]
		return int(id), ok
	}
	if s, ok := appendStandIns(nil, token); ok {
		id, ok := m.ids[string(s)]
		return int(id), ok
	}
	id, ok := m.others[token]
	return int(id), ok
}

// text returns the token that has an id.
func (m *bpe) text(id int) (string, bool) {
	if id < 0 || id >= len(m.kinds) || m.kinds[id] == absent {
		return "", false
	}
	if m.kinds[id] == ofBytes {
		return byteLevelString(m.texts[id]), true
	}
	return m.texts[id], true
}

// size is the number of tokens.
func (m *bpe) size() int { return len(m.ids) + len(m.others) }

// maxNumber is the most digits of an id.
const maxNumber = 18

// maxID bounds the ids of a vocabulary of n tokens, for which there are tables.
func maxID(n int) int { return 4096 + 16*n }

func (m *bpe) loadVocab(text json.RawMessage) error {
	const where = "model.vocab"
	if text == nil {
		return malformed(where, "is missing")
	}
	type entry struct {
		end  int // of its text in all
		id   int32
		kind textKind
	}
	var entries []entry
	var failed error
	largest := 0
	all := make([]byte, 0, len(text)/2)
	r := newReader(string(text))
	ok := infile.HalfCharacter(text) < 0 && r.list('{', func() bool {
		key, _ := r.str()
		kind := literal
		if m.bytes {
			var ok bool
			if all, ok = appendStandIns(all, key); ok {
				kind = ofBytes
			}
		}
		if kind == literal {
			all = append(all, key...)
		}
		t, _ := r.Token()
		number, ok := t.(json.Number)
		id, err := strconv.Atoi(number.String())
		ok = ok && err == nil && len(number) <= maxNumber
		if ok && id < 0 && failed == nil {
			failed = malformed(where, "%q has id %d", key, id)
		}
		largest = max(largest, id)
		entries = append(entries, entry{len(all), int32(id), kind})
		return ok
	})
	switch {
	case !ok:
		return problem(text, where, &map[string]int{})
	case failed != nil:
		return failed
	case largest >= maxID(len(entries)):
		return &UnsupportedError{where, fmt.Sprintf("id %d among %d tokens", largest, len(entries)),
			fmt.Sprintf("ids below %d", maxID(len(entries)))}
	}
	m.ids, m.others = make(map[string]int32, len(entries)), map[string]int32{}
	m.texts, m.kinds = make([]string, largest+1), make([]textKind, largest+1)
	rest, done := string(all), 0
	for _, e := range entries {
		token := rest[:e.end-done]
		rest, done = rest[len(token):], e.end
		table := m.ids
		if m.bytes && e.kind == literal {
			table = m.others
		}
		if old, twice := table[token]; twice { // the last one counts
			m.kinds[old] = absent
		}
		if m.kinds[e.id] != absent {
			other, _ := m.text(int(e.id))
			m.texts[e.id], m.kinds[e.id] = token, e.kind
			this, _ := m.text(int(e.id))
			return malformed(where, "%q and %q have the same id %d", min(this, other), max(this, other), e.id)
		}
		table[token] = e.id
		m.texts[e.id], m.kinds[e.id] = token, e.kind
	}
	m.index()
	return nil
}

// index fills the tables of single bytes and of what precedes a mark.
func (m *bpe) index() {
	for b := range m.initial {
		m.initial[b], m.byteTokens[b] = noToken, noToken
		if id, ok := m.ids[string([]byte{byte(b)})]; ok {
			m.initial[b] = id
		}
		if id, ok := m.ids[fmt.Sprintf("<0x%02X>", b)]; ok {
			m.byteTokens[b] = id
		}
	}
	m.measure()
	if _, ok := m.ids[mark]; !ok || m.bytes {
		return
	}
	m.before = map[rune]bool{}
	for token := range m.ids {
		for at := 0; ; {
			i := strings.Index(token[at:], mark)
			if i < 0 {
				break
			}
			if r, size := utf8.DecodeLastRuneInString(token[:at+i]); size > 0 {
				m.before[r] = true
			}
			at += i + len(mark)
		}
	}
}

// mark is SentencePiece's visible space. A word is cut in front of one, before any merge, where no token has a mark
// after the same character: no merge joins the two. Tokens of unknown characters and bytes have other texts than the
// word, so that the character has to be a token.
const mark = "▁"

// cut returns the length of the first part of word.
func (m *bpe) cut(word string) int {
	if m.before == nil {
		return len(word)
	}
	for at := 1; at < len(word); {
		i := strings.Index(word[at:], mark)
		if i < 0 {
			break
		}
		at += i
		r, size := utf8.DecodeLastRuneInString(word[:at])
		if _, known := m.ids[word[at-size:at]]; known && !m.before[r] {
			return at
		}
		at += len(mark)
	}
	return len(word)
}

// measure fills the table of the longest tokens, from which [bpe.least] tells how many a word has at least without
// encoding it. A model has it whose tokens stand for their own text: each byte of a word, or each character, is a token
// or is spelt by byte tokens, and no token is merged from byte tokens. Where characters are dropped or fused, any number
// of them may be no token, or one.
func (m *bpe) measure() {
	m.longest = [256]int{}
	if m.bytes {
		for _, id := range m.initial {
			if id == noToken {
				return
			}
		}
	} else if !m.spells() {
		return
	}
	for b := range m.longest {
		m.longest[b] = 1
	}
	for token := range m.ids {
		for i := range len(token) {
			m.longest[token[i]] = max(m.longest[token[i]], len(token))
		}
	}
}

// spells reports whether byte tokens spell each character that is not a token, and no token has the text of one in it.
func (m *bpe) spells() bool {
	if !m.byteFallback {
		return false
	}
	for _, id := range m.byteTokens {
		if id == noToken {
			return false
		}
	}
	for token := range m.ids {
		if _, is := byteToken(token); is {
			continue
		}
		for rest := token; ; {
			i := strings.Index(rest, "<0x")
			if i < 0 {
				break
			}
			if rest = rest[i:]; len(rest) >= 6 {
				if _, is := byteToken(rest[:6]); is {
					return false
				}
			}
			rest = rest[1:]
		}
	}
	return true
}

// least is a number of tokens that a word has at least: a token of n bytes has each of them in it, and each of these
// counts for one n-th of a token or less.
func (m *bpe) least(word string) int {
	if m.longest[0] == 0 {
		return 0
	}
	var counts [256]int
	for i := range len(word) {
		counts[word[i]]++
	}
	n := 0
	for b, count := range counts {
		n += count / m.longest[b]
	}
	return n
}
