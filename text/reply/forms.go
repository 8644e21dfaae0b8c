package reply

import (
	"strings"
)

// A kind says where the body of a call ends.
type kind int

const (
	value  kind = iota // it is a value in JSON, and ends with its brackets
	python             // it is a list in Python, and ends likewise
	marked             // it ends in front of the closing mark
)

// A form is how models of some families write calls. All marks are as the tokenizer spells them, special tokens
// included.
type form struct {
	name       string
	wrap       marks    // around all calls; may be empty
	call       marks    // around a call or a list of calls; without an opening mark an answer begins with one
	alsoOpens  []string // other opening marks
	alsoCloses []string // other closing marks, which may stand besides the first
	separators string   // bytes that may stand between calls, besides spaces

	// header is what ends the name in front of arguments; empty: there is none. named finds the name in what is in
	// front of it; nil: it is all of that. prose is a name that is not a tool's: what follows is text.
	header string
	named  func(string) string
	prose  string

	kind   kind
	begins string                                       // what a body begins with, where that is always the same
	read   func(name, body string, tools *Tools) []Call // nil: there are none

	words []string // a template that has all of these asks for the form, if it does not write calls itself
}

func (f *form) bare() bool { return f.call.open == "" }

func (f *form) opens() []string {
	if f.bare() {
		return f.alsoOpens
	}
	return append([]string{f.call.open}, f.alsoOpens...)
}

func (f *form) closes() []string {
	if f.call.close == "" {
		return f.alsoCloses
	}
	return append([]string{f.call.close}, f.alsoCloses...)
}

// marks are all marks that the form has.
func (f *form) marks() []string {
	all := append(f.opens(), f.closes()...)
	return append(all, f.wrap.open, f.wrap.close, f.header)
}

// forms are those that are known. The first that reads what a template writes is chosen.
var forms = []*form{
	// Arguments in marks, values as text.
	{name: "Qwen3-Coder", call: marks{"<tool_call>", "</tool_call>"}, kind: marked, begins: "<function=",
		words: []string{"<tool_call>", "<function="},
		read:  tagged{marks{"<function=", ">"}, marks{"<parameter=", ">"}, marks{"", "</parameter>"}}.read},
	{name: "GLM-4.5", call: marks{"<tool_call>", "</tool_call>"}, kind: marked, words: []string{"<arg_key>"},
		read: tagged{marks{"", "<arg_key>"}, marks{"<arg_key>", "</arg_key>"},
			marks{"<arg_value>", "</arg_value>"}}.read},
	{name: "Seed-OSS", call: marks{"<seed:tool_call>", "</seed:tool_call>"}, kind: marked, begins: "<function=",
		words: []string{"<seed:tool_call>"},
		read:  tagged{marks{"<function=", ">"}, marks{"<parameter=", ">"}, marks{"", "</parameter>"}}.read},
	{name: "MiniMax-M2", call: marks{"<minimax:tool_call>", "</minimax:tool_call>"}, kind: marked,
		begins: `<invoke name="`,
		read: tagged{marks{`<invoke name="`, `">`}, marks{`<parameter name="`, `">`},
			marks{"", "</parameter>"}}.read},
	{name: "MiniCPM5", call: marks{`<function name="`, "</function>"}, kind: marked,
		read: tagged{marks{"", `">`}, marks{`<param name="`, `">`}, marks{"", "</param>"}}.read},
	{name: "DeepSeek-V3.2", call: marks{"<｜DSML｜function_calls>", "</｜DSML｜function_calls>"}, kind: marked,
		begins: `<｜DSML｜invoke name="`,
		read: tagged{marks{`<｜DSML｜invoke name="`, `">`}, marks{`<｜DSML｜parameter name="`, `"`},
			marks{">", "</｜DSML｜parameter>"}}.read},
	{name: "DeepSeek-V4", call: marks{"<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"}, kind: marked,
		begins: `<｜DSML｜invoke name="`,
		read: tagged{marks{`<｜DSML｜invoke name="`, `">`}, marks{`<｜DSML｜parameter name="`, `"`},
			marks{">", "</｜DSML｜parameter>"}}.read},
	{name: "Hunyuan 3", wrap: marks{"<tool_calls:opensource>", "</tool_calls:opensource>"},
		call: marks{"<tool_call:opensource>", "</tool_call:opensource>"}, kind: marked,
		read: tagged{marks{"", "<tool_sep:opensource>"}, marks{"<arg_key:opensource>", "</arg_key:opensource>"},
			marks{"<arg_value:opensource>", "</arg_value:opensource>"}}.read},
	{name: "Kimi-K3", wrap: marks{"<|open|>tools<|sep|>", "<|close|>tools<|sep|>"},
		call: marks{`<|open|>call tool="`, "<|close|>call<|sep|>"}, kind: marked,
		read: tagged{marks{"", `"`}, marks{`<|open|>argument key="`, `"`},
			marks{"<|sep|>", "<|close|>argument<|sep|>"}}.read},
	{name: "Muse", call: marks{"<atem:function_calls>", "</atem:function_calls>"}, kind: marked,
		begins: `<atem:invoke name="`,
		read: tagged{marks{`<atem:invoke name="`, `">`}, marks{`<atem:parameter name="`, `">`},
			marks{"", "</atem:parameter>"}}.read},

	// A name, and arguments in JSON.
	{name: "Mistral Small 3.2, Ministral 3, Devstral", call: marks{open: "[TOOL_CALLS]"}, header: "[ARGS]",
		named: before("[CALL_ID]"), read: arguments, words: []string{"[TOOL_CALLS]", "[ARGS]"}},
	{name: "Hunyuan", wrap: marks{"<tool_calls>", "</tool_calls>"}, call: marks{"<tool_call>", "</tool_call>"},
		alsoCloses: []string{"```"}, header: "```json", read: arguments, words: []string{"<tool_calls>", "```json"}},
	{name: "DeepSeek-R1", wrap: marks{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
		call:       marks{"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"},
		alsoCloses: []string{"```"}, header: "```json", named: afterLast("<｜tool▁sep｜>"), read: arguments,
		words: []string{"<｜tool▁calls▁begin｜>", "```json"}},
	{name: "DeepSeek-V3.1", wrap: marks{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
		call:   marks{"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"},
		header: "<｜tool▁sep｜>", read: arguments, words: []string{"<｜tool▁calls▁begin｜>"}},
	{name: "Kimi-K2", wrap: marks{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"},
		call:   marks{"<|tool_call_begin|>", "<|tool_call_end|>"},
		header: "<|tool_call_argument_begin|>", named: kimi, read: arguments,
		words: []string{"<|tool_calls_section_begin|>"}},
	{name: "Solar", wrap: marks{"<|tool_calls|>", "<|calls|>"},
		call:   marks{"<|tool_call:begin|>", "<|tool_call:end|>"},
		header: "<|tool_call:args|>", named: afterLast("<|tool_call:name|>"), read: arguments},
	{name: "gpt-oss", call: marks{"to=functions.", "<|call|>"}, header: "<|message|>", named: before("<|channel|>"),
		read: arguments},
	{name: "Functionary 3.1", call: marks{"<function=", "</function>"}, header: ">", read: arguments},
	{name: "Functionary 3.2", call: marks{open: ">>>"}, header: "\n", prose: "all", read: arguments},

	// Objects in JSON with a name and arguments, or lists of such.
	{name: "Hermes, Qwen, Granite 4, SmolLM3, EXAONE 4", call: marks{"<tool_call>", "</tool_call>"}, read: objects,
		words: []string{"<tool_call>", "</tool_call>", "arguments"}},
	{name: "Mistral", call: marks{open: "[TOOL_CALLS]"}, read: objects, words: []string{"[TOOL_CALLS]"}},
	{name: "Granite 3", call: marks{open: "<|tool_call|>"}, read: objects, words: []string{"<|tool_call|>"}},
	{name: "Phi-4-mini", call: marks{"<|tool_call|>", "<|/tool_call|>"}, alsoOpens: []string{"functools"},
		read: objects, words: []string{"<|tool|>", "<|/tool|>"}},
	{name: "Nemotron", call: marks{"<TOOLCALL>", "</TOOLCALL>"}, read: objects, words: []string{"<TOOLCALL>"}},
	{name: "Apriel, Hunyuan A13B, MiniMax-M1", call: marks{"<tool_calls>", "</tool_calls>"}, read: objects,
		words: []string{"<tool_calls>"}},
	{name: "Command R7B, Command A", call: marks{"<|START_ACTION|>", "<|END_ACTION|>"}, read: objects,
		words: []string{"<|START_ACTION|>"}},
	{name: "Command R", call: marks{"Action:\n```json", "```"}, alsoOpens: []string{"Action: ```json"}, read: objects,
		words: []string{"Action:", "```json"}},
	{name: "Apertus", call: marks{"<|tools_prefix|>", "<|tools_suffix|>"}, read: keyed,
		words: []string{"<|tools_prefix|>"}},
	{name: "InternLM", call: marks{"<|action_start|><|plugin|>", "<|action_end|>"}, read: objects,
		words: []string{"<|action_start|>", "<|plugin|>"}},
	{name: "HyperCLOVA X", call: marks{open: "-> tool/function_call\n"}, read: objects,
		words: []string{"-> tool/function_call"}},
	{name: "GigaChat 3", call: marks{open: "function call<|role_sep|>"}, read: objects},
	{name: "GigaChat 3.1", call: marks{open: "<|function_call|>"}, read: objects},
	{name: "Llama 3, xLAM", alsoOpens: []string{"<|python_tag|>"}, separators: ";", read: known(wholeObjects),
		words: []string{`{"name": function name, "parameters": `}},

	// Calls in Python.
	{name: "OLMo 3", call: marks{"<function_calls>", "</function_calls>"}, kind: marked, read: lines,
		words: []string{"<function_calls>"}},
	{name: "LFM2", call: marks{"<|tool_call_start|>", "<|tool_call_end|>"}, kind: python, read: list,
		words: []string{"List of tools: "}},
	{name: "Llama 3.2 and 4 in Python", alsoOpens: []string{"<|python_start|>"}, alsoCloses: []string{"<|python_end|>"},
		kind: python, read: known(list), words: []string{"[func_name1(params_name1=params_value1"}},

	{name: "Gemma 4", call: marks{"<|tool_call>", "<tool_call|>"}, kind: marked, begins: "call:",
		read: gemma{`<|"|>`}.read},
	{name: "FunctionGemma", call: marks{"<start_function_call>", "<end_function_call>"}, kind: marked, begins: "call:",
		read: gemma{"<escape>"}.read, words: []string{"<start_function_call>", "<escape>"}},

	// The name of a tool alone, and arguments on the next line: last, as any answer begins with a word.
	{name: "GLM-4", header: "\n", read: arguments, words: []string{"# 可用工具"}},
}

// before finds a name in front of a mark, if that is there.
func before(mark string) func(string) string {
	return func(header string) string {
		name, _, _ := strings.Cut(header, mark)
		return name
	}
}

// afterLast finds a name after a mark.
func afterLast(mark string) func(string) string {
	return func(header string) string {
		at := strings.LastIndex(header, mark)
		if at < 0 {
			return ""
		}
		return header[at+len(mark):]
	}
}

// kimi finds the name in functions.NAME:0.
func kimi(header string) string {
	name := strings.TrimPrefix(strings.TrimSpace(header), "functions.")
	if at := strings.LastIndexByte(name, ':'); at >= 0 {
		name = name[:at]
	}
	return name
}

// known reads calls that nothing marks as such: they have to be of tools that there are, with arguments.
func known(read func(name, body string, tools *Tools) []Call) func(name, body string, tools *Tools) []Call {
	return func(name, body string, tools *Tools) []Call {
		calls := read(name, body, tools)
		for _, c := range calls {
			if !tools.has(c.Name) {
				return nil
			}
		}
		return calls
	}
}
