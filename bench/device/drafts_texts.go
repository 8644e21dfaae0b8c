package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"amkc/app/library"
	"amkc/runtime/infile"
)

// A draftText is a prompt and what is written after it, as ids.
type draftText struct {
	name, kind     string
	prompt, answer []int
}

// readDraftTexts reads the texts of a folder: each is a folder of its own, KIND-NAME, with prompt.txt and answer.txt.
// Their ids are those of the tokenizer of another folder, which may be one of a checkpoint.
func readDraftTexts(dir, tokenizer string) (all []draftText, err error) {
	tok, err := library.ReadTokenizer(tokenizer)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		kind, _, named := strings.Cut(e.Name(), "-")
		if !e.IsDir() || !named {
			return nil, fmt.Errorf("%s: want folders alone, each KIND-NAME with a text",
				filepath.Join(dir, e.Name()))
		}
		t := draftText{name: e.Name(), kind: kind}
		for file, ids := range map[string]*[]int{"prompt.txt": &t.prompt, "answer.txt": &t.answer} {
			path := filepath.Join(dir, e.Name(), file)
			data, err := infile.Read(path, infile.Prompt)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			if *ids, err = tok.Encode(string(data), false); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
		if len(t.prompt) == 0 || len(t.answer) < 2 {
			return nil, fmt.Errorf("%s: a prompt of %d tokens and an answer of %d; want 1 and 2 at least",
				filepath.Join(dir, e.Name()), len(t.prompt), len(t.answer))
		}
		all = append(all, t)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: there are no texts", dir)
	}
	return all, nil
}

// fit cuts a text to a number of positions: its prompt in front, and its answer at the end only where a prompt of one
// token is not enough.
func (t *draftText) fit(positions int) (cut int) {
	t.answer = t.answer[:min(len(t.answer), positions)]
	cut = max(0, len(t.prompt)+len(t.answer)-1-positions)
	t.prompt = t.prompt[cut:]
	return cut
}
