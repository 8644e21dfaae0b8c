package checkpoint

import (
	"cmp"

	"amkc/ir/diag"
)

func byExtent(a, b entry) int {
	return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
}

// checkExtents proves that the entries, sorted by extent, have the sizes that their shapes demand and cover the data
// [0, size) without overlap or hole. Empty tensors are allowed and take no place.
func checkExtents(name string, entries []entry, size int64) *diag.Diagnostic {
	covered, last := int64(0), ""
	for _, e := range entries {
		pos := tensorPos(name, e.Name)
		need, err := e.bytes(pos)
		switch {
		case err != nil:
			return err
		case e.begin > e.end:
			return diag.Errorf(codeRange, pos, "data_offsets [%d, %d] run backwards", e.begin, e.end)
		case e.end > size:
			return diag.Errorf(codeRange, pos, "data_offsets [%d, %d] end after the data, which has %d bytes", e.begin,
				e.end, size)
		case e.end-e.begin != need:
			return diag.Errorf(codeTensorSize, pos, "%s %v takes %d bytes, but data_offsets [%d, %d] span %d",
				e.DType, e.Shape, need, e.begin, e.end, e.end-e.begin)
		case e.begin < covered:
			return diag.Errorf(codeOverlap, pos, "begins at byte %d, before tensor %q ends at %d", e.begin, last,
				covered)
		case e.begin > covered:
			return diag.Errorf(codeHole, pos, "begins at byte %d, but the tensors before it end at %d", e.begin,
				covered)
		}
		covered, last = e.end, e.Name
	}
	if covered != size {
		return diag.Errorf(codeHole, name, "the tensors end at byte %d of the data, which has %d bytes", covered, size)
	}
	return nil
}
