package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"amkc/runtime/driver"
	"amkc/runtime/infile"
)

// A Reference decodes with the plain kernels of reference.cu, one operation a kernel, on the weights and the cache of a
// session. [Session.Check] and [Session.Bisect] compare the megakernel with it.
type Reference interface {
	// Step decodes token at a position: it reads the rows of the cache before the position, writes the position's own
	// row, and returns the logits [vocab], valid until the next call. All its work is done when it returns. Where
	// values of stages are given, it goes on with those, and returns its own too.
	Step(token, position int, given []StageVector) ([]float32, []StageVector, error)
	// Follow repeats the traced step with the megakernel's inputs for every stage, so that an error shows only in the
	// stage that makes it. It returns the results of all common stages, in order, and the cache contents of the
	// megakernel.
	Follow(token int, t *Trace) ([]StagePair, error)
	// Close frees the reference's own memory.
	Close() error
}

// Resident is what a session has on the GPU, for a [Reference] to work on.
type Resident struct {
	Dir     string // of the build
	Device  *driver.Device
	Facts   *Facts
	Info    Info
	Weights driver.Ptr // the data section of weights.safetensors
	Cache   driver.Ptr // Info.CacheBytes, in the layout of the megakernel
	Peers   []Resident // what is on the other GPUs that run the build, each with a part of it
}

// A ReferenceOpener looks up the kernels of a reference and allocates its scratch memory.
type ReferenceOpener func(Resident) (Reference, error)

// cudaReference runs the kernels of reference.fatbin, one after the other on one stream. Of several GPUs each runs them
// on its part of the weights, and what they have sums of is added up here.
type cudaReference struct {
	peers   []*cudaReference
	on      Resident
	plan    *plan
	module  *driver.Module
	stream  *driver.Stream
	kernels map[string]*driver.Function
	scratch driver.Ptr
	logits  []float32
}

// openReference opens the reference kernels of the build. Errors are as for [Open].
func openReference(on Resident) (_ Reference, err error) {
	path := filepath.Join(on.Dir, ReferenceFile)
	image, err := infile.Read(path, infile.Module)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &BuildError{Path: path, What: "the kernels to check the megakernel with are missing",
			Remedy: "build them: run make in " + on.Dir}
	} else if err != nil {
		return nil, &BuildError{Path: path, What: "the reference kernels cannot be read", Err: err}
	}
	r := &cudaReference{on: on, kernels: map[string]*driver.Function{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	r.module, err = on.Device.LoadFatbin(image,
		driver.Built{Targets: []string{on.Facts.Target.Arch}, CUDA: on.Facts.CUDA})
	if err != nil {
		return nil, err
	}
	if err := r.readPlan(); err != nil {
		return nil, &BuildError{Path: path, What: "not the reference kernels of this build", Remedy: "run make again",
			Err: err}
	}
	if r.stream, err = on.Device.NewStream(); err != nil {
		return nil, err
	}
	if r.scratch, err = on.Device.Alloc(int(r.plan.scratchBytes)); err != nil {
		return nil, err
	}
	for _, peer := range on.Peers {
		opened, err := openReference(peer)
		if err != nil {
			return nil, err
		}
		r.peers = append(r.peers, opened.(*cudaReference))
	}
	return r, nil
}

// all are those of all GPUs.
func (r *cudaReference) all() []*cudaReference { return append([]*cudaReference{r}, r.peers...) }

// readPlan fetches the plan and looks its kernels up.
func (r *cudaReference) readPlan() error {
	info, err := r.constant(referenceName)
	if err != nil {
		return err
	}
	kinds, err := r.constant(referenceKindsName)
	if err != nil {
		return err
	}
	step, err := r.constant(referenceStepName)
	if err != nil {
		return err
	}
	if r.plan, err = decodePlan(info, kinds, step, r.on.Facts.NumRanks()); err != nil {
		return err
	}
	if r.plan.layers != r.on.Info.Layers || r.plan.vocab != r.on.Info.Vocab {
		return fmt.Errorf("compiled for %d layers and vocab %d, and the megakernel for %d and %d",
			r.plan.layers, r.plan.vocab, r.on.Info.Layers, r.on.Info.Vocab)
	}
	for _, o := range r.plan.operations {
		if r.kernels[o.kernel] != nil {
			continue
		}
		if r.kernels[o.kernel], err = r.module.Function(o.kernel); err != nil {
			return err
		}
	}
	return nil
}

func (r *cudaReference) constant(name string) ([]byte, error) {
	p, n, err := r.module.Global(name)
	if err != nil {
		return nil, err
	}
	raw := make([]byte, n)
	return raw, r.on.Device.CopyDtoH(raw, p, nil)
}

// Close implements [Reference].
func (r *cudaReference) Close() error {
	var errs []error
	for _, peer := range r.peers {
		errs = append(errs, peer.Close())
	}
	if r.scratch != 0 {
		errs = append(errs, r.on.Device.Free(r.scratch))
	}
	if r.stream != nil {
		errs = append(errs, r.stream.Close())
	}
	if r.module != nil {
		errs = append(errs, r.module.Close())
	}
	if err := errors.Join(errs...); !driver.IsSticky(err) {
		return err
	}
	return nil
}

// Step implements [Reference].
func (r *cudaReference) Step(token, position int, given []StageVector) ([]float32, []StageVector, error) {
	var own []StageVector
	step := func() error {
		return r.plan.walk(func(o *operation, layer int) error {
			if o.repeats == observes {
				return nil
			}
			if err := r.launch(o, layer, position, token); err != nil || o.stage == "" || len(own) == len(given) ||
				o.repeats == sums {
				return err
			}
			next := &given[len(own)]
			if next.Stage != inLayer(o.stage, layer) || len(next.Values) != o.elements {
				return nil
			}
			raw := make([]byte, o.elements*o.elementBytes)
			if err := r.read(o, raw); err != nil {
				return err
			}
			own = append(own, StageVector{Stage: next.Stage, Values: DecodeElements(raw, r.dtype(o))})
			return r.replace(o, next.Values)
		})
	}
	var err error
	if len(given) > 0 || len(r.peers) > 0 {
		err = step()
	} else { // a hop from thread to thread takes longer than most of these kernels
		err = r.on.Device.Do(step)
	}
	if err == nil && len(own) < len(given) {
		err = fmt.Errorf("no operation of them makes the %d values of stage %s", len(given[len(own)].Values),
			given[len(own)].Stage)
	}
	if err != nil {
		return nil, nil, err
	}
	last := &r.plan.operations[len(r.plan.operations)-1]
	if r.logits == nil {
		r.logits = make([]float32, r.plan.vocab)
	}
	for i, of := range r.all() {
		if err := of.read(last, bytesOf(r.logits[i*last.elements:][:last.elements])); err != nil {
			return nil, nil, err
		}
	}
	return r.logits, own, nil
}

// addUp makes what an operation has left a part of on each GPU the sum of all parts, in pairs as the megakernel adds
// them.
func (r *cudaReference) addUp(o *operation) error {
	all := r.all()
	parts := make([][]float32, len(all))
	for i, of := range all {
		parts[i] = make([]float32, o.elements)
		if err := of.read(o, bytesOf(parts[i])); err != nil {
			return err
		}
	}
	for n := len(parts) / 2; n > 0; n /= 2 { // neighbours first
		for i := range n {
			for k := range parts[i] {
				parts[i][k] = parts[2*i][k] + parts[2*i+1][k]
			}
		}
	}
	for _, of := range all {
		if err := of.on.Device.CopyHtoD(of.scratch+driver.Ptr(o.offset), bytesOf(parts[0]), nil); err != nil {
			return err
		}
	}
	return nil
}

// Follow implements [Reference].
func (r *cudaReference) Follow(token int, t *Trace) ([]StagePair, error) {
	var pairs []StagePair
	err := r.plan.walk(func(o *operation, layer int) error {
		if err := r.launch(o, layer, t.Position, token); err != nil || o.stage == "" {
			return err
		}
		raw := make([]byte, o.elements*o.elementBytes)
		if err := r.read(o, raw); err != nil {
			return err
		}
		values := DecodeElements(raw, r.dtype(o))
		pair := StagePair{Stage: inLayer(o.stage, layer)}
		if o.repeats == observes {
			half := len(values) / 2
			pair.Got, pair.Want = values[:half], values[half:]
			pairs = append(pairs, pair)
			return nil
		}
		pair.Got, pair.Want = t.Vector(pair.Stage), values
		if pair.Got == nil {
			return nil
		}
		pairs = append(pairs, pair)
		if len(pair.Got) != len(values) {
			return nil
		}
		return r.replace(o, pair.Got)
	})
	return pairs, err
}

// launch queues one operation, on all GPUs.
func (r *cudaReference) launch(o *operation, layer, position, token int) error {
	for _, of := range r.all() {
		if err := of.launchOn(o, layer, position, token); err != nil {
			return err
		}
	}
	if o.repeats == sums {
		return r.addUp(o)
	}
	return nil
}

func (r *cudaReference) launchOn(o *operation, layer, position, token int) error {
	le := binary.LittleEndian
	arg := make([]byte, 0, referenceSize)
	for _, p := range []driver.Ptr{r.on.Weights, r.on.Cache, r.scratch} {
		arg = le.AppendUint64(arg, uint64(p))
	}
	for _, v := range []int{layer, position, token, 0} {
		arg = le.AppendUint32(arg, uint32(int32(v)))
	}
	return r.stream.Launch(r.kernels[o.kernel], driver.Dim{X: o.blocks}, driver.Dim{X: r.plan.threads}, 0, arg)
}

// referenceSize is sizeof(amk::Reference).
const referenceSize = 3*8 + 4*4

// read waits for an operation and copies its result.
func (r *cudaReference) read(o *operation, raw []byte) error {
	if err := r.stream.Synchronize(); err != nil {
		return err
	}
	return r.on.Device.CopyDtoH(raw, r.scratch+driver.Ptr(o.offset), nil)
}

// replace puts the megakernel's result instead of an operation's own.
func (r *cudaReference) replace(o *operation, values []float32) error {
	return r.on.Device.CopyHtoD(r.scratch+driver.Ptr(o.offset), encodeElements(values, r.dtype(o)), nil)
}

// dtype is the type of an operation's result.
func (r *cudaReference) dtype(o *operation) string {
	if o.elementBytes == 4 {
		return "F32"
	}
	return r.on.Facts.Model.DType
}

// Names in the fatbin of the reference.
const (
	referenceName      = "amk_reference"
	referenceKindsName = "amk_reference_kinds"
	referenceStepName  = "amk_reference_step"
)

// How often an operation of the reference runs (amk/reference.cuh).
type repetition uint32

const (
	once      repetition = iota
	eachLayer            // those of a layer are side by side
	observes             // in each layer: what the megakernel has left in the cache, and what it should have
	sums                 // in each layer: of several GPUs each has a part of the result
)

// An operation is one launch of the reference (amk::Operation).
type operation struct {
	kernel  string
	blocks  int
	repeats repetition
	kind    int // of the layers that it runs in

	// The stage that is complete after it, if it names one, and where its result is in scratch memory.
	stage                          string
	offset, elements, elementBytes int
}

// plan is the step of a reference: amk::ReferenceInfo and its operations.
type plan struct {
	threads, layers, vocab int
	scratchBytes           int64
	kinds                  []int // of the first layers; they repeat
	operations             []operation
}

// Sizes of amk::ReferenceInfo and amk::Operation.
const (
	referenceInfoSize = 4*4 + 8
	operationSize     = 32 + 3*4 + 32 + 3*4
)

// decodePlan reads what a fatbin says about its reference, of as many GPUs, and refuses contents that no build has.
func decodePlan(info, kinds, step []byte, ranks int) (*plan, error) {
	le := binary.LittleEndian
	if len(info) != referenceInfoSize || len(step) == 0 || len(step)%operationSize != 0 {
		return nil, fmt.Errorf("%s and %s have %d and %d bytes, and %d and a multiple of %d are expected",
			referenceName, referenceStepName, len(info), len(step), referenceInfoSize, operationSize)
	}
	if len(kinds) == 0 || len(kinds)%4 != 0 {
		return nil, fmt.Errorf("%s has %d bytes, and a multiple of 4 is expected", referenceKindsName, len(kinds))
	}
	if v := le.Uint32(info); v != abi {
		return nil, fmt.Errorf("its runtime ABI is %d, and this program speaks %d", v, abi)
	}
	p := &plan{threads: int(le.Uint32(info[4:])), layers: int(le.Uint32(info[8:])), vocab: int(le.Uint32(info[12:])),
		scratchBytes: int64(le.Uint64(info[16:]))}
	for at := 0; at < len(kinds); at += 4 {
		p.kinds = append(p.kinds, int(le.Uint32(kinds[at:])))
	}
	for at := 0; at < len(step); at += operationSize {
		raw := step[at:]
		word := func(i int) int { return int(le.Uint32(raw[i:])) }
		o := operation{kernel: text(raw[:32]), blocks: word(32), repeats: repetition(word(36)), kind: word(40),
			stage:  text(raw[44:76]),
			offset: word(76), elements: word(80), elementBytes: word(84)}
		switch {
		case o.kernel == "" || o.blocks < 1 || o.repeats > sums ||
			o.repeats == sums && (o.stage == "" || o.elementBytes != 4) || o.repeats == observes && o.elements%2 != 0:
			return nil, fmt.Errorf("%s: operation %d (%q) is malformed", referenceStepName, len(p.operations), o.kernel)
		case o.stage != "" && (o.elements < 1 ||
			int64(o.offset)+int64(o.elements)*int64(o.elementBytes) > p.scratchBytes):
			return nil, fmt.Errorf("%s: the result of %s lies outside its scratch memory", referenceStepName, o.kernel)
		}
		p.operations = append(p.operations, o)
	}
	last := p.operations[len(p.operations)-1]
	if last.stage == "" || last.elements*ranks != p.vocab || last.elementBytes != 4 {
		return nil, fmt.Errorf("%s: the last operation, %s, does not make logits", referenceStepName, last.kernel)
	}
	return p, nil
}

// text reads a C string out of its field.
func text(field []byte) string {
	s, _, _ := bytes.Cut(field, []byte{0})
	return string(s)
}

// walk calls do for every operation of a step in order, those of the layers once per layer of their kind.
func (p *plan) walk(do func(o *operation, layer int) error) error {
	for ops := p.operations; len(ops) > 0; {
		n, layers := 1, 1
		if ops[0].repeats != once {
			layers = p.layers
			for n < len(ops) && ops[n].repeats != once {
				n++
			}
		}
		for layer := range layers {
			for i := range ops[:n] {
				if ops[i].repeats != once && ops[i].kind != p.kinds[layer%len(p.kinds)] {
					continue
				}
				if err := do(&ops[i], layer); err != nil {
					return err
				}
			}
		}
		ops = ops[n:]
	}
	return nil
}
