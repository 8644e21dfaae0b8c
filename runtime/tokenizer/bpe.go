package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// bpe is the vocabulary and the ranked merges.
type bpe struct {
	ids          map[string]int
	texts        map[int]string
	merges       map[[2]int]merge
	unk          int // noToken if unknown characters are dropped
	fuseUnk      bool
	byteFallback bool
	ignoreMerges bool
	byteTokens   [256]int // the <0xNN> tokens, noToken where absent
}

type merge struct {
	rank int
	id   int // of the merged token
}

func loadModel(raw json.RawMessage) (*bpe, error) {
	const where = "model"
	var f struct {
		Type         string          `json:"type"`
		Dropout      *float64        `json:"dropout"`
		Unk          *string         `json:"unk_token"`
		Prefix       string          `json:"continuing_subword_prefix"`
		Suffix       string          `json:"end_of_word_suffix"`
		FuseUnk      bool            `json:"fuse_unk"`
		ByteFallback bool            `json:"byte_fallback"`
		IgnoreMerges bool            `json:"ignore_merges"`
		Vocab        json.RawMessage `json:"vocab"`
		Merges       json.RawMessage `json:"merges"`
	}
	if err := unmarshal(raw, where, &f); err != nil {
		return nil, err
	}
	untyped := f.Type == "" && f.Merges != nil // GPT-2's own file has no type; only BPE has merges
	if f.Type != "BPE" && !untyped {
		return nil, &UnsupportedError{where + ".type", fmt.Sprintf("%q", f.Type), `"BPE"`}
	}
	switch {
	case f.Dropout != nil && *f.Dropout != 0:
		return nil, &UnsupportedError{where + ".dropout", fmt.Sprint(*f.Dropout), "null or 0"}
	case f.Prefix != "":
		return nil, &UnsupportedError{where + ".continuing_subword_prefix", fmt.Sprintf("%q", f.Prefix),
			"null or empty"}
	case f.Suffix != "":
		return nil, &UnsupportedError{where + ".end_of_word_suffix", fmt.Sprintf("%q", f.Suffix), "null or empty"}
	}
	m := &bpe{unk: noToken, fuseUnk: f.FuseUnk, byteFallback: f.ByteFallback, ignoreMerges: f.IgnoreMerges}
	if err := m.loadVocab(f.Vocab); err != nil {
		return nil, err
	}
	if f.Unk != nil {
		id, ok := m.ids[*f.Unk]
		if !ok {
			return nil, malformed(where+".unk_token", "%q is not in the vocabulary", *f.Unk)
		}
		m.unk = id
	}
	return m, m.loadMerges(f.Merges)
}

func (m *bpe) loadVocab(raw json.RawMessage) error {
	const where = "model.vocab"
	if err := unmarshal(raw, where, &m.ids); err != nil {
		return err
	}
	m.texts = make(map[int]string, len(m.ids))
	for text, id := range m.ids {
		if id < 0 || id > math.MaxInt32 {
			return malformed(where, "%q has id %d", text, id)
		}
		if other, taken := m.texts[id]; taken {
			return malformed(where, "%q and %q have the same id %d", min(text, other), max(text, other), id)
		}
		m.texts[id] = text
	}
	for b := range m.byteTokens {
		m.byteTokens[b] = noToken
		if id, ok := m.ids[fmt.Sprintf("<0x%02X>", b)]; ok {
			m.byteTokens[b] = id
		}
	}
	return nil
}

// loadMerges reads pairs, written as ["a","b"] or, before tokenizers 0.20, as "a b".
func (m *bpe) loadMerges(raw json.RawMessage) error {
	const where = "model.merges"
	var pairs [][]string
	const space = " \t\r\n"
	inside := bytes.TrimLeft(bytes.TrimPrefix(bytes.TrimLeft(raw, space), []byte("[")), space)
	if bytes.HasPrefix(inside, []byte(`"`)) {
		var lines []string
		if err := unmarshal(raw, where, &lines); err != nil {
			return err
		}
		pairs = make([][]string, 0, len(lines))
		for _, line := range lines {
			if !strings.HasPrefix(line, "#version") {
				pairs = append(pairs, strings.SplitN(line, " ", 3))
			}
		}
	} else if err := unmarshal(raw, where, &pairs); err != nil {
		return err
	}
	m.merges = make(map[[2]int]merge, len(pairs))
	for rank, p := range pairs {
		at := fmt.Sprintf("%s[%d]", where, rank)
		if len(p) != 2 {
			return malformed(at, "%q is not a pair of tokens", strings.Join(p, " "))
		}
		left, okL := m.ids[p[0]]
		right, okR := m.ids[p[1]]
		whole, okW := m.ids[p[0]+p[1]]
		if !okL || !okR || !okW {
			return malformed(at, "%q, %q or what they merge into is not in the vocabulary", p[0], p[1])
		}
		m.merges[[2]int{left, right}] = merge{rank, whole}
	}
	return nil
}
