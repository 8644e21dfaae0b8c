package refvm

import (
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	ops "amkc/ir/op"
)

var stopping = kernelTable{ops.STOP: stop}

// Names of the buffers by which a host and a step agree on when a run ends: the ids that end one, padded with noToken;
// whether this step is the last one, whatever it chooses; and what the step found.
const (
	stopIDsName, stopLastName = "stop.ids", "stop.last"
	stopName                  = "stop"
)

// noToken is an id that no step chooses.
const noToken = -1

// stop says of each token whether the run ends with it.
func stop(w *worker, o *op) error {
	tokens, tokenInts := w.bits(&o.in[0])
	ids, idInts := w.bits(&o.in[1])
	last, lastInts := w.bits(&o.in[2])
	if len(last) != 1 {
		return w.misfit(o, "has %d elements that say whether the step is the last, want 1", len(last))
	}
	result := w.alloc(len(tokens))
	for i := range tokens {
		ends := integer(last, lastInts, 0) != 0
		for k := range ids {
			ends = ends || integer(ids, idInts, k) == integer(tokens, tokenInts, i)
		}
		result[i] = fromInt(0)
		if ends {
			result[i] = fromInt(1)
		}
	}
	for k := range o.out {
		v := value{f: result, ints: true, last: w.last(&o.in[0]), scale: 1}
		if err := w.put(o, &o.out[k], v); err != nil {
			return err
		}
	}
	return nil
}

// StopAt sets the ids that end a run when a step chooses one of them; none do until then.
func (s *Session) StopAt(ids []int) error {
	in := s.mem.byName[stopIDsName]
	if in == nil || in.buf.Kind != ir.Input || !in.ints {
		return diag.Errorf(CodeBuffer, "buffer "+stopIDsName, "no id can end a run: want an IO_INPUT of I32")
	}
	if len(ids) > len(in.data) {
		return diag.Errorf(CodeBuffer, "buffer "+stopIDsName, "holds %d ids, want at most that many and not %d",
			len(in.data), len(ids))
	}
	for i := range in.data {
		id := noToken
		if i < len(ids) {
			id = ids[i]
		}
		in.data[i] = fromInt(int32(id))
	}
	return nil
}

// Stopped reports whether the run ends with the last step, as the program has found.
func (s *Session) Stopped() bool {
	found := s.mem.byName[stopName]
	return found != nil && found.ints &&
		slices.ContainsFunc(found.data, func(f float32) bool { return toInt(f) != 0 })
}
