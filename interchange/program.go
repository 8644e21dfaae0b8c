// Package interchange is the AMK IR 0.2.0 profile: the JSON programs that AutoMegaKernel writes and loads. It reads
// them and writes them back. Flatten turns a program into the form that is proved and run, and ToAMK exports a native
// program, as far as the profile can express it.
//
// The profile is a foreign format: amkc compiles its native form, package ir, and never this one. The command line and
// tests read it, and no package that takes part in a compile does. It imports ir and how files are read, and must not
// import passes, validate, refvm or codegen: those judge and execute what this package loads.
package interchange

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"unicode/utf16"

	"amkc/ir"
)

// The versions that ToAMK writes. A file is refused when the text before the first dot of its own differs.
const (
	IRVersion  = "0.2.0"
	ABIVersion = "0.2"
)

// Capacity limits of the profile's device ABI. Parse does not enforce them: a program above them is well-formed and
// for a validator to reject.
const (
	MaxInputs  = 8
	MaxOutputs = 4
	MaxWaits   = 8
	MaxRank    = 4
)

// flagSplitKV is the bit of the parameter flags with which ATTENTION_TILE writes the partial (acc, m, l) of its keys.
const flagSplitKV = 1 << 1

// A Program is one decode step as a graph of tasks. Slices keep the order of the file; ids need not be dense or even
// unique in a loaded program. Meta, Config and the Params of tasks are JSON objects, kept as the file has them.
//
// Of the tags, default is what a field has that is absent; a field without one is required. Text with the tag name
// names something, and is empty or in the grammar of names.
type Program struct {
	IRVersion  string          `json:"ir_version" name:"yes" default:"\"0.2.0\""` // as the file has it
	ABIVersion string          `json:"abi_version" name:"yes" default:"\"0.2\""`
	Meta       json.RawMessage `json:"meta" default:"{}"`     // provenance: model, gpu, regime, pos, kv_len, dtype, ...
	Target     *Target         `json:"target" default:"null"` // nil is null
	Buffers    []Buffer        `json:"buffers" default:"[]"`
	Counters   []Counter       `json:"counters" default:"[]"`
	Tasks      []Task          `json:"tasks" default:"[]"`
	Pages      *Pages          `json:"pages" default:"null"`  // nil is null
	Config     json.RawMessage `json:"config" default:"null"` // of the writer, or null; nothing follows from it
}

// A Target describes a GPU. Bandwidths are in GB/s and rates in TFLOPS.
type Target struct {
	Name                   string      `json:"name" name:"yes"`
	SMArch                 int         `json:"sm_arch"` // 90 for sm_90
	NumSMs                 int         `json:"num_sms"`
	SmemBytesPerSM         int         `json:"smem_bytes_per_sm"`
	SmemBytesPerBlockOptin int         `json:"smem_bytes_per_block_optin"`
	RegsPerSM              int         `json:"regs_per_sm"`
	MaxThreadsPerSM        int         `json:"max_threads_per_sm"`
	MaxRegsPerThread       int         `json:"max_regs_per_thread"`
	L2Bytes                int         `json:"l2_bytes"`
	HBMBytes               int         `json:"hbm_bytes"`
	HBMBandwidthGBs        json.Number `json:"hbm_bandwidth_gbs"`
	FP16TFLOPS             json.Number `json:"fp16_tflops"`
	ClockGHz               json.Number `json:"clock_ghz" default:"0.0"`
	SupportsCooperative    bool        `json:"supports_cooperative" default:"true"`
	WDDMTDR                bool        `json:"wddm_tdr" default:"false"`      // a display watchdog ends long launches
	MeasuredBWGBs          json.Number `json:"measured_bw_gbs" default:"0.0"` // 0.0: not measured
	Note                   string      `json:"note" default:"\"\""`
}

// A Buffer is a named tensor. Shape is in elements.
type Buffer struct {
	ID     int           `json:"id"`
	Name   string        `json:"name" name:"yes"`
	Kind   ir.BufferKind `json:"kind"`
	DType  ir.DType      `json:"dtype"`
	Shape  []int         `json:"shape"`
	Space  ir.Space      `json:"space"`
	Source *string       `json:"source" name:"yes" default:"null"` // state-dict key of a weight or constant, else nil
}

// A Counter counts the completed tasks that name it.
type Counter struct {
	ID   int    `json:"id"`
	Init int    `json:"init" default:"0"`
	Note string `json:"note" default:"\"\""`
}

// A Task is one instruction, one of the opcodes up to FUSED. Inputs and Outputs are buffer ids. On completion the task
// adds 1 to OutCounter.
type Task struct {
	ID         int             `json:"id"`
	Op         ir.Opcode       `json:"op"`
	Inputs     []int           `json:"inputs"`
	Outputs    []int           `json:"outputs"`
	OutCounter int             `json:"out_counter"`
	Waits      []Wait          `json:"waits" default:"[]"`
	Params     json.RawMessage `json:"params" default:"{}"`
	SM         *int            `json:"sm" default:"null"` // nil: not assigned
	EstBytes   json.Number     `json:"est_bytes" default:"0"`
	EstFLOPs   json.Number     `json:"est_flops" default:"0"`
	Label      string          `json:"label" name:"yes" default:"\"\""`
}

// A Wait holds a task back until the counter has reached the threshold.
type Wait struct {
	Counter   int `json:"counter"`
	Threshold int `json:"threshold"`
}

// Pages binds activations to scratch slots: buffer id to page id, and the pages.
type Pages struct {
	BufferToPage map[int]int `json:"buffer_to_page"`
	Pages        []Page      `json:"pages"`
}

// A Page is one scratch slot of NBytes bytes. A live bound of -1 is unknown.
type Page struct {
	ID        int      `json:"id"`
	Space     ir.Space `json:"space"`
	NBytes    int      `json:"nbytes"`
	LiveStart int      `json:"live_start" default:"-1"`
	LiveEnd   int      `json:"live_end" default:"-1"`
}

// targetsJSON are the GPUs that the profile knows. Figures and notes are the profile's, wrong ones included (an A10G
// has 72 SMs in some machines): AutoMegaKernel takes a GPU from the record in a program.
//
//go:embed targets.json
var targetsJSON []byte

// target returns the profile's record of a GPU, or nil if it has none with that name and as many SMs.
func target(t *ir.Target) *Target {
	var records []Target
	if err := json.Unmarshal(targetsJSON, &records); err != nil {
		panic(fmt.Sprintf("interchange: targets.json: %v", err)) // it is part of the executable
	}
	for i := range records {
		if r := &records[i]; t != nil && r.Name == t.Name && r.NumSMs == t.SMs {
			return r
		}
	}
	return nil
}

// Marshal writes the program as AutoMegaKernel does: indented by two, ASCII alone, and without a newline at the end.
// What Parse has read comes back with defaults filled in and unknown keys gone.
func (p *Program) Marshal() []byte {
	var indented bytes.Buffer
	e := json.NewEncoder(&indented)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(p); err != nil {
		panic(fmt.Sprintf("interchange: %v", err)) // Parse and ToAMK leave JSON in the fields that hold it
	}
	var out bytes.Buffer
	for _, c := range string(bytes.TrimSuffix(indented.Bytes(), []byte("\n"))) {
		switch {
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		case c > '~':
			fmt.Fprintf(&out, `\u%04x`, c)
		default:
			out.WriteByte(byte(c))
		}
	}
	return out.Bytes()
}
