package knobs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// docs/knobs.md is the table, for readers.
func TestDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Knobs

<!-- Generated from knobs/table.go by go test ./knobs -update. Do not edit. -->

A schedule is set by a configuration, a JSON file that ` + "`amkc MODEL --config FILE`" + ` reads; what it leaves ` +
		`out has
its default. Every knob changes the program or the emitted code, or is refused with a reason.
` + "`amkc explain ring.pace`" + ` says the same of one knob; [config.schema.json](config.schema.json) is for ` +
		`editors, and
[adding.md](adding.md#a-knob) is for those who want another.

Knobs marked *order* decide in which order sums are added up, and so the last bits of logits. All programs that are to
agree to the bit have the same values of these ([passes.md](passes.md)). The others change no bit on the reference VM,
to which a test holds them.

| knob | accepts | default | what it changes |
|---|---|---|---|
`)
	for _, d := range Describe() {
		name := "`" + d.Name + "`"
		if d.Also != "" {
			name += " (`" + d.Also + "`)"
		}
		doc := d.Doc
		if d.Emitted != "" {
			doc += "; `" + d.Emitted + "` of `schedule.h`"
		}
		if d.Order {
			name += " *order*"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, d.Accepts, d.Default, doc)
	}
	golden(t, "../docs/knobs.md", b.String())
}

func TestSchemaIsPublished(t *testing.T) {
	text, err := json.MarshalIndent(Schema(), "", "  ")
	require.NoError(t, err)
	golden(t, "../docs/config.schema.json", string(text)+"\n")
}

// Every name of a knob finds it, and a group finds its knobs.
func TestFind(t *testing.T) {
	names := func(name string) (out []string) {
		found, _ := Find(name)
		for _, d := range found {
			out = append(out, d.Name)
		}
		return out
	}
	for _, name := range []string{"tiling.ring.pace", "ring.pace", "pace"} {
		require.Equal(t, []string{"tiling.ring.pace"}, names(name), name)
	}
	for _, name := range []string{"ring.in_flight", "in_flight", "pipelining_depth"} {
		require.Equal(t, []string{"pipelining_depth"}, names(name), name)
	}
	require.Equal(t, []string{"tiling.warps.{qkv,o,gate_up,down,lm_head}"}, names("warps.qkv"))
	require.Subset(t, names("ring"), []string{"tiling.ring.pace", "pipelining_depth"})
	for _, name := range []string{"", "colour", "ring."} {
		found, known := Find(name)
		require.Empty(t, found, name)
		require.NotContains(t, known, "")
	}
}

// What Resolve makes of any configuration is legal, by the table and by the schema, and is read back from JSON as it
// was.
func TestSchemaAcceptsWhatResolves(t *testing.T) {
	schema := Schema()
	for _, c := range []ir.ScheduleConfig{{}, tiling("ring", "in_flight", 2), tiling("warps", "o", 4)} {
		out, diags := Resolve(c, toyModel(), toyTarget(), Build{Format: ir.MatrixFormat(toyModel().Weights)})
		require.NoError(t, diags.Err())
		for _, config := range []ir.ScheduleConfig{c, out} {
			text, err := json.Marshal(config)
			require.NoError(t, err)
			require.Empty(t, violations(t, schema, text), string(text))
		}
	}
	for text, want := range map[string]string{
		`{"tiling": {"ring": {"pase": 1}}}`:           "pase",
		`{"tiling": {"ring": {"pace": 65537}}}`:       "pace",
		`{"tiling": {"ring": {"chunk_bytes": 5000}}}`: "chunk_bytes",
		`{"tiling": {"exchange": {"copies": 3}}}`:     "copies",
		`{"pipelining_depth": 17}`:                    "pipelining_depth",
		`{"page_allocation": "buddy"}`:                "page_allocation",
		`{"colour": 1}`:                               "colour",
	} {
		require.Equal(t, want, violations(t, schema, []byte(text)), text)
	}
}

// violations is the first key of a JSON text that a schema does not accept, as far as Schema uses the language; "" for
// none, and "." for the value itself.
func violations(t *testing.T, schema map[string]any, text []byte) string {
	var plain map[string]any
	printed, err := json.Marshal(schema)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(printed, &plain))
	var value any
	require.NoError(t, json.Unmarshal(text, &value))
	return rejected(plain, value)
}

func rejected(schema map[string]any, value any) string {
	object, isObject := value.(map[string]any)
	array, isArray := value.([]any)
	number, isNumber := value.(float64)
	_, isText := value.(string)
	kind := map[string]bool{"object": isObject, "array": isArray, "integer": isNumber && number == float64(int(number)),
		"string": isText}
	if want, is := schema["type"].(string); is && !kind[want] {
		return "."
	}
	if all, is := schema["anyOf"].([]any); is && !slices.ContainsFunc(all, func(one any) bool {
		return rejected(one.(map[string]any), value) == ""
	}) {
		return "."
	}
	if all, is := schema["enum"].([]any); is && !slices.Contains(all, value) {
		return "."
	}
	if only, is := schema["const"]; is && only != value {
		return "."
	}
	if least, is := schema["minimum"].(float64); is && number < least {
		return "."
	}
	if most, is := schema["maximum"].(float64); is && number > most {
		return "."
	}
	if unit, is := schema["multipleOf"].(float64); is && int(number)%int(unit) != 0 {
		return "."
	}
	for _, v := range array {
		if items, is := schema["items"].(map[string]any); is && rejected(items, v) != "" {
			return "."
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for key, v := range object {
		of, known := properties[key].(map[string]any)
		if !known {
			if of, known = schema["additionalProperties"].(map[string]any); !known {
				return key
			}
		}
		if inner := rejected(of, v); inner == "." {
			return key
		} else if inner != "" {
			return inner
		}
	}
	return ""
}
