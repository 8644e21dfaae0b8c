package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"unsafe"

	"amkc/runtime/driver"
	"amkc/runtime/infile"
)

// cudaReference runs the kernels of reference.fatbin, one after the other on one stream.
type cudaReference struct {
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
	return r, nil
}

// readPlan fetches the plan and looks its kernels up.
func (r *cudaReference) readPlan() error {
	info, err := r.constant(referenceName)
	if err != nil {
		return err
	}
	step, err := r.constant(referenceStepName)
	if err != nil {
		return err
	}
	if r.plan, err = decodePlan(info, step); err != nil {
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
func (r *cudaReference) Step(token, position int) ([]float32, error) {
	err := r.plan.walk(func(o *operation, layer int) error {
		if o.repeats == observes {
			return nil
		}
		return r.launch(o, layer, position, token)
	})
	if err != nil {
		return nil, err
	}
	last := &r.plan.operations[len(r.plan.operations)-1]
	if r.logits == nil {
		r.logits = make([]float32, last.elements)
	}
	return r.logits, r.read(last, unsafe.Slice((*byte)(unsafe.Pointer(&r.logits[0])), 4*len(r.logits)))
}

// Follow implements [Reference].
func (r *cudaReference) Follow(token int, t *Trace) ([]StagePair, error) {
	var pairs []StagePair
	var before []float32 // what the stage before handed over
	err := r.plan.walk(func(o *operation, layer int) error {
		if err := r.launch(o, layer, t.Position, token); err != nil || o.stage == "" {
			return err
		}
		raw := make([]byte, o.elements*o.elementBytes)
		if err := r.read(o, raw); err != nil {
			return err
		}
		values := decodeElements(raw, r.dtype(o))
		pair := StagePair{Stage: inLayer(o.stage, layer)}
		if o.repeats == observes {
			// The row of the cache is the last part of what was handed over: after q come k and v.
			if len(before) < len(values) {
				return nil
			}
			pair.Got, pair.Want = values, before[len(before)-len(values):]
			pairs = append(pairs, pair)
			return nil
		}
		pair.Got, pair.Want = t.Vector(pair.Stage), values
		if n := len(pair.Got); o.repeats == eachLayer && n < len(values) {
			pair.Want, values = values[:n], values[:n] // an operation has room for the largest layer
		}
		if before = pair.Got; before == nil {
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

// launch queues one operation.
func (r *cudaReference) launch(o *operation, layer, position, token int) error {
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

// replace puts the megakernel's result in the place of an operation's own.
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
