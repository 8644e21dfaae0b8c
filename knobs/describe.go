package knobs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Description describes a knob to a reader.
type Description struct {
	Name    string `json:"name"` // its path, with the stages of a knob per stage in braces
	Also    string `json:"also,omitempty"`
	Accepts string `json:"accepts"`
	Default string `json:"default"`
	Doc     string `json:"doc"`
	Emitted string `json:"emitted,omitempty"` // the constant of schedule.h
	Order   bool   `json:"order,omitempty"`   // it decides in which order sums are added up
}

// Describe returns every knob, in the order of the table.
func Describe() []Description {
	var out []Description
	for i := range table {
		out = append(out, table[i].describe())
	}
	return out
}

// Find returns the knobs that a name means: that of one (tiling.ring.pace, ring.pace, pace, warps.qkv) or of a group
// (ring). Where there are none it returns the nearest names to guess from.
func Find(name string) (found []Description, known []string) {
	name = strings.TrimPrefix(name, "tiling.")
	for i := range table {
		names := table[i].names()
		if slices.Contains(names, name) {
			found = append(found, table[i].describe())
		}
		known = append(known, names...)
	}
	slices.Sort(known)
	return found, slices.Compact(known)
}

// names lists what a user may call the knob.
func (r *Row) names() []string {
	var names []string
	if r.Field != nil {
		names = append(names, r.Field.Name)
	}
	for _, stage := range r.Each() {
		if name := r.tiled(stage); name != "" {
			names = append(names, r.Group, r.Group+"."+name)
		}
	}
	if r.Name != "" && r.Like == nil { // else it is that of another knob
		names = append(names, r.Name)
	}
	return slices.Compact(names)
}

func (r *Row) describe() Description {
	d := Description{Name: r.Path(""), Accepts: r.Legal.String(), Default: r.RuleDoc, Doc: r.Doc, Order: r.Order}
	switch {
	case r.form != nil:
		d.Accepts, d.Default = r.form.want, r.form.byDefault
	case d.Default != "":
	case r.Legal.Words != nil:
		d.Default = r.Legal.Words[r.Default]
	default:
		d.Default = fmt.Sprint(r.Default)
	}
	if r.Stages != nil {
		d.Name += ".{" + strings.Join(r.Stages, ",") + "}"
	}
	if r.Field != nil && r.Name != "" {
		d.Also = "tiling." + r.Group + "." + r.Name
	}
	if r.Constant != nil {
		d.Emitted = r.Constant.Name
	}
	return d
}

// object is a JSON object.
type object = map[string]any

// Schema returns the JSON Schema of a configuration: names and legal values. Resolve reports what a model, a target or
// other knobs forbid beyond that.
func Schema() map[string]any {
	tiling, fields := object{}, object{}
	for i := range table {
		r := &table[i]
		value := r.schema()
		if r.Field != nil {
			fields[r.Field.Name] = r.zeroToo(value)
		}
		for _, stage := range r.Each() {
			name := r.tiled(stage)
			if name == "" {
				continue
			}
			if tiling[r.Group] == nil {
				tiling[r.Group] = closed(object{})
			}
			tiling[r.Group].(object)["properties"].(object)[name] = value
		}
	}
	fields["tiling"] = closed(tiling)
	schema := closed(fields)
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "configuration of a schedule"
	return schema
}

// closed is the schema of an object that has these properties and no others.
func closed(properties object) object {
	return object{"type": "object", "properties": properties, "additionalProperties": false}
}

func (r *Row) schema() object {
	s := object{"type": "integer"}
	switch {
	case r.form != nil:
		s = maps.Clone(r.form.schema)
	case r.Legal.Words != nil:
		s = object{"enum": r.Legal.Words}
	case r.Legal.OneOf != nil:
		s["enum"] = r.Legal.OneOf
	default:
		s["minimum"], s["maximum"] = r.Legal.Lo, r.Legal.Hi
		if r.Legal.Multiple != 0 {
			s["multipleOf"] = r.Legal.Multiple
		}
	}
	s["description"] = r.Doc + "; default: " + r.describe().Default
	return s
}

// zeroToo is a schema that also accepts the empty word of a field, which leaves the knob to its default. An integer is
// left out for that: 0 is a value where the knob says so, and refused elsewhere.
func (r *Row) zeroToo(value object) object {
	if r.form != nil || r.Legal.Words == nil {
		return value
	}
	return object{"anyOf": []object{value, {"const": ""}}}
}
