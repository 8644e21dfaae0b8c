package codegen

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
	"amkc/runtime/host"
)

// Manifest is the provenance of a build, amkc.manifest.json: the tools and inputs that made it, and the digest of every
// file. It is the only generated file with versions.
type Manifest struct {
	Format    int               `json:"format"` // of this file
	Compiler  Compiler          `json:"compiler"`
	Source    Source            `json:"source"`
	Facts     host.Facts        `json:"facts"`
	Weights   WeightsDigest     `json:"weights"`
	Files     map[string]string `json:"files"`           // generated and copied files: path -> SHA-256
	Built     map[string]string `json:"built,omitempty"` // what amkc had nvcc and go make of them, the same way
	Toolchain Toolchain         `json:"toolchain"`
}

// Compiler says which amkc wrote the build.
type Compiler struct {
	Version    string `json:"version"`
	Commit     string `json:"commit,omitempty"` // of its sources, with "+" after it where they differ from that
	IR         string `json:"ir"`
	RuntimeABI int    `json:"runtime_abi"`
}

// Source says what was compiled.
type Source struct {
	Model       string   `json:"model,omitempty"`       // as a hub knows it, ORG/NAME, or the name of its directory
	Revision    string   `json:"revision,omitempty"`    // the hub's commit
	Checkpoint  string   `json:"checkpoint,omitempty"`  // SHA-256 of the names, types, shapes and bytes of its tensors
	Options     []string `json:"options,omitempty"`     // of the command line; of a file its name alone
	RandomSeed  *uint64  `json:"random_seed,omitempty"` // weights were invented from it
	AssumeInert []string `json:"assume_inert,omitempty"`
	Weights     []string `json:"weights,omitempty"` // items of --weights

	Adapters []Adapter `json:"adapters,omitempty"` // that were merged into the weights, in order
}

// Adapter is an adapter that was merged.
type Adapter struct {
	Name     string `json:"name"` // as Source.Model
	Revision string `json:"revision,omitempty"`
	Config   string `json:"config"`  // SHA-256 of adapter_config.json
	Weights  string `json:"weights"` // SHA-256 of adapter_model.safetensors
}

// Text names an adapter with its digest.
func (a *Adapter) Text() string {
	text := a.Name
	if a.Revision != "" {
		text += " at revision " + a.Revision
	}
	return text + ", SHA-256 " + a.Weights
}

// WeightsDigest identifies packed weights. Key is a digest of all of their inputs, so that a compile with the same key
// can keep the file.
type WeightsDigest struct {
	Key    string `json:"key"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Toolchain names the compilers of the emitted sources; empty if they were not compiled.
type Toolchain struct {
	NVCC string `json:"nvcc,omitempty"`
	Go   string `json:"go,omitempty"`
}

// Origin is the part of a build's README.md that says where the build comes from. The other files say nothing of it:
// what two versions of amkc emit alike is the same in both builds.
func (m *Manifest) Origin() []byte {
	var b bytes.Buffer
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "    %-11s %s\n", label, text)
		}
	}
	b.WriteString("\n## Where it comes from\n\n")
	line("amkc", m.Compiler.Text())
	line("model", m.Source.Model)
	line("revision", m.Source.Revision)
	line("checkpoint", m.Source.Checkpoint)
	for i := range m.Source.Adapters {
		line("adapter", m.Source.Adapters[i].Text())
	}
	line("options", strings.Join(m.Source.Options, " "))
	return b.Bytes()
}

// Text is which amkc it is.
func (c *Compiler) Text() string {
	text := c.Version
	if c.Commit != "" {
		text += ", commit " + c.Commit
	}
	return fmt.Sprintf("%s, IR %s, device runtime ABI %d", text, c.IR, c.RuntimeABI)
}

// Marshal prints the manifest: sorted keys, one per line.
func (m *Manifest) Marshal() ([]byte, error) {
	// Through a map, which encoding/json prints in key order.
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	out, err := json.MarshalIndent(tree, "", "  ")
	return append(out, '\n'), err
}

// Digest is the SHA-256 of a file's content, in hex.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// RuntimeABI is the version of the device runtime that generated code requires.
const RuntimeABI = runtimeABI

// Facts are the facts that a host needs about the programs of a build, besides the constants in the fatbins: the
// program of one token, and those of passes of several.
func Facts(p *ir.Program, passes ...*ir.Program) (host.Facts, error) {
	b, err := build(p)
	if err != nil {
		return host.Facts{}, err
	}
	m := &p.Model
	f := host.Facts{
		Model: host.Model{Name: m.Name, Architecture: m.Architecture, DType: m.Weights.String(), Layers: m.Layers,
			Hidden:       m.Hidden,
			Intermediate: m.Width(), Heads: m.Most(ir.HeadsOf), KVHeads: m.Most(ir.KVHeadsOf),
			HeadDim: m.Most(ir.HeadDimOf), Vocab: m.Vocab, MaxSeq: m.MaxSeq, CacheBlock: m.CacheBlock(),
			Tied: m.Tied, Eps: m.Eps},
		Target:  host.Target{Name: p.Target.Name, Arch: p.Target.Arch, SMs: p.Target.SMs},
		Traffic: b.traffic(),
	}
	if n := p.NumRanks(); n > 1 {
		f.Ranks = n
	}
	if m.Cache != m.Weights {
		f.Model.Cache = m.Cache.String()
	}
	if m.StatesDiffer() || m.HeadsDiffer() {
		if f.Layers, err = b.layers(); err != nil {
			return host.Facts{}, err
		}
	}
	if len(b.d.Rotations) > 0 && !m.Differ(ir.HeadDimOf) && 2*b.d.Rotations[0].Pairs < m.HeadDim {
		f.Model.Rotated = 2 * b.d.Rotations[0].Pairs
	}
	f.Stages, f.Prompt = b.labels(), b.d.PromptTokens
	for i := range b.p.Variants {
		v := &b.p.Variants[i]
		exchanges := b.exchangesOf(v)
		b.numberExchanges(exchanges, v, b.d.Variants[i].order)
		f.Variants = append(f.Variants, host.Variant{Name: v.Name, Lo: v.Lo, Hi: v.Hi, Exchanges: exchanges})
	}
	for _, q := range passes {
		of, err := build(q)
		if err != nil {
			return host.Facts{}, err
		}
		f.Passes = append(f.Passes, host.PassFacts{Pass: q.Pass.Written(), Stages: of.labels()})
	}
	return f, nil
}

// layers are what the layers differ in.
func (b *builder) layers() ([]host.Layer, error) {
	m, places := &b.p.Model, b.cacheSlots(kernel.Named.Cache)
	arena, _ := ir.CacheArena(b.p)
	out := make([]host.Layer, m.Layers)
	for layer := range out {
		f := m.Of(layer)
		s := f.State()
		out[layer] = host.Layer{Heads: f.Heads, KVHeads: s.Heads, HeadDim: s.Elements, CacheBlock: s.Block(m.Cache),
			Inputs: s.Inputs}
		if f.StateHeads > 0 {
			var err error
			if out[layer].CacheAt, out[layer].State, err = b.stateOf(layer); err != nil {
				return nil, err
			}
			continue
		}
		slot, known := places[layer]
		if !known {
			return nil, diag.Errorf(codeStructure, "program", "layer %d has no cache that a stage of its own reads; "+
				"want one for each layer, where layers differ in what they keep", layer)
		}
		out[layer].CacheAt = arena[slot].Offset
	}
	return out, nil
}

// stateOf is where a layer's states begin in the cache of a sequence, and how many bytes they have: side by side.
func (b *builder) stateOf(layer int) (at, bytes int, err error) {
	arena, _ := ir.CacheArena(b.p)
	slots := []int{}
	for _, name := range []string{kernel.Named.Memory, kernel.Named.Pending, kernel.Named.Before} {
		if slot, known := b.cacheSlots(name)[layer]; known {
			slots = append(slots, slot)
		}
	}
	slices.Sort(slots)
	if len(slots) != 3 || slots[2]-slots[0] != 2 {
		return 0, 0, diag.Errorf(codeStructure, "program", "layer %d has %d states of its own, or not side by side; "+
			"want that of its heads, what is pending, and what it convolves", layer, len(slots))
	}
	last := arena[slots[2]]
	return arena[slots[0]].Offset, last.Offset + last.Bytes - arena[slots[0]].Offset, nil
}

// labels are those of the numbered stages, in their order.
func (b *builder) labels() []string {
	labels := make([]string, len(b.d.Stages))
	for i, s := range b.d.Stages {
		labels[i] = s.IR.Label()
	}
	return labels
}

// Footprint is the memory that the programs of a build take on the GPU.
func Footprint(p *ir.Program, passes ...*ir.Program) (host.Footprint, error) {
	b, err := build(p)
	if err != nil {
		return host.Footprint{}, err
	}
	exchanges, most := make([]int, len(passes)), ir.Pass{}
	for i, q := range passes {
		of, err := build(q)
		if err != nil {
			return host.Footprint{}, err
		}
		exchanges[i], most = of.exchangeBytes, most.Most(q.Pass)
	}
	if prompt := b.d.PromptTokens; prompt > 0 {
		exchanges = append(exchanges, host.PromptBytes(b.d.PromptBytes, prompt))
	}
	return host.Info{SMs: p.Target.SMs, Vocab: p.Model.Vocab, MaxSeq: p.Model.MaxSeq, Hidden: p.Model.Hidden,
		ExchangeBytes: b.exchangeBytes, WeightBytes: int64(b.d.WeightBytes), CacheBytes: int64(b.d.CacheBytes),
	}.Footprint(most.NumSequences(), b.d.PromptTokens, exchanges...), nil
}

// traffic counts the bytes a step reads: every weight that a GEMV streams, as often as one does (an embedding table
// of its own is only looked up), norms, and K and V of each earlier position that attention sees. The last hidden state
// is not asked for.
func (b *builder) traffic() host.Traffic {
	var t host.Traffic
	for _, section := range sections(&b.p.Variants[0]) {
		for _, s := range section.stages {
			if kind, err := b.classify(s); err == nil && kind.Asked {
				continue
			}
			for _, i := range (site{loop: section.loop}).indicesOf(s) {
				counted := map[int]bool{}
				for k := range s.Ops {
					o := &s.Ops[k]
					b.addKept(&t, o, i, counted)
					m, err := b.names.At(operand(o.In, 1).Buf, i)
					if err != nil {
						continue
					}
					switch read := &b.p.Buffers[m.Declared]; o.Code {
					case ir.GEMV, ir.RMSNORM, ir.LAYERNORM:
						t.Weights += int64(read.Bytes())
					case ir.SELECTED: // of those that are chosen
						ids := operand(o.In, 2).Dims
						t.Weights += int64(read.Bytes() / max(1, read.Shape[0]) * b.rangeExtent(ids[len(ids)-1]))
					case ir.ATTENTION:
						addRows(&t, int64(read.Bytes())/int64(max(1, read.Shape[1])), o.Window())
					case ir.ShortConv:
						addRows(&t, int64(read.Bytes())/int64(max(1, read.Shape[1])), o.Window())
						for _, w := range o.In[2:] {
							if m, err := b.names.At(w.Buf, i); err == nil {
								t.Weights += int64(b.p.Buffers[m.Declared].Bytes())
							}
						}
					}
				}
			}
		}
	}
	return t
}

// addKept adds what an op keeps from step to step, the weights of what it keeps, and sinks of attention, each once for
// a stage: its ops have parts of them.
func (b *builder) addKept(t *host.Traffic, o *ir.Op, index int, counted map[int]bool) {
	for _, in := range o.In {
		m, err := b.names.At(in.Buf, index)
		if err != nil || counted[m.Declared] {
			continue
		}
		read := &b.p.Buffers[m.Declared]
		switch {
		case read.Kind == ir.Recurrent:
			t.States += int64(read.Bytes())
		case read.Kind == ir.Weight && (o.Code == ir.StateConv || o.Code == ir.DECAY || o.Code == ir.ATTENTION):
			t.Weights += int64(read.Bytes())
		default:
			continue
		}
		counted[m.Declared] = true
	}
}

// addRows adds rows of the given number of bytes, of a cache with the given window.
func addRows(t *host.Traffic, bytes int64, window int) {
	k := slices.IndexFunc(t.Cache, func(r host.CacheRows) bool { return r.Window == window })
	if k < 0 {
		k, t.Cache = len(t.Cache), append(t.Cache, host.CacheRows{Window: window})
	}
	t.Cache[k].Bytes += bytes
}
