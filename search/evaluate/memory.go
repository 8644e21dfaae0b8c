package evaluate

import (
	"amkc/compiler"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/host"
)

// mostMemory is the part of a GPU's memory that a configuration may take: the playbook's. What drivers, libraries and
// other processes take is not known.
const mostMemory = 0.8

// room refuses a configuration that takes too much of the target's memory, if that is known.
func room(p *ir.Program, t *ir.Target) error {
	if t.HBMBytes <= 0 {
		return nil
	}
	f, err := compiler.Memory(p)
	if err != nil {
		return err
	}
	most := uint64(mostMemory * float64(t.HBMBytes))
	if f.Bytes() <= most {
		return nil
	}
	d := diag.Errorf(codeMemory, "target "+t.Name, "has %s of memory, and this configuration takes %s, more than "+
		"the %.0f %% (%s) that one may take", host.FormatBytes(uint64(t.HBMBytes)), host.FormatBytes(f.Bytes()),
		100*mostMemory, host.FormatBytes(most))
	if fits := f.Fits(most); fits > 0 {
		return d.Suggest("want --max-seq %d or less, or --memory GIB if the GPU has more", fits)
	}
	return d.Suggest("want a GPU with more memory, --memory GIB if this one has more, or narrower weights")
}
