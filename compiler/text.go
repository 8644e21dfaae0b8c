package compiler

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"amkc/importers/checkpoint"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/text/chat"
	"amkc/text/tokenizer"
)

// LoadTokenizer reads tokenizer.json of a model or build directory as a launcher does. The error is a diagnostic.
func LoadTokenizer(dir string) (*tokenizer.Tokenizer, error) {
	path := filepath.Join(dir, host.TokenizerFile)
	text, err := infile.Read(path, infile.Tokenizer)
	var why *diag.Diagnostic
	switch {
	case errors.As(err, &why):
		return nil, why // of a GGUF file
	case errors.Is(err, fs.ErrNotExist):
		return nil, noTokenizer(dir)
	case err != nil:
		return nil, diag.Errorf(codeTokenizer, path, "cannot be read: %v", infile.Reason(err))
	}
	t, err := tokenizer.Load(text)
	if err != nil {
		// The package's errors begin with the base name of the file, which is the position here.
		return nil, diag.Errorf(codeTokenizer, path, "%s", strings.TrimPrefix(err.Error(), host.TokenizerFile+": "))
	}
	return t, nil
}

// otherTokenizers are forms in which models come without a tokenizer.json.
var otherTokenizers = []struct{ file, what string }{
	{"tokenizer.model", "a SentencePiece model"},
	{"vocab.json", "the vocabulary of a slow tokenizer"},
	{"tekken.json", "a Tekken tokenizer"},
	{"tiktoken.model", "a tiktoken vocabulary"},
}

func noTokenizer(dir string) *diag.Diagnostic {
	for _, other := range otherTokenizers {
		if isThere(filepath.Join(dir, other.file)) {
			return diag.Errorf(codeTokenizer, dir,
				"there is no tokenizer.json, and %s is %s, which is not read; save it as tokenizer.json: "+
					"AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)", other.file, other.what)
		}
	}
	return diag.Errorf(codeTokenizer, dir, "there is no tokenizer.json, which text needs")
}

// checkText returns warnings of what a build of the model will not do with text. A model that is a config alone, with
// random weights, has no text.
func checkText(o *Options, vocab int) diag.List {
	if o.RandomSeed != nil {
		return nil
	}
	var warnings diag.List
	t, err := LoadTokenizer(o.Model)
	if err != nil {
		d := asWarning(err)
		d.Msg += "; the build will decode token ids, and no text"
		warnings.Add(d)
	} else if n := t.CountFrom(vocab); n > 0 {
		warnings.Add(diag.Warningf(codeVocabulary, filepath.Join(o.Model, host.TokenizerFile),
			"has %d of its %d tokens at ids from %d on, and the model's "+
				"vocabulary ends there (vocab_size); a prompt with one of them is refused", n, t.VocabSize(), vocab))
	}
	warnings.Add(checkStops(o.Model, vocab))
	warnings.Add(checkSampling(o.Model))
	warnings = append(warnings, checkChat(o.Model)...)
	return warnings
}

// StopIDs returns the ids after which a text of a model or a build ends. The error is a diagnostic.
func StopIDs(dir string) ([]int, error) {
	ids, err := host.StopIDs(dir)
	var bad *host.BuildError
	switch {
	case err == nil:
		return ids, nil
	case errors.As(err, &bad):
		return nil, diag.Errorf(codeEOS, bad.Path, "%s", strings.TrimPrefix(bad.Error(), bad.Path+": "))
	}
	return nil, diag.Errorf(codeEOS, dir, "%v", infile.Reason(err))
}

// checkStops warns where texts will not end as the model's files say.
func checkStops(dir string, vocab int) *diag.Diagnostic {
	ids, err := StopIDs(dir)
	if err != nil {
		return asWarning(err)
	}
	if text, _, ok := host.TokenizerStop(dir); text != "" && !ok {
		return diag.Warningf(codeEOS, filepath.Join(dir, chat.ConfigFile), "eos_token is %s, which is not one of the "+
			"tokenizer's tokens, so no text ends with it", checkpoint.Spell(text))
	}
	if i := slices.IndexFunc(ids, func(id int) bool { return id >= vocab }); i >= 0 {
		return diag.Warningf(codeEOS, dir, "eos_token_id %d is not in the model's vocabulary of %d tokens, so no "+
			"text ends with it", ids[i], vocab)
	}
	return nil
}

// asWarning turns an error of this package, a diagnostic, into a warning.
func asWarning(err error) *diag.Diagnostic {
	var d *diag.Diagnostic
	if !errors.As(err, &d) {
		d = diag.Errorf(codeTokenizer, "", "%v", infile.Reason(err))
	}
	d.Severity = diag.Warning
	return d
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
