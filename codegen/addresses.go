package codegen

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// weightPlace is where a weight lies: a constant for its first member, and one for the bytes from member to member; or
// a table with a place for each layer, of families that share the layers because these are stored in several formats.
type weightPlace struct {
	constant string
	stride   string // "" for a plain buffer
	table    string
	some     bool // it has layers without the weight
}

// A weightConstant says where a weight lies, or lists where it does in each layer.
type weightConstant struct {
	field
	Lines []string
}

// layerBytes is the stride of the families that have a member for each layer from 0 on.
const layerBytes = "kLayerBytes"

// A rank is what decides about the stride of a family: the families of one rank lie in the arena member by member.
type rank struct{ first, count, step int }

func rankOf(b *ir.Buffer) rank { return rank{b.First, b.Count, max(1, b.Step)} }

// placeWeights turns the arena of weights.safetensors into offsets, and one stride for all families of a rank.
func (b *builder) placeWeights() error {
	places, size := ir.WeightArena(b.p)
	b.weights, b.offsets = map[int]weightPlace{}, map[int][]int{}
	b.d.WeightBytes = size
	_, b.d.CacheBytes = ir.CacheArena(b.p)
	b.findRotations()
	for _, pl := range places {
		b.offsets[pl.Buffer] = append(b.offsets[pl.Buffer], pl.Offset)
	}
	strides, fixed := map[rank]*field{}, map[rank]int{}
	var order []*field
	taken := map[string]bool{}
	for k := range b.p.Buffers {
		buf, at := &b.p.Buffers[k], b.offsets[k]
		if len(at) == 0 {
			continue
		}
		if members := b.inLayers(buf.Name); members != nil {
			if b.weights[k].table == "" {
				b.listWeight(unique(taken, constName(buf.Name)+"At", buf), members)
			}
			continue
		}
		place := weightPlace{constant: unique(taken, constName(buf.Name), buf)}
		if buf.Count > 0 {
			r := rankOf(buf)
			if strides[r] == nil {
				strides[r] = &field{Name: strideName(taken, r), Value: "0",
					Note: "from one layer's tensor to the next layer's"}
				order = append(order, strides[r])
			}
			if _, known := fixed[r]; !known && len(at) > 1 {
				fixed[r] = at[1] - at[0]
				strides[r].Value = itoa(fixed[r])
			}
			for i := range at {
				if at[i] != at[0]+i*fixed[r] {
					return diag.Errorf(codeStructure, "buffer "+buf.Name,
						"member %d lies at byte %d, want %d: all families of a range at one stride", buf.Index(i),
						at[i], at[0]+i*fixed[r])
				}
			}
			place.stride = strides[r].Name
		}
		b.weights[k] = place
		c := weightConstant{field: field{Name: place.constant, Value: itoa(at[0])}}
		c.Note = shapeNote(buf, maxLine-len("constexpr size_t  = ;  // ")-len(c.Name)-len(c.Value))
		b.d.Weights = append(b.d.Weights, c)
		if r := b.rotationBy(buf); r != nil {
			r.InvFreq = place.constant
		}
	}
	if slices.ContainsFunc(b.d.Rotations, func(r *rotation) bool { return r.InvFreq == "" }) {
		return diag.Errorf(codeStructure, "program", "no stage rotates by a CONST buffer: want one of %s that does, "+
			"for the kernel prepares its angles", ir.ROPE)
	}
	for i := len(order) - 1; i >= 0; i-- {
		b.d.Weights = append([]weightConstant{{field: *order[i]}}, b.d.Weights...)
	}
	return nil
}

// inLayers returns the members of the families of one name, layer by layer, where a table says where each lies: it
// takes several families to have all layers, and they are of several shapes or formats, in the order of heads of
// several sizes, or of experts in some layers; or layers of some kinds have none, for which there is no member, such as
// those without experts, without attention or without a convolution.
func (b *builder) inLayers(name string) []*ir.Member {
	if !ir.IsFamily(name) {
		return nil
	}
	several, members, first := false, 0, (*ir.Buffer)(nil)
	for k := range b.p.Buffers {
		buf := &b.p.Buffers[k]
		switch {
		case buf.Name != name:
			continue
		case first == nil:
			first = buf
		case len(b.p.Model.Kinds) == 0 && !slices.Equal(buf.Shape, first.Shape):
			return nil
		}
		several = several || buf.Format() != first.Format() || !slices.Equal(buf.Shape, first.Shape) ||
			buf != first && (b.p.Model.Differ(ir.HeadDimOf) || b.p.Model.Differ(ir.ExpertsOf))
		members += buf.Count
	}
	out := make([]*ir.Member, b.p.Model.Layers)
	some := members < len(out) && (b.p.Model.Differ(ir.ExpertsOf) || b.p.Model.Differ(ir.TapsOf))
	if !some && (!several || members != len(out)) {
		return nil
	}
	for layer := range out {
		if m, known := b.names.Find(name, layer); known {
			out[layer] = &m
		} else if !some {
			return nil
		}
	}
	return out
}

// listWeight declares the table of the offsets of a weight, one per layer: 0 for a layer without it.
func (b *builder) listWeight(table string, members []*ir.Member) {
	var types, offsets []string
	for _, m := range members {
		if m == nil {
			offsets = append(offsets, "0")
			continue
		}
		b.weights[m.Declared] = weightPlace{table: table, some: slices.Contains(members, nil)}
		offsets = append(offsets, itoa(b.offsets[m.Declared][m.K]))
		if t := b.p.Buffers[m.Declared].DType.String(); !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	c := weightConstant{field{Name: table, Note: "layer by layer: " + strings.Join(types, " or ")}, list(offsets)}
	b.d.Weights = append(b.d.Weights, c)
}

// strideName is the constant for the stride of a rank of families.
func strideName(taken map[string]bool, r rank) string {
	if r.first == 0 && r.step == 1 && !taken[layerBytes] {
		taken[layerBytes] = true
		return layerBytes
	}
	return unique(taken, layerBytes, &ir.Buffer{First: r.first, Count: r.count, Step: r.step})
}

// unique is a constant for a buffer. Families of one name with other indices each have a constant, and so has what is
// named like a member of none of them.
func unique(taken map[string]bool, name string, b *ir.Buffer) string {
	for _, suffix := range []string{"", fmt.Sprintf("From%d", b.First),
		fmt.Sprintf("From%dBy%d", b.First, max(1, b.Step)),
		fmt.Sprintf("From%dBy%dTo%d", b.First, max(1, b.Step), b.Last())} {
		if !taken[name+suffix] {
			name += suffix
			break
		}
	}
	taken[name] = true
	return name
}

// placeCaches numbers the caches of the arena, and notes where each begins if they are of several sizes.
func (b *builder) placeCaches() error {
	b.caches = map[int][]int{}
	places, size := ir.CacheArena(b.p)
	differ := b.p.Model.StatesDiffer()
	for n, pl := range places {
		buf := &b.p.Buffers[pl.Buffer]
		if each := size / len(places); !differ && (pl.Bytes != places[0].Bytes || pl.Offset != n*each) {
			return diag.Errorf(codeStructure, "buffer "+buf.Name,
				"takes %d bytes, and others do not: want caches of one size", pl.Bytes)
		}
		if b.caches[pl.Buffer] = append(b.caches[pl.Buffer], n); differ {
			b.cacheAt = append(b.cacheAt, pl.Offset)
		}
	}
	return nil
}

// shapeNote returns the type, the shape and the layout of a tensor, but no layout if that takes more columns.
func shapeNote(b *ir.Buffer, columns int) string {
	dims := make([]string, len(b.Shape))
	for i, d := range b.Shape {
		dims[i] = itoa(d)
	}
	note := fmt.Sprintf("%s [%s]", b.DType, strings.Join(dims, ","))
	if whole := fmt.Sprintf("%s %s", note, b.Layout); len(whole) <= columns {
		return whole
	}
	return note
}

type pageData struct {
	Name          string
	Offset, Bytes int
	Copies        int
	Note          string
}

type vectorData struct {
	Name        string
	Alternating bool     // its members alternate between several pages
	Pages       []string // the page, or lines that list several
	Note        string
}

const pageAlign = 256

// placePages lays the exchange pages side by side and names the vector on each.
func (b *builder) placePages() error {
	b.vectors = map[int]string{}
	taken := map[string]bool{}
	offset := 0
	notes := map[string][]string{}
	for k := range b.p.Buffers {
		buf := &b.p.Buffers[k]
		if len(buf.Pages) == 0 {
			continue
		}
		if of := b.samePage(k); of != "" {
			b.vectors[k] = of
			continue
		}
		v := vectorData{Name: unique(taken, constName(buf.Name), buf),
			Note: fmt.Sprintf("%s %s %v", buf.Name, buf.DType, buf.Shape)}
		for _, name := range buf.Pages {
			v.Pages = append(v.Pages, "k"+camel(name))
			notes[name] = append(notes[name], stem(buf.Name))
		}
		if v.Alternating = len(v.Pages) > 1; v.Alternating {
			v.Pages = list(v.Pages)
		}
		b.vectors[k] = v.Name
		b.d.Vectors = append(b.d.Vectors, v)
	}
	for i := range b.p.Pages {
		pg := &b.p.Pages[i]
		if pg.Space != ir.GlobalScratch && pg.Space != ir.PeerScratch {
			return diag.Errorf(codeStructure, "page "+pg.Name,
				"lies in %s; want GLOBAL_SCRATCH or PEER_SCRATCH: the kernel has no pages but those of exchanged "+
					"vectors", pg.Space)
		}
		copies := max(1, pg.Layout.Copies)
		bytes := (pg.Bytes + pageAlign - 1) / pageAlign * pageAlign
		b.d.Pages = append(b.d.Pages, pageData{Name: "k" + camel(pg.Name), Offset: offset, Bytes: bytes, Copies: copies,
			Note: few(notes[pg.Name])})
		offset += bytes * copies
	}
	exchanges, stride := b.exchanges()
	counters := exchanges + 1
	if b.barriers > 0 {
		counters++
	}
	counterBytes := (counters*4 + pageAlign - 1) / pageAlign * pageAlign
	b.exchangeBytes = offset + counterBytes
	b.d.Exchange = []field{
		{"bool", "kFlagged", fmt.Sprint(b.flagged()), "words carry their epoch; else counters announce a vector"},
		{"int", "kExchangesPerStep", itoa(exchanges), "of the longest variant"},
		{"unsigned", "kCounterOffset", itoa(offset), "of counters: one per exchange, and one per step"},
		{"unsigned", "kExchangeBytes", itoa(b.exchangeBytes), "pages with their copies, then counters"},
		{"int", "kTraceStride", itoa(stride), "elements of the longest exchanged vector"},
	}
	if b.barriers > 0 {
		b.d.Barriers = true
		b.d.Exchange = append(b.d.Exchange, field{"int", "kBarriersPerStep", itoa(b.barriers),
			"of all SMs; one more counter, after that of the step"})
	}
	return nil
}

// samePage is the constant of a family of the name of the k-th buffer that comes before it, where layers differ in the
// length of a vector and its members are on the same pages whatever their length; or "".
func (b *builder) samePage(k int) string {
	buf := &b.p.Buffers[k]
	if len(b.p.Model.Kinds) == 0 {
		return ""
	}
	for i := range k {
		if of := &b.p.Buffers[i]; of.Name == buf.Name && slices.Equal(of.Pages, buf.Pages) &&
			!slices.Equal(of.Shape, buf.Shape) {
			return b.vectors[i]
		}
	}
	return ""
}

// few lists names in what a line has room for.
func few(names []string) string {
	const room = 40
	if len(names) == 0 {
		return "no vector"
	}
	all := strings.Join(names, ", ")
	if len(all) <= room {
		return all
	}
	n := max(1, strings.Count(all[:room], ","))
	return fmt.Sprintf("%s and %d others", strings.Join(names[:n], ", "), len(names)-n)
}
