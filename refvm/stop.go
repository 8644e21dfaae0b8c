package refvm

import (
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	ops "amkc/ir/op"
)

var stopping = kernelTable{ops.STOP: stop}

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
		w.spend(len(ids))
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
		v := value{f: result, ints: true, last: w.last(&o.in[0])}
		if err := w.put(o, &o.out[k], v); err != nil {
			return err
		}
	}
	return nil
}

// StopAt sets the ids that end a run when a step chooses one of them. By default there are none.
func (s *Session) StopAt(ids []int) error {
	inputs := s.mem.byRole[ir.RoleStopIDs]
	if len(inputs) == 0 {
		return diag.Errorf(CodeBuffer, "program", "no id can end a run: want an IO_INPUT of I32 of role %s",
			ir.RoleStopIDs)
	}
	in := inputs[0]
	if len(ids) > len(in.data) {
		return diag.Errorf(CodeBuffer, "buffer "+in.buf.Name, "holds %d ids, want at most that many and not %d",
			len(in.data), len(ids))
	}
	for _, id := range ids {
		if id >= noIndex {
			return diag.Errorf(CodeValue, "buffer "+in.buf.Name, "is given id %d, want at most %d", id, noIndex-1)
		}
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

// Stopped reports whether the program has found that the run ends with the last step.
func (s *Session) Stopped() bool {
	return slices.ContainsFunc(s.mem.stops, func(found *store) bool {
		return slices.ContainsFunc(found.data, func(f float32) bool { return toInt(f) != 0 })
	})
}
