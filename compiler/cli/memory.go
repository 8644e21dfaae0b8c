package cli

import (
	"fmt"

	"amkc/compiler"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/host"
)

// memoryReport is what a program takes of the memory of its target, in bytes, in JSON.
type memoryReport struct {
	host.Footprint
	Target int `json:"target"` // 0: not known
}

// memoryOf compares a program with the memory of its target. There is no report of a program that cannot be emitted.
func memoryOf(p *ir.Program) (*memoryReport, diag.List) {
	f, err := compiler.Memory(p)
	if err != nil {
		return nil, nil
	}
	return &memoryReport{f, p.Target.HBMBytes}, compiler.CheckMemory(p.Target, f)
}

func (r *memoryReport) String() string {
	format := host.FormatBytes
	has := ""
	if r.Target > 0 {
		has = " of " + format(uint64(r.Target))
	}
	return fmt.Sprintf("%s%s: weights %s, KV cache for %d positions %s, scratch %s",
		format(r.Bytes()), has, format(r.Weights), r.MaxSeq, format(r.Cache), format(r.Other))
}
