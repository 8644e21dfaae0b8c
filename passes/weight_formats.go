package passes

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"amkc/ir"
)

// WeightFormats are the formats of the matrices of a model, as in --weights. The last item that matches a matrix
// applies.
type WeightFormats []WeightFormat

// A WeightFormat is one item: `int4:g64:sym`, or `lm_head=int8` for the matrices of one name.
type WeightFormat struct {
	Name string // a pattern of roles and of keys of tensors, as path.Match has them; empty: all matrices
	Type string // int8, int4, fp8; none: as the checkpoint has them; or the dtype of the model, which is the same

	group int  // columns that share a scale
	zeros bool // whether groups have zero points

	text string // as it was given
}

// quantisedTypes are the types whose elements have scales, with the groups that they have unless the user says so, and
// whether these have zero points.
var quantisedTypes = map[string]struct {
	dtype   ir.DType
	group   int
	zeros   bool
	options bool // whether the user may say so
}{
	"int8": {ir.I8, 128, false, true},
	"int4": {ir.I4, 64, true, true},
	"fp8":  {ir.F8E4M3, 128, false, false},
}

// groups are how many columns may share a scale.
var groups = []int{32, 64, 128}

// plainTypes are names of dtypes that a matrix may be left in.
var plainTypes = map[string]ir.DType{"bf16": ir.BF16, "fp16": ir.F16, "fp32": ir.F32}

const (
	unquantised   = "none"
	wantedFormats = "want int8, int4, fp8 or none, with :g32, :g64 or :g128 and :sym or :asym after int8 and int4"
)

// ParseWeightFormats parses a comma-separated list of items. Items without a name must come before the others.
func ParseWeightFormats(spec string) (WeightFormats, error) {
	var out WeightFormats
	for item := range strings.SplitSeq(spec, ",") {
		f, err := parseWeightFormat(item)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b WeightFormat) int { return min(1, len(a.Name)) - min(1, len(b.Name)) })
	return out, nil
}

func parseWeightFormat(item string) (WeightFormat, error) {
	if strings.ContainsFunc(item, func(r rune) bool { return r <= ' ' || r > '~' }) || len(item) > ir.MaxName {
		return WeightFormat{}, fmt.Errorf("%.40q; want items of up to %d letters, digits and signs", item, ir.MaxName)
	}
	f, format := WeightFormat{text: item}, item
	if name, is, named := strings.Cut(item, "="); named {
		if _, err := path.Match(name, ""); err != nil || name == "" {
			return f, fmt.Errorf("%q is not a pattern of names; want a role as lm_head, or a key as model.layers.*",
				name)
		}
		f.Name, format = name, is
	}
	options := strings.Split(format, ":")
	f.Type = options[0]
	usual, quantised := quantisedTypes[f.Type]
	if _, plain := plainTypes[f.Type]; !quantised && !plain && f.Type != unquantised {
		return f, fmt.Errorf("%q is not a format; %s", f.Type, wantedFormats)
	}
	f.group, f.zeros = usual.group, usual.zeros
	for _, option := range options[1:] {
		group, err := strconv.Atoi(strings.TrimPrefix(option, "g"))
		switch {
		case !usual.options:
			return f, fmt.Errorf("%q is not an option of %s, which has none; %s", option, f.Type, wantedFormats)
		case option == "sym", option == "asym":
			f.zeros = option == "asym"
		case err == nil && slices.Contains(groups, group) && option[0] == 'g':
			f.group = group
		default:
			return f, fmt.Errorf("%q is not an option; %s", option, wantedFormats)
		}
	}
	return f, nil
}

// WeightFormatWords are the formats of an item without a name, each once, in its shortest spelling.
func WeightFormatWords() []string {
	var out []string
	for _, of := range []string{"int4", "int8"} {
		usual, other := quantisedTypes[of], ":asym"
		if usual.zeros {
			other = ":sym"
		}
		out = append(out, of, of+other)
		for _, group := range groups {
			if group != usual.group {
				out = append(out, fmt.Sprintf("%s:g%d", of, group), fmt.Sprintf("%s:g%d%s", of, group, other))
			}
		}
	}
	return append(out, "fp8", unquantised)
}

// Texts are the items as they were given. ParseWeightFormats parses them again if they are joined with commas.
func (f WeightFormats) Texts() []string {
	var out []string
	for _, item := range f {
		out = append(out, item.text)
	}
	return out
}

// String returns the form that ParseWeightFormats parses.
func (f WeightFormats) String() string { return strings.Join(f.Texts(), ",") }

// String is the item as it was given.
func (f *WeightFormat) String() string { return f.text }

// describe is the format in full: int4:g64:sym.
func (f *WeightFormat) describe() string {
	switch {
	case !quantisedTypes[f.Type].options:
		return f.Type
	case f.zeros:
		return fmt.Sprintf("%s:g%d:asym", f.Type, f.group)
	}
	return fmt.Sprintf("%s:g%d:sym", f.Type, f.group)
}

// storage is the format in a model whose weights are of a dtype: scales are of its 16 bits, or BF16. nil: unquantised.
func (f *WeightFormat) storage(weights ir.DType) *ir.Storage {
	of, quantised := quantisedTypes[f.Type]
	if !quantised {
		return nil
	}
	scales := ir.Scales{Group: f.group, DType: ir.BF16, Zeros: f.zeros}
	if weights == ir.F16 {
		scales.DType = ir.F16
	}
	return &ir.Storage{DType: of.dtype, Scales: scales}
}

// matches reports whether an item is of a matrix, by its role or by the key of its tensor: the whole of it, or from one
// of its parts on.
func (f *WeightFormat) matches(role, key string) bool {
	is := func(name string) bool {
		matched, err := path.Match(f.Name, name)
		return err == nil && matched
	}
	for rest, more := key, true; more; _, rest, more = strings.Cut(rest, ".") {
		if module, isWeight := strings.CutSuffix(rest, ".weight"); is(rest) && rest != "weight" ||
			isWeight && is(module) {
			return true
		}
	}
	return f.Name == "" || is(role)
}
