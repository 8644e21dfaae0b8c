package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/tokenizer"
)

// loadTokenizer reads tokenizer.json of a model or build directory.
func loadTokenizer(dir string) (*tokenizer.Tokenizer, error) {
	path := filepath.Join(dir, "tokenizer.json")
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, diag.Errorf(codeTokenizer, dir, "there is no tokenizer.json, which text needs; --prompt-ids works without")
	case err != nil:
		return nil, diag.Errorf(codeInput, path, "cannot read: %v", cause(err))
	}
	t, err := tokenizer.Load(text)
	if err != nil {
		// The package's errors begin with the base name of the file, which is the position here.
		return nil, diag.Errorf(codeTokenizer, path, "%s", strings.TrimPrefix(err.Error(), "tokenizer.json: ")).
			With("--prompt-ids works without a tokenizer")
	}
	return t, nil
}

// stopIDs returns the ids after which a text ends.
func stopIDs(dir string) ([]int, error) {
	ids, err := host.StopIDs(dir)
	if err != nil {
		return nil, diag.Errorf(codeEOS, dir, "%v", err)
	}
	return ids, nil
}

// checkIDs refuses ids outside the vocabulary, and texts that are empty or need more positions than the program has:
// one for each id, and one for each of more tokens but the last, which is not decoded.
func checkIDs(flag string, ids []int, more, vocab, maxSeq int) error {
	switch need := len(ids) + max(0, more-1); {
	case len(ids) == 0:
		return diag.Errorf(codePrompt, flag, "there are no tokens; want at least one")
	case need > maxSeq:
		return diag.Errorf(codePrompt, flag, "%d tokens and %d more after them take %d positions, and the program is compiled for %d; "+
			"want fewer, or compile with --max-seq %[3]d", len(ids), more, need, maxSeq)
	}
	for i, id := range ids {
		if id < 0 || id >= vocab {
			return diag.Errorf(codePrompt, flag, "token %d is %d; want ids from 0 to %d", i, id, vocab-1)
		}
	}
	return nil
}
