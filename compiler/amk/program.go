package amk

// A Program is one decode step as a graph of tasks. Slices keep the order of the file; ids need not be dense or even
// unique in a loaded program.
type Program struct {
	IRVersion  string // as the file has it
	ABIVersion string
	Meta       Object  // provenance: model, gpu, regime, pos, kv_len, dtype, ...
	Target     *Target // nil is null
	Buffers    []Buffer
	Counters   []Counter
	Tasks      []Task
	Pages      *Pages  // nil is null
	Config     *Config // nil is null
}

// A Target describes a GPU. Bandwidths are in GB/s and rates in TFLOPS; the four Numbers keep the type of the file.
type Target struct {
	Name                   string
	SMArch                 int // 90 for sm_90
	NumSMs                 int
	SmemBytesPerSM         int
	SmemBytesPerBlockOptin int
	RegsPerSM              int
	MaxThreadsPerSM        int
	MaxRegsPerThread       int
	L2Bytes                int
	HBMBytes               int
	HBMBandwidthGBs        Number
	FP16TFLOPS             Number
	ClockGHz               Number
	SupportsCooperative    bool
	WDDMTDR                bool   // a display watchdog ends launches of some two seconds
	MeasuredBWGBs          Number // 0.0: not measured
	Note                   string
}

// A Buffer is a named tensor. Shape is in elements.
type Buffer struct {
	ID     int
	Name   string
	Kind   BufferKind
	DType  DType
	Shape  []int
	Space  MemSpace
	Source *string // state-dict key of a weight or constant, else nil
}

// A Counter counts the completed tasks that name it.
type Counter struct {
	ID   int
	Init int
	Note string
}

// A Task is one instruction. Inputs and Outputs are buffer ids. On completion the task adds 1 to OutCounter.
type Task struct {
	ID         int
	Op         Op
	Inputs     []int
	Outputs    []int
	OutCounter int
	Waits      []Wait
	Params     Object
	SM         *int // nil: not assigned
	EstBytes   Number
	EstFLOPs   Number
	Label      string
}

// A Wait holds a task back until the counter has reached the threshold.
type Wait struct {
	Counter   int
	Threshold int
}

// Pages binds activations to scratch slots: buffer id to page id, and the pages.
type Pages struct {
	BufferToPage OrderedMap[int, int]
	Pages        []Page
}

// A Page is one scratch slot of NBytes bytes. A live bound of -1 is unknown.
type Page struct {
	ID        int
	Space     MemSpace
	NBytes    int
	LiveStart int
	LiveEnd   int
}

// A Config is the search point behind a lowering.
type Config struct {
	Tiling            Object
	FusionGrouping    [][]string
	SMAssignment      SMAssignment
	PipeliningDepth   int
	PageAllocation    string
	ThreadsPerBlock   int
	SmemBytesPerBlock int
}

// An SMAssignment is a policy by name or, when Explicit is not nil, a map from task id to SM.
type SMAssignment struct {
	Policy   string
	Explicit *OrderedMap[int, int]
}

// DefaultConfig returns the configuration whose every field has the format's default. It is not what a request
// without configuration lowers with: that has none, and writes null.
func DefaultConfig() *Config {
	return &Config{
		SMAssignment:    SMAssignment{Policy: "load_balance"},
		PipeliningDepth: 2,
		PageAllocation:  "graph_color",
		ThreadsPerBlock: 256,
	}
}
