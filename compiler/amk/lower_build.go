package amk

// A builder is a lowering in progress. Buffer, counter and task ids are dense, in the order of creation.
type builder struct {
	Request
	knobs knobs
	keys  weightNames
	kvLen int
	scale Number

	prog      *Program
	weights   map[string]int // buffer id by state-dict key
	pos       int            // the I32 input buffers that layers read
	reshapeID int
	quantized int // projections with quantised weights
}

// A tensor is a buffer and the wait after which it may be read.
type tensor struct {
	buf   int
	ready Wait
}

func (b *builder) buffer(name string, kind BufferKind, dtype DType, shape ...int) int {
	id := len(b.prog.Buffers)
	b.prog.Buffers = append(b.prog.Buffers, Buffer{ID: id, Name: name, Kind: kind, DType: dtype, Shape: shape})
	return id
}

func (b *builder) activation(name string, shape ...int) int {
	return b.buffer(name, Activation, b.DType, shape...)
}

// weight returns the buffer of an unquantised weight, created at its first use.
func (b *builder) weight(key string, shape ...int) int {
	if id, ok := b.weights[key]; ok {
		return id
	}
	id := b.weightBuffer(key, b.DType, shape...)
	b.weights[key] = id
	return id
}

func (b *builder) weightBuffer(key string, dtype DType, shape ...int) int {
	id := b.buffer(key, Weight, dtype, shape...)
	b.prog.Buffers[id].Source = &key
	return id
}

func (b *builder) counter(note string) int {
	id := len(b.prog.Counters)
	b.prog.Counters = append(b.prog.Counters, Counter{ID: id, Note: note})
	return id
}

func (b *builder) task(t Task) {
	t.ID = len(b.prog.Tasks)
	b.prog.Tasks = append(b.prog.Tasks, t)
}

// single emits a task with a counter of its own and returns its output.
func (b *builder) single(t Task) tensor { return b.noted(t, t.Label) }

func (b *builder) noted(t Task, note string) tensor {
	t.OutCounter = b.counter(note)
	b.task(t)
	return tensor{t.Outputs[0], Wait{t.OutCounter, 1}}
}

// kv is an entry of an Object.
func kv(key string, val Value) entry[string, Value] { return entry[string, Value]{key, val} }

// object builds an Object from entries with distinct keys.
func object(entries ...entry[string, Value]) Object {
	var o Object
	for _, e := range entries {
		o.Set(e.key, e.val)
	}
	return o
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
