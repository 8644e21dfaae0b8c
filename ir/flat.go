package ir

// Flat is a variant unrolled: one entry per task, every name resolved to an index, a and b replaced in every view.
// Validate proves this form, and refvm runs it. Programs of the AMK profile are converted to it directly.
type Flat struct {
	Name     string // of the variant
	Lo, Hi   int    // positions it is for, both ends included; with several sequences, of each
	Pass     Pass
	Ranks    int     // that the queues are of, as many of each; 0 means 1
	Peers    int     // ranks besides, which do as the first does: not all of their tasks are listed (UnrollWithPeers)
	SMs      int     // queues, rank by rank; tasks have SM in [0, SMs), or -1 when they have none
	Target   *Target // nil: any
	Buffers  []Buffer
	Pages    []Page
	Counters []Counter
	Tasks    []Task // an SM's queue is its tasks in this order
}

// A Task is one SM's span of one stage.
type Task struct {
	Name   string
	SM     int // -1: unassigned, and then it has no program order
	Layer  int // of the model; 0 for a task of none, too
	Ops    []FlatOp
	Waits  []FlatWait
	Signal int // counter index, or -1
	Rank   int // of a peer whose task it is, which is in no queue; 0 for all others
	Twin   int // of a peer's task: the one that the first rank has in its place
}

// FlatOp is an op whose operands name buffers by index; the names in Out and In are those of the stage, unresolved.
type FlatOp struct {
	Op
	OutBuf []int // buffer indices; -1 for a temporary
	InBuf  []int
}

// FlatWait is a wait on a counter by index.
type FlatWait struct {
	Counter   int
	Threshold int
}

// Access is one view of a task, as a footprint.
type Access struct {
	Buf   int
	Dims  []Range
	Write bool
}

// Footprint appends what the task touches to dst: for every op the views it reads, then those it writes, in op order.
// Temporaries are left out.
func (t *Task) Footprint(dst []Access) []Access {
	for i := range t.Ops {
		op := &t.Ops[i]
		for k, b := range op.InBuf {
			if b >= 0 {
				dst = append(dst, Access{Buf: b, Dims: op.In[k].Dims})
			}
		}
		for k, b := range op.OutBuf {
			if b >= 0 {
				dst = append(dst, Access{Buf: b, Dims: op.Out[k].Dims, Write: true})
			}
		}
	}
	return dst
}
