package refvm

import (
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
)

// A Session decodes with a native program: it picks the variant for each position, and the variants share all
// buffers. It is for one goroutine at a time.
type Session struct {
	Order    Order // of the tasks of a step
	Last     bool  // the next step ends the run, whatever it chooses
	mem      *memory
	variants []*VM
	pos      int

	recurrent bool    // the program has states that are of the last step alone
	begun     int     // where that was
	taken     []taken // by the steps before pos, if so
	given     int     // the id of an embedding
}

// NewSession unrolls every variant of a program and loads the weights once. The first step is at position 0.
func NewSession(p *ir.Program, w Weights, opts Options) (*Session, error) {
	return newSession(p, w, opts, nil)
}

// Alongside returns a session of a program for other passes over the same model. The sessions share weights and caches.
func (s *Session) Alongside(p *ir.Program, w Weights) (*Session, error) {
	return newSession(p, w, s.variants[0].opts, s.mem)
}

func newSession(p *ir.Program, w Weights, opts Options, shared *memory) (*Session, error) {
	if len(p.Variants) == 0 {
		return nil, diag.Errorf(CodePosition, "program "+p.Model.Name, "has no variant, want at least one")
	}
	s := &Session{}
	for v := range p.Variants {
		flat, diags := ir.Unroll(p, &p.Variants[v])
		if err := diags.Err(); err != nil {
			return nil, err
		}
		if s.mem == nil {
			var err error
			if s.mem, err = newMemory(flat, fromFamilies(p, w), opts.Round, shared); err != nil {
				return nil, err
			}
		}
		vm, err := newVM(flat, s.mem, opts)
		if err != nil {
			return nil, err
		}
		s.variants = append(s.variants, vm)
	}
	s.given = p.Model.Vocab
	s.recurrent = slices.ContainsFunc(p.Buffers, func(b ir.Buffer) bool { return b.Kind == ir.Recurrent })
	if in := s.mem.byRole[ir.RoleSampling]; in != nil {
		clear(in[0].data)
	}
	if s.mem.byRole[ir.RoleStopIDs] != nil {
		return s, s.StopAt(nil)
	}
	return s, nil
}

// fromFamilies supplies flat buffers: members of families, on each rank.
func fromFamilies(p *ir.Program, w Weights) supply {
	origins := ir.BufferOrigins(p)
	return func(k int) ([]float32, error) {
		of := origins[k]
		b := &p.Buffers[of.Member.Declared]
		if b.Shares() {
			own := b.OfRank(of.Rank)
			b = &own
		}
		return w.Floats(b, b.Index(of.Member.K))
	}
}

// Pos returns the position of the next step.
func (s *Session) Pos() int { return s.pos }

// Reset makes position 0 the next. Rows of the KV cache at and above the position are not read before they are written,
// and recurrent states are zeros there.
func (s *Session) Reset() { s.pos, s.taken = 0, nil }

// Rewind makes an earlier position the next, or leaves the session where it is. The rows of the KV cache before it
// stay: what is decoded from there on is the same to the bit as after the same tokens from position 0. A recurrent
// state is that of the last step alone. For it, the tokens before the position are decoded again.
func (s *Session) Rewind(pos int) error {
	if pos < 0 || pos > s.pos {
		return diag.Errorf(CodePosition, "position", "%d is not one to go back to, want 0 to %d", pos, s.pos)
	}
	if !s.recurrent || pos == 0 || pos >= s.begun {
		s.pos, s.taken = pos, s.taken[:min(pos, len(s.taken))]
		return nil
	}
	again := s.taken[:pos]
	s.Reset()
	for _, in := range again {
		if in.row != nil {
			if err := s.SetEmbedding(0, in.row); err != nil {
				return err
			}
		}
		if _, _, err := s.Step(in.token); err != nil {
			return err
		}
	}
	return nil
}

// At returns the VM of the variant for a pass that begins at a position.
func (s *Session) At(pos int) (*VM, error) {
	next := -1 // where the variant after the position begins
	for _, vm := range s.variants {
		if pos >= vm.flat.Lo && pos <= vm.flat.Hi {
			return vm, nil
		}
		if pos < vm.flat.Lo && (next < 0 || vm.flat.Lo < next) {
			next = vm.flat.Lo
		}
	}
	last := s.variants[len(s.variants)-1].flat
	if rows := last.Pass.NumRows(); next >= 0 && next < pos+rows {
		return nil, diag.Errorf(CodePosition, "position", "%d begins a pass of %d rows, and there is a variant for "+
			"passes from %d on; want a pass that ends there", pos, rows, next)
	}
	return nil, diag.Errorf(CodePosition, "position",
		"%d is outside the program, which ends at %d; compile with a larger --max-seq, or start again at 0", pos,
		last.Hi)
}

// Pass decodes rows of tokens, those of each sequence from a position on: of any position up to which its cache has
// been filled, and all of one variant. It returns the logits, row by row and valid until the next pass, and the token
// that the program chose after each.
func (s *Session) Pass(at, tokens []int) (logits []float32, next []int, err error) {
	for i, token := range tokens {
		if token < 0 {
			return nil, nil, diag.Errorf(CodeValue, "position", "token %d of the pass is %d, want an id from 0 on", i,
				token)
		}
	}
	if len(at) == 0 {
		return nil, nil, diag.Errorf(CodePosition, "position", "none is given, want that of each sequence")
	}
	vm, err := s.At(slices.Max(at))
	if err != nil {
		return nil, nil, err
	}
	if err := s.run(vm, at, tokens); err != nil {
		return nil, nil, err
	}
	return vm.Logits(), vm.Chosen(), nil
}

// SetEmbedding sets the embedding of token i of the next pass, which is used instead of a row of the table if the id of
// the token is the number of rows of the table. It is kept until another is set.
func (s *Session) SetEmbedding(i int, row []float32) error {
	for _, st := range s.mem.byRole[ir.RoleEmbeddings] {
		n := st.buf.Shape[len(st.buf.Shape)-1]
		if len(row) != n || i < 0 || i >= len(st.data)/n {
			return diag.Errorf(CodeBuffer, "buffer "+st.buf.Name, "is to have %d elements in row %d, want %d in one "+
				"of %d rows", len(row), i, n, len(st.data)/n)
		}
		copy(st.data[i*n:], row)
		return nil
	}
	return diag.Errorf(CodeBuffer, "program", "has no input of role %s, want one", ir.RoleEmbeddings)
}

// Hidden returns the last hidden state after each token of the last step or pass, row by row, or nil if the program has
// none. The slice is valid until the next one.
func (s *Session) Hidden() []float32 {
	for _, st := range s.mem.byRole[ir.RoleHidden] {
		return st.data
	}
	return nil
}

// run tells a variant whether the pass is the last one, and runs it.
func (s *Session) run(vm *VM, at, tokens []int) error {
	last := 0
	if s.Last {
		last = 1
	}
	vm.input(ir.RoleStopLast, []int{last})
	return vm.Pass(at, tokens, s.Order)
}

// Step decodes one token and moves to the next position. It returns the logits, valid until the next step, and the
// token that the program chose. After an error the position is where it was, and the step may be tried again.
func (s *Session) Step(token int) (logits []float32, next int, err error) {
	vm, err := s.At(s.pos)
	if err != nil {
		return nil, -1, err
	}
	if token < 0 {
		return nil, -1, diag.Errorf(CodeValue, "position", "%d has token %d, want an id from 0 on", s.pos, token)
	}
	s.begun = s.pos
	if err := s.run(vm, []int{s.pos}, []int{token}); err != nil {
		return nil, -1, err
	}
	s.pos++
	if s.recurrent {
		s.taken = append(s.taken, s.took(token))
	}
	return vm.Logits(), vm.Next(), nil
}

// A taken is what a step has decoded: a token, or where it is that of what is given, an embedding.
type taken struct {
	token int
	row   []float32
}

// took is what the last step has decoded.
func (s *Session) took(token int) taken {
	out := taken{token: token}
	for _, st := range s.mem.byRole[ir.RoleEmbeddings] {
		if token == s.given {
			out.row = slices.Clone(st.data[:st.buf.Shape[len(st.buf.Shape)-1]])
		}
	}
	return out
}
