package cost

import (
	"fmt"
	"math"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/kernel"
)

// A Prompt is a prediction of how long it takes from a prompt to the first token after it. Times are milliseconds.
type Prompt struct {
	Target     string  `json:"target"`
	Arch       string  `json:"arch"`
	Label      string  `json:"label"`
	Tokens     int     `json:"tokens"`
	Cached     int     `json:"cached,omitempty"` // of them, that are not read
	Passes     int     `json:"passes"`           // of the kernel for prompts
	Steps      int     `json:"steps"`            // of one token, for a rest that is too short for a pass
	FirstToken float64 `json:"first_token_ms"`
	// its parts: products, with the joins around them; attention, with moving what several splits make; the product of
	// the head, if a pass chooses; and steps
	Products    float64  `json:"products_ms"`
	Attention   float64  `json:"attention_ms"`
	Head        float64  `json:"head_ms"`
	Stepping    float64  `json:"steps_ms"`
	Assumptions []string `json:"assumptions"`
}

// A PromptModel predicts prompts of a build.
type PromptModel struct {
	step   *Model
	tokens int // of a pass at most
	m      machine
	steps  map[int]float64 // latencies, by position
}

// NewPrompt takes a program of one token that ir.Check accepts, and how many tokens a pass of its kernel for prompts
// takes at most: 0 if there is none, and prompts are read by steps. The error is a diagnostic.
func NewPrompt(p *ir.Program, tokens int) (*PromptModel, error) {
	m, err := New(p)
	if err != nil {
		return nil, err
	}
	machine := newMachine(m, 0, float64(m.reader.chunk), kernel.Kept{})
	return &PromptModel{step: m, tokens: tokens, m: machine, steps: map[int]float64{}}, nil
}

// At predicts the first token after a prompt of n tokens. The error is a diagnostic.
func (m *PromptModel) At(tokens int) (*Prompt, error) { return m.After(0, tokens) }

// After predicts the same where the cache has the first tokens of the prompt, but not the last.
func (m *PromptModel) After(cached, tokens int) (*Prompt, error) {
	p := m.step.program
	if tokens < 1 {
		return nil, diag.Errorf(codePosition, "prompt", "of %d tokens; want at least one", tokens)
	}
	if cached < 0 || cached >= tokens {
		return nil, diag.Errorf(codePosition, "prompt", "of %d tokens, of which the cache has %d; want 0 to %d, as "+
			"the last one is decoded", tokens, cached, tokens-1)
	}
	out := &Prompt{Target: p.Target.Name, Arch: p.Target.Arch, Label: NeverMeasured, Tokens: tokens, Cached: cached,
		Assumptions: append(m.m.assumptions(p, 0), m.assumptions()...)}
	if tokens >= shortestMeasured && m.held() && cached == 0 {
		out.Label = Predicted
	}
	products, attention, passes, at, err := m.passes(cached, tokens)
	if err != nil {
		return nil, err
	}
	if at == tokens {
		head, err := m.head(tokens - 1)
		if err != nil {
			return nil, err
		}
		out.Head = head / 1e3
	}
	out.Products, out.Attention, out.Passes = products/1e3, attention/1e3, passes
	out.Steps = tokens - at
	stepping, err := m.stepping(at, tokens-1)
	if err != nil {
		return nil, err
	}
	out.Stepping = stepping / 1e3
	out.FirstToken = out.Products + out.Attention + out.Head + out.Stepping
	return out, nil
}

// passes is the time of the passes over the tokens from a position to another, and where the last one ends: a rest that
// is too short for a pass is left.
func (m *PromptModel) passes(at, end int) (products, attention float64, n, to int, err error) {
	for at < end {
		tokens := min(m.tokens, end-at)
		if tokens < promptLeast {
			break
		}
		p, a, err := m.pass(at, tokens)
		if err != nil {
			return 0, 0, 0, 0, err
		}
		products, attention, n, at = products+p, attention+a, n+1, at+tokens
	}
	return products, attention, n, at, nil
}

// head is the time of the product that the token after a prompt is chosen by: with the last tile of tokens.
func (m *PromptModel) head(at int) (float64, error) {
	v, err := m.step.variant(at)
	if err != nil {
		return 0, err
	}
	stages, err := m.step.reader.stages(v, at)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, s := range stages {
		if s.body.Streams == kernel.Tiles && chooses(s) {
			sum += m.product(nil, s, nil, promptTokens)
		}
	}
	return sum, nil
}

// stepping is the time of the steps at some positions: of each variant the mean of a few, as often as it has steps.
func (m *PromptModel) stepping(from, to int) (float64, error) {
	const samples = 3
	sum := 0.0
	for at := from; at <= to; {
		v, err := m.step.variant(at)
		if err != nil {
			return 0, err
		}
		end := min(to, v.Hi)
		part, n := 0.0, min(samples, end-at+1)
		for i := range n {
			pos := at
			if n > 1 {
				pos += (end - at) * i / (n - 1)
			}
			if _, known := m.steps[pos]; !known {
				if m.steps[pos], err = m.step.latencyAt(pos); err != nil {
					return 0, err
				}
			}
			part += m.steps[pos] / float64(n)
		}
		sum += part * float64(end-at+1)
		at = end + 1
	}
	return sum, nil
}

// pass is the time of a pass over n tokens from a position on. It has the stages of the last variant, and attention to
// a token is divided as in the variant of its position.
func (m *PromptModel) pass(at, tokens int) (products, attention float64, err error) {
	variants := m.step.program.Variants
	v := &variants[len(variants)-1]
	stages, err := m.step.reader.stages(v, v.Hi)
	if err != nil {
		return 0, 0, err
	}
	attended := 0
	var before *stage
	for n, s := range stages {
		times := float64(len(s.indices()))
		var after *stage
		if n+1 < len(stages) {
			after = stages[n+1]
		}
		switch {
		case s.body.Streams == kernel.Tiles && !chooses(s):
			products += times * m.product(before, s, after, tokens)
		case s.body.Begins:
			products += memoryLatency*float64(ceil(tokens, m.m.sms)) + join
		case s.body.Streams == kernel.CacheRows:
			one, err := m.attend(s, attended, at, tokens)
			if err != nil {
				return 0, 0, err
			}
			attention, attended = attention+times*one, attended+1
		case s.body.Polls > 0 && !m.writes(s, after):
			attention += times * m.combine(s, tokens)
		}
		before = s
	}
	return products, attention, nil
}

// chooses reports whether a stage offers logits to choose a token from, which a pass over a prompt leaves out.
func chooses(s *stage) bool {
	return slices.ContainsFunc(s.ir.Ops, func(o ir.Op) bool { return o.Code.Chooses() })
}

// A promptMatrix is the matrix of a stage, as a pass over a prompt walks it.
type promptMatrix struct {
	rows   int     // tiles of
	bytes  float64 // of a tile's weights
	stages int     // of the operand, one after the other
	quads  int     // of a warp in a stage
	format format.Format
}

// sizes are those of the matrix of a stage, or of each of its experts.
func (s *stage) sizes() (rows, columns int) {
	for k := range s.tasks {
		rows += s.tasks[k].tiles * s.format.Geometry().Rows
	}
	switch {
	case s.experts == 0:
		return rows, s.columns
	case s.cut.Sums > 1:
		return rows, s.columns / s.cut.Sums
	}
	return rows / s.chosen, s.columns
}

// tokenTiles is how many tiles of tokens are multiplied by a matrix each, and by how many of them. Experts have as many
// tokens as the others.
func (s *stage) tokenTiles(tokens, tile int) (tiles, matrices int) {
	if s.experts == 0 {
		return ceil(tokens, tile), 1
	}
	matrices = min(s.experts, tokens*s.chosen)
	return matrices * ceil(ceil(tokens*s.chosen, matrices), tile), matrices
}

func (m *PromptModel) matrix(s *stage) promptMatrix {
	r := m.step.reader
	rows, columns := s.sizes()
	out, g := promptMatrix{format: s.format}, s.format.Geometry()
	quads := ceil(columns, format.QuadColumns)
	p := r.multiplies(s, s.format, columns, 1)
	members, slabs := min(s.warps, quads), p.Slabs()
	out.quads = p.SlabQuads()
	if _, quantised := out.format.(format.Quantised); quantised { // parts of a few quads, over all columns
		const partQuads = 4
		slabs = ceil(out.quads*slabs, partQuads)
		out.quads = min(out.quads, partQuads)
	}
	out.rows, out.stages = ceil(rows, promptRows), members*slabs*promptParts
	out.bytes = float64(g.TileBytes(columns)) * float64(promptRows/g.Rows)
	return out
}

// wideProduct is the time that wgmma takes for the tiles of a matrix: product after product, of which two groups of
// warps alternate, and then the tile's rows are finished.
func (m *PromptModel) wideProduct(s, after *stage, tokens int) float64 {
	rows, columns := s.sizes()
	p := m.step.reader.multiplies(s, s.format, columns, 1)
	members, tileRows, end := min(s.warps, ceil(columns, format.QuadColumns)), widePromptRows, wideFinish
	if p.Chains == 1 { // more sums are kept, of fewer rows
		tileRows /= 2
	}
	if m.writes(s, after) {
		end = wideWrite
	}
	tile := float64(members*p.Quads()*2*promptParts)*promptProduct/m.m.clock + end
	ofTokens, matrices := s.tokenTiles(tokens, widePromptTokens)
	tiles := ceil(rows, tileRows) * ofTokens
	bytes := float64(s.format.Geometry().TileBytes(columns)) * float64(rows/s.format.Geometry().Rows*matrices)
	return max(float64(ceil(tiles, m.m.sms))*tile, bytes/m.m.read) + wideStart
}

// quadProduct is the same of a quantised matrix: quad after quad, scaled every 32 columns.
func (m *PromptModel) quadProduct(s, _ *stage, tokens int) float64 {
	rows, columns := s.sizes()
	quad := wideQuad
	switch s.format.DType() {
	case "I8":
		quad = wideByteQuad
	case "F8E4M3", "F4E2M1":
		quad = wideFloatQuad
	}
	tile := float64(ceil(columns, format.QuadColumns))*quad/m.m.clock + wideQuadTile
	ofTokens, matrices := s.tokenTiles(tokens, promptTokens)
	tiles := ceil(rows, widePromptRows) * ofTokens
	bytes := float64(s.format.Geometry().TileBytes(columns)) * float64(rows/s.format.Geometry().Rows*matrices)
	return max(float64(ceil(tiles, m.m.sms))*tile, bytes/m.m.read)
}

// writes reports whether a stage writes the operand of the one after it as its rows or heads come out (promptOperands
// of codegen).
func (m *PromptModel) writes(before, s *stage) bool {
	if before == nil || s == nil || s.ir.Ops[0].Code != ir.GEMV || !plain(s) {
		return false
	}
	switch before.body {
	case kernel.Attend, kernel.Combine:
		head := m.step.program.FactsOf(before.ir, before.loop).HeadDim
		return m.wideAttention(before) && head%32 == 0 && s.columns%format.QuadColumns == 0
	}
	return before.body.Streams == kernel.Tiles && plain(before) && s.columns%format.QuadColumns == 0
}

// plain reports whether a stage multiplies elements as they are.
func plain(s *stage) bool {
	_, quantised := s.format.(format.Quantised)
	return !quantised && s.format != nil
}

// product is the time of a matrix stage: its operand is written, unless the stage before has written it, all join, its
// tiles are multiplied, and all join.
func (m *PromptModel) product(before, s, after *stage, tokens int) float64 {
	if s.format == nil {
		return 0
	}
	if m.step.program.Target.Arch == "sm_90a" {
		if m.writes(before, s) {
			return m.wideProduct(s, after, tokens) + join
		}
		// 16 bits, read and written, and the sums over experts, 32 bits, read: tiles have written them.
		bytes := 2 * 2 * tokens * s.columns
		if s.experts > 0 {
			rows, columns := s.sizes()
			bytes = 2 * 2 * tokens * s.chosen * columns
			if s.cut.Sums > 1 {
				bytes += 4 * tokens * s.chosen * rows
			}
		}
		operand := float64(bytes) / promptVector
		wide := m.wideProduct
		if _, quantised := s.format.(format.Quantised); quantised {
			wide = m.quadProduct
		}
		return wide(s, after, tokens) + memoryLatency + operand + 2*join
	}
	w := m.matrix(s)
	ofTokens, matrices := s.tokenTiles(tokens, promptTokens)
	tiles := w.rows * ofTokens
	// Where not all SMs have a tile, those that have one get more out of L2.
	l2 := min(l2Alone*m.m.clock, m.m.l2*float64(m.m.sms)/float64(min(tiles, m.m.sms)))
	columns := float64(w.stages*w.quads) * format.QuadColumns / promptParts
	operand := columns * promptTokens * 2
	stage := max((w.bytes+operand)/float64(w.stages)/l2, m.least(w)/m.m.clock)
	tile := float64(w.stages)*stage + promptTile
	return max(float64(ceil(tiles, m.m.sms))*tile, float64(w.rows*matrices)*w.bytes/m.m.read) + 2*join
}

// least is the cycles that a stage of an operand takes, however fast its bytes come.
func (m *PromptModel) least(w promptMatrix) float64 {
	_, quantised := w.format.(format.Quantised)
	if quantised {
		return max(promptStep, integerQuad*float64(w.quads))
	}
	return max(promptStep, plainQuad*float64(w.quads))
}

// attend is the time of attention: rows are appended, all join, blocks attend for heads of some tokens each, those of
// the last tokens first, to all splits of a kv head one after the other, and all join. The stage is the one with that
// number among those of attention.
func (m *PromptModel) attend(of *stage, number, at, tokens int) (float64, error) {
	heads := m.step.program.FactsOf(of.ir, of.loop).Group()
	columns := ceil(tokens*heads, promptColumns)
	busy, next, most := make([]float64, m.m.sms), 0, 0.0
	for c := columns - 1; c >= 0; c-- {
		last := at + min(tokens, ceil((c+1)*promptColumns, heads)) - 1
		s, err := m.attention(number, last)
		if err != nil {
			return 0, err
		}
		splits, blocks, fragments := max(1, s.splits()), 0.0, 0
		for k := range s.tasks {
			blocks += s.tasks[k].blocks
			fragments = s.tasks[k].fragments
		}
		units := max(1, s.ir.Dist.Extent/splits)
		const own = 1 // block that the last token's own row is in
		visits := math.Ceil(blocks/float64(units)) + own
		unit := visits*promptBlock*(roundCycles+fragmentCycles*float64(fragments)) +
			2*m.m.fit.UnitCycles*float64(splits) // of two groups of heads
		if m.wideAttention(s) {
			f := float64(fragments)
			unit = wideUnit + (wideBlock+wideBlockFragment*f)*visits + wideSplitFragment*f*float64(splits)
		}
		for range units {
			sm := next % m.m.sms
			if next/m.m.sms%2 == 1 { // turns go to and fro
				sm = m.m.sms - 1 - sm
			}
			busy[sm] += unit / m.m.clock
			most = max(most, busy[sm])
			next++
		}
	}
	// 16 bits of keys and values, read and written.
	f := m.step.program.FactsOf(of.ir, of.loop)
	return most + float64(2*2*tokens*2*f.KVHeads*f.HeadDim)/promptAppend + 2*join, nil
}

// attention is the stage of attention with that number, in the variant of a position.
func (m *PromptModel) attention(number, position int) (*stage, error) {
	v, err := m.step.variant(position)
	if err != nil {
		return nil, err
	}
	stages, err := m.step.reader.stages(v, position)
	if err != nil {
		return nil, err
	}
	for _, s := range stages {
		if s.body.Streams != kernel.CacheRows {
			continue
		}
		if number--; number < 0 {
			return s, nil
		}
	}
	return nil, diag.Errorf(codePosition, "prompt", "variant %s has fewer stages of attention than the last", v.Name)
}

// wideAttention is kWideAttention of prompt_shape.cuh: whether wgmma attends.
func (m *PromptModel) wideAttention(s *stage) bool {
	p := m.step.program
	padded := ceil(p.FactsOf(s.ir, s.loop).HeadDim, 16) * 16
	divided := padded%32 == 0 && padded <= 128 || padded%64 == 0
	return p.Target.Arch == "sm_90a" && p.Model.Cache == p.Model.Weights && divided
}

// combine is the time to move what attention has joined of several splits, where it does not write an operand: elements
// of 16 bits, read and written.
func (m *PromptModel) combine(s *stage, tokens int) float64 {
	f := m.step.program.FactsOf(s.ir, s.loop)
	return float64(2*2*tokens*f.Heads*f.HeadDim)/promptVector + join
}

// held reports whether internal/costcheck holds predictions for such prompts to measurements.
func (m *PromptModel) held() bool {
	p := m.step.program
	return p.Target.Name == CalibratedOn && m.tokens > 0 && !m.quantised(true) && !m.quantised(false) &&
		p.Model.Cache == p.Model.Weights && p.Model.Most(ir.ExpertsOf) == 0 && p.Model.Most(ir.StateHeadsOf) == 0 &&
		p.Model.Most(ir.ChannelsOf) == 0
}

// quantised reports whether there are matrices of integers, or of fp8.
func (m *PromptModel) quantised(integers bool) bool {
	p := m.step.program
	for i := range p.Buffers {
		if f := p.Buffers[i].Format(); f != nil && (integers && format.InFixedPoint(f) || !integers && halved(f)) {
			return true
		}
	}
	return false
}

func (m *PromptModel) assumptions() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if m.tokens == 0 {
		say("the build has no kernel for prompts: steps read them")
		return out
	}
	wide := m.step.program.Target.Arch == "sm_90a"
	switch {
	case wide && (m.quantised(true) || m.quantised(false)):
		say("quantised matrices: products as long as in a prototype of the kernel on an H200")
	case m.quantised(true):
		say("integers: products of an earlier state of the kernel, whose rows docs/results does not have")
	case m.quantised(false):
		say("fp8: products take as long as those of integers (estimated)")
	}
	if m.step.program.Target.Arch != "sm_90a" {
		say("products by mma, as long as those of an earlier state of the kernel on an H100")
	}
	return out
}
