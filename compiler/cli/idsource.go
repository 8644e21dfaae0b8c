package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/compiler"
	"amkc/compiler/quality"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/text/tokenizer"
)

// An idSource is where a text comes from: one of three flags.
type idSource struct {
	text, file string
	ids        []int
}

func (s *idSource) define(f *pflag.FlagSet) {
	f.Var(front.NewWord(&s.text, ""), "text", "measure on the text in `FILE`; - is standard input")
	f.Var(newIDs(&s.ids), "ids", "measure on these token `IDS`, 1,2,3; needs no tokenizer")
	f.Var(front.NewWord(&s.file, ""), "ids-file",
		"measure on the token ids in `FILE`, a NumPy array of integers; needs no "+
			"tokenizer")
}

// check demands one of the flags.
func (s *idSource) check(c *call) error {
	given := 0
	for _, flag := range []string{"text", "ids", "ids-file"} {
		if c.flags.Changed(flag) {
			given++
		}
	}
	if given != 1 {
		return c.usage("want one of --text, --ids and --ids-file")
	}
	return nil
}

// flag is the one that was given.
func (s *idSource) flag() string {
	switch {
	case s.text != "":
		return "--text"
	case s.file != "":
		return "--ids-file"
	}
	return "--ids"
}

// read returns the ids. Of a text they are those that the tokenizer of a model or build makes, and that of the other
// has to make the same, if it comes with one.
func (s *idSource) read(c *call, dir, against string) (quality.Text, error) {
	switch s.flag() {
	case "--ids":
		return quality.Text{IDs: s.ids}, nil
	case "--ids-file":
		raw, err := readFile(s.file, infile.TokenIDs)
		if err != nil {
			return quality.Text{}, err
		}
		ids, err := readIDs(s.file, raw)
		return quality.Text{IDs: ids}, err
	}
	text, err := s.readText(c)
	if err != nil {
		return quality.Text{}, err
	}
	tok, err := compiler.LoadTokenizer(dir)
	if err != nil {
		return quality.Text{}, fmt.Errorf("--ids and --ids-file work without a tokenizer: %w", err)
	}
	ids, err := encodeText(tok, "--text", text)
	if err != nil {
		return quality.Text{}, err
	}
	return ids, sameTokenizer(against, dir, text, ids)
}

// readIDs reads token ids out of a NumPy file.
func readIDs(path string, raw []byte) ([]int, error) {
	ids, err := parseNPY(raw)
	if err != nil {
		return nil, diag.Errorf(codePrompt, path, "no array of token ids: %v", infile.Reason(err))
	}
	return ids, nil
}

func (s *idSource) readText(c *call) (string, error) {
	if s.text != "-" {
		raw, err := readFile(s.text, infile.Text)
		return string(raw), err
	}
	raw, err := infile.ReadStream(c.stdin, "standard input", infile.Text)
	if err != nil {
		return "", diag.Errorf(codeInput, "--text", "cannot read standard input: %v", infile.Reason(err))
	}
	return string(raw), nil
}

// encodeText keeps what the tokenizer puts in front of the text apart, and leaves out what it puts after it. flag is
// where the text is from.
func encodeText(tok *tokenizer.Tokenizer, flag, text string) (quality.Text, error) {
	whole, err := tok.Encode(text, true)
	if err != nil {
		return quality.Text{}, diag.Errorf(codePrompt, flag, "%s", strings.TrimPrefix(err.Error(), "tokenizer: "))
	}
	ids, err := tok.Encode(text, false)
	lead := 0
	for lead+len(ids) < len(whole) && !slices.Equal(whole[lead:lead+len(ids)], ids) {
		lead++
	}
	return quality.Text{Lead: whole[:lead], IDs: ids}, err
}

// sameTokenizer refuses a side whose tokenizer makes other ids of the text. One that comes without a tokenizer takes
// those of dir.
func sameTokenizer(against, dir, text string, want quality.Text) error {
	path := filepath.Join(against, host.TokenizerFile)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	tok, err := compiler.LoadTokenizer(against)
	if err != nil {
		return err
	}
	got, err := encodeText(tok, "--text", text)
	if err != nil {
		return err
	}
	a, b := slices.Concat(want.Lead, want.IDs), slices.Concat(got.Lead, got.IDs)
	if slices.Equal(a, b) {
		return nil
	}
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	return diag.Errorf(codeTokenizers, path, "makes other ids of the text than that of %s, from token %d on, of %d "+
		"and %d; want the same ids", dir, at, len(b), len(a))
}

// checkIDs refuses ids outside the vocabulary, and texts that are empty or need more positions than the program has:
// one for each id, and one for each of more tokens but the last, which is not decoded.
func checkIDs(flag string, ids []int, more, vocab, maxSeq int) error {
	switch need := len(ids) + max(0, more-1); {
	case len(ids) == 0:
		return diag.Errorf(codePrompt, flag, "there are no tokens; want at least one")
	case need > maxSeq:
		return diag.Errorf(codePrompt, flag,
			"%d tokens and %d more after them take %d positions, and the program is compiled for %d; "+
				"want fewer, or compile with --max-seq %[3]d", len(ids), more, need, maxSeq)
	}
	for i, id := range ids {
		if id < 0 || id >= vocab {
			return diag.Errorf(codePrompt, flag, "token %d is %d; want ids from 0 to %d", i, id, vocab-1)
		}
	}
	return nil
}
