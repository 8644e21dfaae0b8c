package population

import "amkc/ir"

// Names, indices and intervals.
var structureOperators = []Operator{
	operator("buffer-name-twice", ruleStructure, func(d *draft) bool {
		a := d.r.IntN(len(d.buffers))
		b := d.findBuffer(func(b *ir.Buffer) bool { return b.Name != d.buffers[a].Name })
		if b >= 0 {
			d.buffers[b].Name = d.buffers[a].Name
		}
		return b >= 0
	}),
	operator("counter-name-twice", ruleStructure, func(d *draft) bool {
		a := d.r.IntN(len(d.counters))
		b := d.find(len(d.counters), func(i int) bool { return d.counters[i].Name != d.counters[a].Name })
		if b >= 0 {
			d.counters[b].Name = d.counters[a].Name
		}
		return b >= 0
	}),
	operator("page-name-twice", ruleStructure, func(d *draft) bool {
		if len(d.pages) < 2 {
			return false
		}
		d.pages[0].Name = d.pages[1].Name
		return true
	}),
	operator("task-name-twice", ruleStructure, func(d *draft) bool {
		if d.units() < 2 {
			return false
		}
		u := 1 + d.r.IntN(d.units()-1)
		if d.flat != nil {
			d.flat.Tasks[u].Name = d.flat.Tasks[u-1].Name
		} else {
			d.stages[u].Name = d.stages[u-1].Name
		}
		return true
	}),
	operator("no-such-sm", ruleStructure, func(d *draft) bool {
		u := d.r.IntN(d.units())
		if d.flat != nil {
			d.flat.Tasks[u].SM = d.flat.SMs + d.r.IntN(2)
			return true
		}
		sms := ir.MaxSMs
		if d.prog.Target != nil {
			sms = d.prog.Target.SMs
		}
		if dist := &d.stages[u].Dist; dist.Kind == ir.Explicit {
			d.ownSpan(u).SM = sms
		} else {
			dist.SMs = sms + 1
		}
		return true
	}),
	operator("no-such-counter", ruleStructure, func(d *draft) bool {
		u, k, ok := d.findWait()
		if !ok {
			return false
		}
		d.threshold(u, k) // copies the list
		if d.flat != nil {
			d.flat.Tasks[u].Waits[k].Counter = len(d.counters)
		} else {
			d.stages[u].Waits[k].Counter = "nowhere"
		}
		return true
	}),
	operator("no-such-buffer", ruleStructure, func(d *draft) bool {
		x, ok := d.findView(readUse)
		if !ok {
			return false
		}
		d.ownView(x.viewAt).Buf = "nowhere"
		if d.flat != nil {
			d.flat.Tasks[x.unit].Ops[x.opAt.op].InBuf[x.arg] = len(d.buffers)
		}
		return true
	}),
	operator("interval", ruleMemory, func(d *draft) bool {
		lo, hi := d.interval()
		switch d.r.IntN(4) {
		case 0:
			*lo++
		case 1:
			*lo--
		case 2:
			*hi++
		default:
			*hi--
		}
		return true
	}),
}

// interval is that of the positions the variant is for.
func (d *draft) interval() (lo, hi *int) {
	if d.flat != nil {
		return &d.flat.Lo, &d.flat.Hi
	}
	return &d.variant.Lo, &d.variant.Hi
}
