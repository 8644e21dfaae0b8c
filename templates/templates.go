// Package templates embeds the text/template sources of the generated CUDA files. It holds no logic and imports
// nothing of amkc; package codegen executes them.
package templates

import "embed"

//go:embed *.tmpl
var FS embed.FS
