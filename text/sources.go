// Package text holds what is between a text and the tokens of a model: chat templates, tokenizers, sampling, grammars,
// replies and drafts. Its packages know nothing of the compiler, of a GPU or of a server: of amkc they import each
// other and runtime/infile alone. The package exposes their sources, which every launcher carries, and has no other
// code.
package text

import "embed"

// Files are the sources of the packages below.
//
//go:embed chat/*.go jinja/*.go draft/*.go grammar/*.go reply/*.go sampling/*.go stopping/*.go tokenizer/*.go
//go:embed tokenizer/chars/*.go tokenizer/regex/*.go
var Files embed.FS
