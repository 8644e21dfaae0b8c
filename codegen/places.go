package codegen

import (
	"fmt"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// weightPlace is where a weight lies: a constant for its first member, and the family's range.
type weightPlace struct {
	constant string
	family   bool
}

// placeWeights turns the arena of weights.safetensors into offsets and one stride for all layers.
func (b *builder) placeWeights() error {
	places, size := ir.WeightArena(b.p)
	b.weights = map[string]weightPlace{}
	b.d.WeightBytes = size
	_, b.d.CacheBytes = ir.CacheArena(b.p)
	offsets := map[int][]int{}
	for _, pl := range places {
		offsets[pl.Buffer] = append(offsets[pl.Buffer], pl.Offset)
	}
	stride := 0
	for k := range b.p.Buffers {
		buf, at := &b.p.Buffers[k], offsets[k]
		if len(at) == 0 {
			continue
		}
		name := constName(buf.Name)
		place := weightPlace{constant: name, family: buf.Count > 0}
		if len(at) > 1 {
			if stride == 0 {
				stride = at[1] - at[0]
			}
			for i := range at {
				if at[i] != at[0]+i*stride {
					return diag.Errorf(codeStructure, "buffer "+buf.Name, "member %d lies at byte %d, want %d: all layers at one stride", i, at[i], at[0]+i*stride)
				}
			}
		}
		if buf.First != 0 {
			return diag.Errorf(codeStructure, "buffer "+buf.Name, "the family starts at %d, want 0", buf.First)
		}
		b.weights[buf.Name] = place
		b.d.Weights = append(b.d.Weights, field{Name: name, Value: itoa(at[0]), Note: shapeNote(buf)})
		if strings.HasPrefix(buf.Name, "rope.inv_freq") {
			b.d.InvFreq = name
		}
	}
	if b.d.InvFreq == "" {
		return diag.Errorf(codeStructure, "program", "no buffer rope.inv_freq: want the rotary angles as a CONST buffer")
	}
	b.d.Weights = append([]field{{Name: "kLayerBytes", Value: itoa(stride), Note: "from one layer's tensor to the next layer's"}}, b.d.Weights...)
	return nil
}

func shapeNote(b *ir.Buffer) string {
	dims := make([]string, len(b.Shape))
	for i, d := range b.Shape {
		dims[i] = itoa(d)
	}
	return fmt.Sprintf("%s [%s] %s", b.DType, strings.Join(dims, ","), b.Layout)
}

type pageData struct {
	Name          string
	Offset, Bytes int
	Copies        int
	Note          string
}

type vectorData struct {
	Name   string
	InTurn bool     // its members lie on several pages in turn
	Pages  []string // the page, or lines that list several
	Note   string
}

const pageAlign = 256

// placePages lays the exchange pages side by side and names the vector on each.
func (b *builder) placePages() error {
	b.vectors = map[string]string{}
	offset := 0
	notes := map[string][]string{}
	for k := range b.p.Buffers {
		buf := &b.p.Buffers[k]
		if len(buf.Pages) == 0 {
			continue
		}
		v := vectorData{Name: constName(buf.Name), Note: fmt.Sprintf("%s %s %v", buf.Name, buf.DType, buf.Shape)}
		for _, name := range buf.Pages {
			v.Pages = append(v.Pages, "k"+camel(name))
			notes[name] = append(notes[name], stem(buf.Name))
		}
		if v.InTurn = len(v.Pages) > 1; v.InTurn {
			v.Pages = list(v.Pages)
		}
		b.vectors[buf.Name] = v.Name
		b.d.Vectors = append(b.d.Vectors, v)
	}
	for i := range b.p.Pages {
		pg := &b.p.Pages[i]
		copies := max(1, pg.Layout.Copies)
		bytes := (pg.Bytes + pageAlign - 1) / pageAlign * pageAlign
		b.d.Pages = append(b.d.Pages, pageData{Name: "k" + camel(pg.Name), Offset: offset, Bytes: bytes, Copies: copies,
			Note: strings.Join(notes[pg.Name], ", ")})
		offset += bytes * copies
	}
	exchanges, stride := b.exchanges()
	counterBytes := ((exchanges+1)*4 + pageAlign - 1) / pageAlign * pageAlign
	b.d.Exchange = []field{
		{"bool", "kFlagged", fmt.Sprint(b.flagged()), "words carry their epoch; else counters announce a vector"},
		{"int", "kExchangesPerStep", itoa(exchanges), "of the longest variant"},
		{"unsigned", "kCounterOffset", itoa(offset), "of counters: one an exchange, and one a step"},
		{"unsigned", "kExchangeBytes", itoa(offset + counterBytes), "pages with their copies, then counters"},
		{"int", "kTraceStride", itoa(stride), "elements of the longest exchanged vector"},
	}
	return nil
}

// exchanges returns the number of exchanges a step of the longest variant has, and the length of the longest vector.
func (b *builder) exchanges() (count, longest int) {
	for i := range b.p.Variants {
		n := 0
		for _, e := range exchangesOf(b.p, &b.p.Variants[i]) {
			n += max(1, e.Layers)
		}
		count = max(count, n)
	}
	for k := range b.p.Buffers {
		if buf := &b.p.Buffers[k]; buf.Layout.Words() {
			longest = max(longest, buf.Numel())
		}
	}
	return count, longest
}

// advances reports whether a stage ends an exchange: whether other stages wait for what it hands over within the step.
func advances(s *ir.Stage) bool {
	b, err := classify(s)
	return err == nil && b != bodySample && b != bodyEmit
}

// flagged reports whether the exchanges are realised by flagged words. A program mixes the two only for the counter that
// ends the step, which is always the pair of best words.
func (b *builder) flagged() bool {
	for i := range b.p.Variants {
		for _, c := range b.p.Variants[i].Counters {
			if c.How == ir.Flagged && c.Name != "best" {
				return true
			}
		}
	}
	return false
}
