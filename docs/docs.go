// Package docs has the documentation in the executable, for agents that have no checkout of the project.
//
// It holds texts and no code.
package docs

import "embed"

// Pages are the pages of this directory, by name (search.md), and what they link to that is a text for readers:
// results/soundness.md, results/campaigns/measured.jsonl. Images, archives and raw measurements are left out.
//
//go:embed *.md config.schema.json results/*.md results/agent/*.md results/agent/*.txt
//go:embed results/campaigns/*.html results/campaigns/*.jsonl
var Pages embed.FS
