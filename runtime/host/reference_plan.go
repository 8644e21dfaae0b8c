package host

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Names in the fatbin of the reference.
const (
	referenceName     = "amk_reference"
	referenceStepName = "amk_reference_step"
)

// How often an operation of the reference is carried out (amk/reference.cuh).
type repetition uint32

const (
	once      repetition = iota
	eachLayer            // those of a layer lie side by side
	observes             // in each layer, and only to see what the megakernel has left in the cache
)

// An operation is one launch of the reference (amk::Operation).
type operation struct {
	kernel  string
	blocks  int
	repeats repetition

	// The stage that is complete after it, if it names one, and where its result lies in scratch memory.
	stage                          string
	offset, elements, elementBytes int
}

// plan is the step of a reference: amk::ReferenceInfo and its operations.
type plan struct {
	threads, layers, vocab int
	scratchBytes           int64
	operations             []operation
}

// Sizes of amk::ReferenceInfo and amk::Operation.
const (
	referenceInfoSize = 4*4 + 8
	operationSize     = 32 + 2*4 + 32 + 3*4
)

// decodePlan reads what a fatbin says about its reference, and refuses contents that no build has.
func decodePlan(info, step []byte) (*plan, error) {
	le := binary.LittleEndian
	if len(info) != referenceInfoSize || len(step) == 0 || len(step)%operationSize != 0 {
		return nil, fmt.Errorf("%s and %s have %d and %d bytes, and %d and a multiple of %d are expected",
			referenceName, referenceStepName, len(info), len(step), referenceInfoSize, operationSize)
	}
	if v := le.Uint32(info); v != abi {
		return nil, fmt.Errorf("its runtime ABI is %d, and this program speaks %d", v, abi)
	}
	p := &plan{threads: int(le.Uint32(info[4:])), layers: int(le.Uint32(info[8:])), vocab: int(le.Uint32(info[12:])),
		scratchBytes: int64(le.Uint64(info[16:]))}
	for at := 0; at < len(step); at += operationSize {
		raw := step[at:]
		word := func(i int) int { return int(le.Uint32(raw[i:])) }
		o := operation{kernel: text(raw[:32]), blocks: word(32), repeats: repetition(word(36)), stage: text(raw[40:72]),
			offset: word(72), elements: word(76), elementBytes: word(80)}
		switch {
		case o.kernel == "" || o.blocks < 1 || o.repeats > observes:
			return nil, fmt.Errorf("%s: operation %d (%q) is malformed", referenceStepName, len(p.operations), o.kernel)
		case o.stage != "" && (o.elements < 1 ||
			int64(o.offset)+int64(o.elements)*int64(o.elementBytes) > p.scratchBytes):
			return nil, fmt.Errorf("%s: the result of %s lies outside its scratch memory", referenceStepName, o.kernel)
		}
		p.operations = append(p.operations, o)
	}
	last := p.operations[len(p.operations)-1]
	if last.stage == "" || last.elements != p.vocab || last.elementBytes != 4 {
		return nil, fmt.Errorf("%s: the last operation, %s, does not make logits", referenceStepName, last.kernel)
	}
	return p, nil
}

// text reads a C string out of its field.
func text(field []byte) string {
	s, _, _ := bytes.Cut(field, []byte{0})
	return string(s)
}

// walk calls do for every operation of a step in order, those of the layers once a layer.
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
				if err := do(&ops[i], layer); err != nil {
					return err
				}
			}
		}
		ops = ops[n:]
	}
	return nil
}
