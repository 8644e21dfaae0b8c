package agent

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"amkc/ir/diag"
)

// A kind says what a tool does to the world, which clients may ask their user about.
type kind int

const (
	reads  kind = iota // it changes nothing
	writes             // it adds files to the root
)

// add adds a tool that runs a verb. Its schema is that of the input, a struct whose fields become the arguments of the
// verb: as flags of their names, unless a tag amkc says otherwise (see arguments.field). An input whose verb may
// measure has a method measures.
func add[In any](s *Server, name, description string, k kind) {
	no := false
	mcp.AddTool(s.mcp, &mcp.Tool{Name: name, Description: description, Annotations: &mcp.ToolAnnotations{
		ReadOnlyHint: k == reads, DestructiveHint: &no, OpenWorldHint: &no}},
		func(ctx context.Context, request *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
			result, fails, err := s.run(ctx, request, func(a *arguments) { a.command(name, in) })
			if err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(result)}},
				StructuredContent: result, IsError: fails}, nil, nil
		})
}

func (s *Server) addTools() {
	add[noInput](s, "doctor", "Say whether this machine has what compiling and running need: nvcc, g++, go, a GPU.",
		reads)
	add[noInput](s, "targets", "List the GPUs that a model can be compiled for.", reads)
	add[noInput](s, "models", "List the model families that amkc compiles, and well known ones that it refuses.", reads)
	add[explainInput](s, "explain", "Say what a diagnostic code means and what to do about it, or what a knob does.",
		reads)
	add[modelInput](s, "space", "List the knobs of a model's schedule with the values that make a difference, their "+
		"defaults, and the values that are refused.", reads)
	add[costInput](s, "cost", "Predict the time of a step or of a pass of several tokens at positions, and where it "+
		"goes. Nothing is run.", reads)
	add[evalInput](s, "eval", "Judge one configuration against another: proof, check, and times that are measured on "+
		"a GPU or predicted. The verdict is signed, and the only number that a campaign takes.", writes)
	add[fileInput](s, "validate", "Prove that a program file (schedule.amk or program.json of a build) can neither "+
		"deadlock nor race, or say why not.", reads)
	add[simulateInput](s, "simulate", "Run a program file in many orders of its tasks, and show the shortest one that "+
		"goes wrong. That none did is not a proof: validate gives one.", reads)
	add[buildInput](s, "build", "Compile a model into a build directory. no_build emits sources without nvcc and go. "+
		"The default of target is auto, the GPU of this machine: without one, name the GPU that the build is for.",
		writes)
	add[checkInput](s, "check", "Compare the kernel of a build with its reference kernels, on the GPU.", reads)
	add[benchInput](s, "bench", "Measure builds on the GPU, interleaved, each after its check.", reads)
	add[diffInput](s, "diff", "Compare two builds.", reads)
	add[oneBuildInput](s, "verify", "Say whether a build is what its program says: digests, the schedule that is read "+
		"back out of its sources, and its proof.", reads)
	add[qualityInput](s, "quality", "Measure how far a model or a build is from another on a text: perplexities, KL "+
		"divergence, agreement. It takes no time of a step.", reads)
	add[formatsInput](s, "formats", "Search which format each matrix is stored in, by quality on a text and predicted "+
		"time. What it finds is for weights of other tools.", reads)
	add[searchInput](s, "search", "Look for a faster schedule, trial by trial, in a campaign directory. Called again "+
		"with the same arguments, it goes on with the campaign.", writes)
	add[campaignInput](s, "campaign_status", "Say how far a campaign is, and what is best.", reads)
	add[campaignInput](s, "campaign_next", "Say what the next verdict of a campaign has to be against, at which "+
		"positions.", reads)
	add[recordInput](s, "campaign_record", "Add a verdict that eval has saved to a campaign. A number that somebody "+
		"states is refused.", writes)
	add[campaignInput](s, "campaign_report", "Write report.html and results.tsv of a campaign.", writes)
	add[campaignInput](s, "campaign_verify", "Hold a campaign to its signatures, its order and its rules.", reads)
}

type noInput struct{}

// modelInput is a model with what it is compiled for.
type modelInput struct {
	Model         string `json:"model" amkc:",in" jsonschema:"directory with config.json and, for weights, safetensors"`
	Target        string `json:"target,omitempty" jsonschema:"GPU of targets; default h200, to build or measure auto"`
	DType         string `json:"dtype,omitempty" jsonschema:"bf16, fp16 or fp32; default: that of the checkpoint"`
	Weights       string `json:"weights,omitempty" jsonschema:"store matrices as int4, int8, fp8 or none"`
	Cache         string `json:"cache,omitempty" jsonschema:"int8 stores keys and values in 8 bits"`
	MaxSeq        int    `json:"max_seq,omitempty" jsonschema:"positions to compile for"`
	RandomWeights string `json:"random_weights,omitempty" jsonschema:"seed to invent weights from, if there are none"`

	Adapters []string `json:"adapters,omitempty" amkc:"--adapter,in" jsonschema:"LoRA adapters to merge, in order"`
}

type explainInput struct {
	Codes []string `json:"codes" amkc:"--" jsonschema:"codes such as AMK4005, knobs such as ring.pace; none: all codes"`
}

type costInput struct {
	modelInput
	Settings  settings `json:"settings,omitempty" amkc:"--config" jsonschema:"knobs that are not defaults, by path"`
	Positions []int    `json:"positions,omitempty" amkc:"--position" jsonschema:"default: 0"`
	Prompts   []int    `json:"prompts,omitempty" amkc:"--prompt" jsonschema:"lengths of prompts: time to first token"`
	Rows      int      `json:"rows,omitempty" jsonschema:"of a sequence in a pass; default: 1"`
	Sequences int      `json:"sequences,omitempty" jsonschema:"in a pass; default: 1"`
}

// judgedInput is how configurations are judged.
type judgedInput struct {
	Device    string `json:"device,omitempty" jsonschema:"cost predicts (default), cuda measures on the GPU"`
	Positions []int  `json:"positions,omitempty" amkc:"--position" jsonschema:"default: 0"`
	SameBits  bool   `json:"same_bits,omitempty" jsonschema:"refuse another order of additions"`
	Timeout   int    `json:"timeout_s,omitempty" amkc:"--timeout" jsonschema:"seconds for an evaluation; default 600"`
}

func (in judgedInput) measures() bool { return in.Device == "cuda" }

type evalInput struct {
	modelInput
	judgedInput
	Candidate proposal `json:"candidate,omitempty" amkc:"--config" jsonschema:"knobs that are not defaults, by path"`
	Baseline  settings `json:"baseline,omitempty" jsonschema:"the same of what it is to beat; default: none"`
	Rung      string   `json:"rung,omitempty" jsonschema:"screen or final (default)"`
	Save      string   `json:"save,omitempty" amkc:",save" jsonschema:"file to write to, for campaign_record"`
}

type fileInput struct {
	File string `json:"file" amkc:",in" jsonschema:"a program: .amk text, or JSON"`
}

type simulateInput struct {
	fileInput
	Orders    int    `json:"orders,omitempty" jsonschema:"of a step that has too many for all; default 16"`
	Seed      int    `json:"seed,omitempty" jsonschema:"the first order follows from it; default 1"`
	Seconds   int    `json:"seconds,omitempty" amkc:"--time" jsonschema:"stop after this time; default 10"`
	Positions listed `json:"positions,omitempty" amkc:"--position" jsonschema:"5, or 5/9 for two sequences"`
}

type buildInput struct {
	modelInput
	Settings settings `json:"settings,omitempty" amkc:"--config" jsonschema:"knobs that are not defaults, by path"`
	Out      string   `json:"out" amkc:"--out,out" jsonschema:"directory of the build"`
	NoBuild  bool     `json:"no_build,omitempty" jsonschema:"write sources and weights alone: no nvcc, no go"`
}

type oneBuildInput struct {
	Build string `json:"build" amkc:",in" jsonschema:"directory of a build"`
}

type checkInput struct {
	oneBuildInput
	Bisect bool `json:"bisect,omitempty" jsonschema:"compare stage by stage with the reference VM too"`
}

func (checkInput) measures() bool { return true }

type benchInput struct {
	Builds    []string `json:"builds" amkc:",in" jsonschema:"directories of builds"`
	Positions []int    `json:"positions,omitempty" amkc:"--position" jsonschema:"default: 0"`
	Rounds    int      `json:"rounds,omitempty" jsonschema:"turns of each build at each position"`
}

func (benchInput) measures() bool { return true }

type diffInput struct {
	A string `json:"a" amkc:",in" jsonschema:"directory of a build"`
	B string `json:"b" amkc:",in" jsonschema:"directory of a build"`
}

// textInput is a text that a model is measured on, and where. The GPU may be in use for a measurement: who may take it
// waits for its turn.
type textInput struct {
	Text    string `json:"text,omitempty" amkc:"--text,in" jsonschema:"file with a text; or ids, or ids_file"`
	IDs     []int  `json:"ids,omitempty" jsonschema:"token ids instead of a text"`
	IDsFile string `json:"ids_file,omitempty" amkc:"--ids-file,in" jsonschema:"NumPy array of ids instead of a text"`
	Tokens  int    `json:"tokens,omitempty" jsonschema:"most tokens of the text to use; default: all"`
	Window  int    `json:"window,omitempty" jsonschema:"tokens of a window, each a text of its own; default 512"`
	Device  string `json:"device,omitempty" jsonschema:"ref is the reference VM, cuda the GPU; default: the GPU if any"`
}

func (in textInput) measures() bool { return in.Device != "ref" }

type qualityInput struct {
	modelInput
	Against        string `json:"against" amkc:"--against,in" jsonschema:"a model or a build to hold the first against"`
	AgainstDType   string `json:"against_dtype,omitempty" jsonschema:"what dtype is, for that one"`
	AgainstWeights string `json:"against_weights,omitempty" jsonschema:"what weights is, for that one"`
	AgainstCache   string `json:"against_cache,omitempty" jsonschema:"what cache is, for that one"`
	textInput
	Greedy *int `json:"greedy,omitempty" jsonschema:"tokens to decode after each prompt; default 64; 0: none"`
}

type formatsInput struct {
	modelInput
	textInput
	Formats  listed  `json:"formats,omitempty" amkc:"--format" jsonschema:"to try for each; default int8 and int4"`
	KL       float64 `json:"kl,omitempty" jsonschema:"allowed mean KL divergence in nats; default 0.01"`
	Position int     `json:"position,omitempty" jsonschema:"of the step whose time counts; default 0"`
}

// searchInput is a campaign with what it was asked to do.
type searchInput struct {
	modelInput
	judgedInput
	Campaign string   `json:"campaign" amkc:"--out,out" jsonschema:"directory of the campaign"`
	Trials   int      `json:"trials,omitempty" jsonschema:"end when the campaign has this many trials"`
	Minutes  int      `json:"minutes,omitempty" jsonschema:"end this call after this many minutes"`
	HeldOut  []int    `json:"held_out,omitempty" jsonschema:"positions to confirm the best at"`
	Start    settings `json:"start,omitempty" amkc:"--config" jsonschema:"knobs to begin at; default: all defaults"`
	Cold     bool     `json:"cold,omitempty" jsonschema:"begin at the unoptimised values"`
	Only     []string `json:"only,omitempty" jsonschema:"regions and knobs to vary; default: all"`
	Seed     string   `json:"seed,omitempty" jsonschema:"what proposals are drawn from"`
	Round    int      `json:"round,omitempty" jsonschema:"configurations screened in a round; default 9"`
}

// campaignInput names an existing campaign.
type campaignInput struct {
	Campaign string `json:"campaign" amkc:",in" jsonschema:"directory of the campaign"`
}

type recordInput struct {
	campaignInput
	Verdict string `json:"verdict" amkc:",in" jsonschema:"file that eval has saved its result to"`
}

// Settings by path: those of a configuration that a verb takes, which some schedule can have, and those of one that is
// judged, which may be anything. A list is one argument, with commas.
type (
	settings map[string]any
	proposal map[string]any
	listed   []string
)

// signs are the tools whose verbs sign verdicts, or verify them.
var signs = []string{"eval", "search", "campaign_record", "campaign_verify"}

// command is the command line of a tool with an input.
func (a *arguments) command(tool string, in any) {
	verb := strings.Split(tool, "_")
	switch verb[0] {
	case "build":
		verb[0] = "compile"
	case "eval", "space", "campaign":
		verb = append([]string{"search"}, verb...)
	}
	a.add(verb...)
	a.verb = len(verb)
	a.fields(reflect.ValueOf(in))
	if slices.Contains(signs, tool) {
		a.text("--key", a.s.options.Key)
	}
	measuring, is := in.(interface{ measures() bool })
	a.alone = is && measuring.measures()
	a.finds = tool == "doctor"
}

func (a *arguments) fields(in reflect.Value) {
	for i := range in.NumField() {
		f := in.Type().Field(i)
		if f.Anonymous {
			a.fields(in.Field(i))
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		flag, path := "--"+strings.ReplaceAll(name, "_", "-"), ""
		if tag, is := f.Tag.Lookup("amkc"); is {
			flag, path, _ = strings.Cut(tag, ",")
		}
		a.field(flag, path, in.Field(i).Interface())
	}
}

// field adds an argument, unless it is empty: the flag that the tag amkc of a field names, with a path after a comma
// if it is one: in, which exists; out, which is written to; or save, for the result. Without a flag it is positional.
func (a *arguments) field(flag, path string, value any) {
	switch v := value.(type) {
	case string:
		switch {
		case path == "in" && flag == "":
			a.existing(v)
		case path == "in":
			a.given(flag, v)
		case path == "out":
			a.written(flag, v)
		case path == "save":
			a.save(v)
		default:
			a.text(flag, v)
		}
	case []string:
		if flag == "--" {
			a.add(append([]string{"--"}, v...)...)
			return
		}
		for _, one := range v {
			a.field(flag, path, one)
		}
	case listed:
		a.text(flag, strings.Join(v, ","))
	case int:
		a.number(flag, v)
	case *int:
		if v != nil {
			a.add(flag + "=" + strconv.Itoa(*v))
		}
	case []int:
		a.numbers(flag, v)
	case float64:
		if v != 0 {
			a.text(flag, strconv.FormatFloat(v, 'g', -1, 64))
		}
	case bool:
		if v {
			a.add(flag)
		}
	case settings:
		a.settings(flag, v)
	case proposal:
		a.proposed(flag, v)
	default:
		a.fail(diag.Errorf(codeArgument, flag, "is of a type that no verb takes"))
	}
}
