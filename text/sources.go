// Package text has everything between a text and the tokens of a model: chat templates, tokenizers, sampling, grammars,
// replies and drafts. Its packages do not depend on the compiler, a GPU or a server: of amkc they import only each
// other and runtime/infile. The package exposes their sources, which every launcher carries, and has no other code.
package text

import "embed"

// Files are the sources of the packages below.
//
//go:embed chat/*.go jinja/*.go draft/*.go grammar/*.go reply/*.go sampling/*.go stopping/*.go tokenizer/*.go
//go:embed tokenizer/chars/*.go tokenizer/regex/*.go
var Files embed.FS
