// Package docs has the documentation in the executable, for agents that have no checkout of the project.
//
// It holds texts and no code.
package docs

import "embed"

// Pages are the pages of this directory, by name: search.md.
//
//go:embed *.md
var Pages embed.FS
