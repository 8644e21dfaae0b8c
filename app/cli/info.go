package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/printable"
)

// info prints the manifest: as JSON all of it, as text the facts, and which files of the build are there.
func (c *command) info(_ context.Context, args []string) error {
	if err := c.parse(c.flags("info"), args); err != nil {
		return err
	}
	facts, err := c.facts()
	if err != nil {
		return err
	}
	if !c.json {
		from, err := host.ReadProvenance(c.dir)
		if err != nil {
			return err
		}
		return c.print(nil, c.infoText(facts, from))
	}
	path := filepath.Join(c.dir, host.ManifestFile)
	manifest, err := infile.Read(path, infile.Manifest)
	if err != nil {
		return &host.BuildError{Path: path, What: "it cannot be read", Err: err}
	}
	return c.print(json.RawMessage(manifest), "")
}

func (c *command) infoText(f *host.Facts, from *host.Provenance) string {
	m := f.Model
	var b strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s %s\n", label, printable.Line(fmt.Sprintf(format, args...)))
	}
	line("model", "%s (%s, %s)", m.Name, m.Architecture, m.Types())
	line("shape", "%d layers, hidden %d, intermediate %d, %d heads of %d, %d kv heads, vocab %d", m.Layers, m.Hidden,
		m.Intermediate,
		m.Heads, m.HeadDim, m.KVHeads, m.Vocab)
	of, order := map[string]int{}, []string(nil)
	for _, l := range f.Layers {
		heads := fmt.Sprintf("%d heads of %d, %d kv heads", l.Heads, l.HeadDim, l.KVHeads)
		if of[heads]++; of[heads] == 1 {
			order = append(order, heads)
		}
	}
	for _, heads := range order {
		line("layers", "%d of %d with %s", of[heads], m.Layers, heads)
	}
	line("positions", "0 to %d", m.MaxSeq-1)
	line("target", "%s (%s, %d SMs)", f.Target.Name, f.Target.Arch, f.Target.SMs)
	for _, v := range f.Variants {
		line("variant", "%s, positions %d to %d", v.Name, v.Lo, v.Hi)
	}
	if f.Prompt > 0 {
		line("prompts", "passes of up to %d tokens", f.Prompt)
	}
	line("traffic", "%.1f MB of weights per token%s", float64(f.Traffic.Weights)/1e6, ofCache(f.Traffic.Cache))
	files := []string{host.FatbinFile, host.WeightsFile, host.TokenizerFile}
	if f.Prompt > 0 {
		files = append(files, host.PromptFile)
	}
	for _, name := range files {
		state := "missing"
		if info, err := os.Stat(filepath.Join(c.dir, name)); err == nil {
			state = fmt.Sprintf("%.1f MB", float64(info.Size())/1e6)
		}
		line("file", "%s: %s", name, state)
	}
	amkc := from.AMKC
	if from.Commit != "" {
		amkc += ", commit " + from.Commit
	}
	line("amkc", "%s, device runtime ABI %d", amkc, from.ABI)
	source := from.Model
	if from.Revision != "" {
		source += " at revision " + from.Revision
	}
	if source != "" {
		line("source", "%s", source)
	}
	if from.Checkpoint != "" {
		line("weights", "SHA-256 %s", from.Checkpoint)
	}
	for _, adapter := range from.Adapters {
		line("adapter", "%s", adapter)
	}
	if len(from.Options) > 0 {
		line("options", "%s", strings.Join(from.Options, " "))
	}
	return b.String()
}

// ofCache says what a step reads of the cache.
func ofCache(rows []host.CacheRows) string {
	text := ""
	for _, r := range rows {
		text += fmt.Sprintf(", and %.1f kB for each earlier position", float64(r.Bytes)/1e3)
		if r.Window > 0 {
			text += fmt.Sprintf(" of the last %d", r.Window-1)
		}
	}
	return text
}
