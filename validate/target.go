package validate

// checkTarget: every SM that a task runs on is one of the target's. Unrolling makes as many queues as the tasks ask
// for, so that checkStructure alone would not see it.
func (p *Proof) checkTarget() {
	t := p.flat.Target
	if t == nil {
		return
	}
	for i := range p.flat.Tasks {
		if sm := p.flat.Tasks[i].SM; sm >= t.SMs && !p.Full() {
			p.Errorf(CodeStructure, p.Task(int32(i)), "runs on SM %d, target %s has %d", sm, t.Name, t.SMs).
				Suggest("move it to an SM from 0 to %d, or compile for another target", t.SMs-1)
		}
	}
}
