package agent

import (
	"context"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A kind says what a tool does to the world, which clients may ask their user about.
type kind int

const (
	reads  kind = iota // it changes nothing
	writes             // it adds files to the root
)

// add adds a tool that runs a verb. Its schema is that of the input.
func add[In verbInput](s *Server, name, description string, k kind) {
	no := false
	mcp.AddTool(s.mcp, &mcp.Tool{Name: name, Description: description, Annotations: &mcp.ToolAnnotations{
		ReadOnlyHint: k == reads, DestructiveHint: &no, OpenWorldHint: &no}},
		func(ctx context.Context, request *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
			result, fails, err := s.run(ctx, request, in)
			if err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(result)}},
				StructuredContent: result, IsError: fails}, nil, nil
		})
}

func (s *Server) addTools() {
	add[doctorInput](s, "doctor", "Say whether this machine has what compiling and running need: nvcc, g++, go, a GPU.",
		reads)
	add[targetsInput](s, "targets", "List the GPUs that a model can be compiled for.", reads)
	add[modelsInput](s, "models", "List the model families that amkc compiles, and well known ones that it refuses.",
		reads)
	add[explainInput](s, "explain", "Say what a diagnostic code means and what to do about it, or what a knob "+
		"does.", reads)
	add[spaceInput](s, "space", "List the knobs of a model's schedule with the values that make a difference, their "+
		"defaults, and the values that are refused.", reads)
	add[costInput](s, "cost", "Predict the time of a step or of a pass of several tokens at positions, and where it "+
		"goes. Nothing is run.", reads)
	add[evalInput](s, "eval", "Judge one configuration against another: proof, check, and times that are measured "+
		"on a "+
		"GPU or predicted. The verdict is signed, and the only number that a campaign takes.", writes)
	add[validateInput](s, "validate", "Prove that a program file (schedule.amk or program.json of a build) can "+
		"neither "+
		"deadlock nor race, or say why not.", reads)
	add[simulateInput](s, "simulate", "Run a program file in many orders of its tasks, and show the shortest one that "+
		"goes wrong. That none did is no proof: validate gives one.", reads)
	add[buildInput](s, "build", "Compile a model into a build directory. no_build emits sources without nvcc and go. "+
		"The default of target is auto, the GPU of this machine: without one, name the GPU that the build is for.",
		writes)
	add[checkInput](s, "check", "Compare the kernel of a build with its reference kernels, on the GPU.", reads)
	add[benchInput](s, "bench", "Measure builds on the GPU, interleaved, each after its check.", reads)
	add[diffInput](s, "diff", "Compare two builds.", reads)
	add[verifyInput](s, "verify", "Say whether a build is what its program says: digests, the schedule that is read "+
		"back out of its sources, and its proof.", reads)
	add[qualityInput](s, "quality", "Measure how far a model or a build is from another on a text: perplexities, KL "+
		"divergence, agreement. It takes no time of a step.", reads)
	add[formatsInput](s, "formats", "Search which format each matrix is stored in, by quality on a text and predicted "+
		"time. What it finds is for weights of other tools.", reads)
}

// modelInput is a model with what it is compiled for.
type modelInput struct {
	Model         string `json:"model" jsonschema:"directory with config.json and, for weights, safetensors"`
	Target        string `json:"target,omitempty" jsonschema:"GPU of targets; default h200, to build or measure auto"`
	DType         string `json:"dtype,omitempty" jsonschema:"bf16, fp16 or fp32; default: that of the checkpoint"`
	Weights       string `json:"weights,omitempty" jsonschema:"store matrices as int4, int8, fp8 or none"`
	Cache         string `json:"cache,omitempty" jsonschema:"int8 stores keys and values in 8 bits"`
	MaxSeq        int    `json:"max_seq,omitempty" jsonschema:"positions to compile for"`
	RandomWeights string `json:"random_weights,omitempty" jsonschema:"seed to invent weights from, if there are none"`
}

func (m *modelInput) add(a *arguments) {
	a.existing(m.Model)
	a.text("--target", m.Target)
	a.text("--dtype", m.DType)
	a.text("--weights", m.Weights)
	a.text("--cache", m.Cache)
	a.number("--max-seq", m.MaxSeq)
	a.text("--random-weights", m.RandomWeights)
}

type doctorInput struct{}

func (doctorInput) command(a *arguments) {
	a.add("doctor")
	a.finds = true
}

type targetsInput struct{}

func (targetsInput) command(a *arguments) { a.add("targets") }

type modelsInput struct{}

func (modelsInput) command(a *arguments) { a.add("models") }

type explainInput struct {
	Codes []string `json:"codes" jsonschema:"codes such as AMK4005, and knobs such as ring.pace; none: all codes"`
}

func (in explainInput) command(a *arguments) {
	a.add(append([]string{"explain", "--"}, in.Codes...)...)
}

type spaceInput struct{ modelInput }

func (in spaceInput) command(a *arguments) {
	a.add("space")
	in.add(a)
}

type costInput struct {
	modelInput
	Settings  map[string]any `json:"settings,omitempty" jsonschema:"knobs that differ from their defaults, by path"`
	Positions []int          `json:"positions,omitempty" jsonschema:"default: 0"`
	Prompts   []int          `json:"prompts,omitempty" jsonschema:"lengths of prompts: time to the first token"`
	Rows      int            `json:"rows,omitempty" jsonschema:"of a sequence in a pass; default: 1"`
	Sequences int            `json:"sequences,omitempty" jsonschema:"in a pass; default: 1"`
}

func (in costInput) command(a *arguments) {
	a.add("cost")
	in.add(a)
	a.settings("--config", in.Settings)
	a.numbers("--position", in.Positions)
	a.numbers("--prompt", in.Prompts)
	a.number("--rows", in.Rows)
	a.number("--sequences", in.Sequences)
}

type evalInput struct {
	modelInput
	Candidate map[string]any `json:"candidate,omitempty" jsonschema:"knobs that differ from their defaults, by path"`
	Baseline  map[string]any `json:"baseline,omitempty" jsonschema:"the same of what it is to beat; default: none"`
	Device    string         `json:"device,omitempty" jsonschema:"cost predicts (default), cuda measures on the GPU"`
	Positions []int          `json:"positions,omitempty" jsonschema:"default: 0"`
	Rung      string         `json:"rung,omitempty" jsonschema:"screen, race or final (default)"`
	Stage     string         `json:"stage,omitempty" jsonschema:"judge by the time of this stage by itself"`
	SameBits  bool           `json:"same_bits,omitempty" jsonschema:"refuse another order of additions"`
	Timeout   int            `json:"timeout_s,omitempty" jsonschema:"seconds; default 600"`
	Save      string         `json:"save,omitempty" jsonschema:"file to write the result to, for campaign_record"`
}

func (in evalInput) command(a *arguments) {
	a.add("eval")
	in.add(a)
	a.proposed("--config", in.Candidate)
	a.settings("--baseline", in.Baseline)
	a.text("--device", in.Device)
	a.numbers("--position", in.Positions)
	a.text("--rung", in.Rung)
	a.text("--stage", in.Stage)
	a.flag("--same-bits", in.SameBits)
	a.number("--timeout", in.Timeout)
	a.text("--key", a.s.options.Key)
	a.save(in.Save)
	a.alone = in.Device == "cuda"
}

type validateInput struct {
	File string `json:"file" jsonschema:"a program: .amk text, or JSON"`
}

func (in validateInput) command(a *arguments) {
	a.add("validate")
	a.existing(in.File)
}

type simulateInput struct {
	File      string   `json:"file" jsonschema:"a program: .amk text, or JSON"`
	Orders    int      `json:"orders,omitempty" jsonschema:"of a step that has too many for all; default 16"`
	Seed      int      `json:"seed,omitempty" jsonschema:"the first order follows from it; default 1"`
	Seconds   int      `json:"seconds,omitempty" jsonschema:"stop after this time; default 10"`
	Positions []string `json:"positions,omitempty" jsonschema:"as 5, or 5/9 for a pass of two sequences; default: ends"`
}

func (in simulateInput) command(a *arguments) {
	a.add("simulate")
	a.existing(in.File)
	a.number("--orders", in.Orders)
	a.number("--seed", in.Seed)
	a.number("--time", in.Seconds)
	a.text("--position", strings.Join(in.Positions, ","))
}

type buildInput struct {
	modelInput
	Settings map[string]any `json:"settings,omitempty" jsonschema:"knobs that differ from their defaults, by path"`
	Out      string         `json:"out" jsonschema:"directory of the build"`
	NoBuild  bool           `json:"no_build,omitempty" jsonschema:"write sources and weights alone: no nvcc, no go"`
}

func (in buildInput) command(a *arguments) {
	a.add("compile")
	in.add(a)
	a.settings("--config", in.Settings)
	a.written("--out", in.Out)
	a.flag("--no-build", in.NoBuild)
}

type checkInput struct {
	Build  string `json:"build" jsonschema:"directory of a build"`
	Bisect bool   `json:"bisect,omitempty" jsonschema:"compare stage by stage with the reference VM too"`
}

func (in checkInput) command(a *arguments) {
	a.add("check")
	a.existing(in.Build)
	a.flag("--bisect", in.Bisect)
	a.alone = true
}

type benchInput struct {
	Builds    []string `json:"builds" jsonschema:"directories of builds"`
	Positions []int    `json:"positions,omitempty" jsonschema:"default: 0"`
	Rounds    int      `json:"rounds,omitempty" jsonschema:"turns of each build at each position"`
}

func (in benchInput) command(a *arguments) {
	a.add("bench")
	for _, dir := range in.Builds {
		a.existing(dir)
	}
	a.numbers("--position", in.Positions)
	a.number("--rounds", in.Rounds)
	a.alone = true
}

type diffInput struct {
	A string `json:"a" jsonschema:"directory of a build"`
	B string `json:"b" jsonschema:"directory of a build"`
}

func (in diffInput) command(a *arguments) {
	a.add("diff")
	a.existing(in.A)
	a.existing(in.B)
}

type verifyInput struct {
	Build string `json:"build" jsonschema:"directory of a build"`
}

func (in verifyInput) command(a *arguments) {
	a.add("verify")
	a.existing(in.Build)
}

// textInput is a text that a model is measured on, and where. The GPU may be in use for a measurement: who may take it
// waits for its turn.
type textInput struct {
	Text    string `json:"text,omitempty" jsonschema:"file with a text; or ids, or ids_file"`
	IDs     []int  `json:"ids,omitempty" jsonschema:"token ids instead of a text"`
	IDsFile string `json:"ids_file,omitempty" jsonschema:"NumPy array of token ids instead of a text"`
	Tokens  int    `json:"tokens,omitempty" jsonschema:"most tokens of the text to use; default: all"`
	Window  int    `json:"window,omitempty" jsonschema:"tokens of a window, each a text of its own; default 512"`
	Device  string `json:"device,omitempty" jsonschema:"ref is the reference VM, cuda the GPU; default: the GPU if any"`
}

func (in *textInput) add(a *arguments) {
	a.given("--text", in.Text)
	a.numbers("--ids", in.IDs)
	a.given("--ids-file", in.IDsFile)
	a.number("--tokens", in.Tokens)
	a.number("--window", in.Window)
	a.text("--device", in.Device)
	a.alone = in.Device != "ref"
}

type qualityInput struct {
	modelInput
	Against        string `json:"against" jsonschema:"directory of a model or a build to hold the first against"`
	AgainstDType   string `json:"against_dtype,omitempty" jsonschema:"what dtype is, for that one"`
	AgainstWeights string `json:"against_weights,omitempty" jsonschema:"what weights is, for that one"`
	AgainstCache   string `json:"against_cache,omitempty" jsonschema:"what cache is, for that one"`
	textInput
	Greedy *int `json:"greedy,omitempty" jsonschema:"tokens to decode after each prompt; default 64; 0: none"`
}

func (in qualityInput) command(a *arguments) {
	a.add("quality")
	in.modelInput.add(a)
	a.given("--against", in.Against)
	a.text("--against-dtype", in.AgainstDType)
	a.text("--against-weights", in.AgainstWeights)
	a.text("--against-cache", in.AgainstCache)
	in.textInput.add(a)
	if in.Greedy != nil {
		a.add("--greedy=" + strconv.Itoa(*in.Greedy))
	}
}

type formatsInput struct {
	modelInput
	textInput
	Formats  []string `json:"formats,omitempty" jsonschema:"to try for each matrix; default int8 and int4"`
	KL       float64  `json:"kl,omitempty" jsonschema:"allowed mean KL divergence in nats; default 0.01"`
	Position int      `json:"position,omitempty" jsonschema:"of the step whose time counts; default 0"`
}

func (in formatsInput) command(a *arguments) {
	a.add("formats")
	in.modelInput.add(a)
	in.textInput.add(a)
	a.text("--format", strings.Join(in.Formats, ","))
	if in.KL != 0 {
		a.text("--kl", strconv.FormatFloat(in.KL, 'g', -1, 64))
	}
	a.number("--position", in.Position)
}
