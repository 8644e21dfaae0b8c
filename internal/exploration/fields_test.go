package exploration

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"amkc/kernel"
)

var (
	calledBody = regexp.MustCompile(`(?m)^ +(\w+)<(\w+)>\(c, `)
	calledFunc = regexp.MustCompile(`(?m)^  (gemv)<(\w+)>\(c, `)
	descriptor = regexp.MustCompile(`(?ms)^struct (\w+) \{\n(.*?)^\};`)
	fieldValue = regexp.MustCompile(`static constexpr \w+ (k\w+) = ([^;]*);`)
)

// valuesSeen are the values that constants of descriptors have, by body and constant.
type valuesSeen map[string]map[string]map[string]bool

// fields notes which bodies a build has, with which constants of their descriptors: "" for one that a descriptor lacks.
// Passes of several tokens are in directories of their own.
func fields(dir string, seen valuesSeen) error {
	schedules, err := filepath.Glob(filepath.Join(dir, "*", "schedule.h"))
	if err != nil {
		return err
	}
	for _, schedule := range append(schedules, filepath.Join(dir, "schedule.h")) {
		if err := fieldsOf(filepath.Dir(schedule), seen); err != nil {
			return err
		}
	}
	return nil
}

func fieldsOf(dir string, seen valuesSeen) error {
	var text [3]string
	for i, name := range []string{"megakernel.cu", "stages.h", "schedule.h"} {
		source, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		text[i] = string(source)
	}
	bodies := map[string]*kernel.Body{}
	for _, call := range append(calledBody.FindAllStringSubmatch(text[0], -1),
		calledFunc.FindAllStringSubmatch(text[1], -1)...) {
		bodies[call[2]] = kernel.Find(call[1])
	}
	for _, d := range descriptor.FindAllStringSubmatch(text[2], -1) {
		body, values := bodies[d[1]], map[string]string{}
		if body == nil {
			continue
		}
		for _, f := range fieldValue.FindAllStringSubmatch(d[2], -1) {
			values[f[1]] = f[2]
		}
		of := seen[body.Name]
		if of == nil {
			of = map[string]map[string]bool{}
			seen[body.Name] = of
		}
		for _, f := range body.Fields {
			if of[f.Name] == nil {
				of[f.Name] = map[string]bool{}
			}
			of[f.Name][values[f.Name]] = true
		}
	}
	return nil
}

// elsewhere are constants that no build of the table has: columns of products are cut where rows are many more than
// these models have. add_norm is run with parts by branches.cc of compiler/cli/testdata on the CPU, and products are
// with zoo/gemma2-split-k on a GPU. Exact builds have products in parts. No router of the table has a least sum of what
// it chooses, as Ernie 4.5's have.
var elsewhere = []string{"gemv kSplitK", "gemv kParts", "add_norm kParts", "add_norm_rows kParts", "route kLeast"}

// ofBuilds are the bodies that builds have. That of several GPUs is in those of explore alone (TestGPUs):
// ranks.cc of explore/cpu/litmus runs it.
var ofBuilds = slices.DeleteFunc(slices.Clone(kernel.Bodies), func(b *kernel.Body) bool { return b == kernel.AddSums })

// missingFields are the constants of which builds have not all values. What a body is declared to compute is compared
// with what its code computes, which is how a wrong declaration is found: every body is in a build that is explored,
// with each flag set and not, and with what a descriptor may lack and without it.
func missingFields(builds []valuesSeen) []string {
	seen, missing := valuesSeen{}, []string(nil)
	for _, build := range builds {
		for body, constants := range build {
			if seen[body] == nil {
				seen[body] = map[string]map[string]bool{}
			}
			for constant, values := range constants {
				if seen[body][constant] == nil {
					seen[body][constant] = map[string]bool{}
				}
				maps.Copy(seen[body][constant], values)
			}
		}
	}
	for _, body := range ofBuilds {
		for _, f := range body.Fields {
			var want []string
			if _, flag := f.At(&kernel.Stage{}).(*bool); flag && f.Default == nil {
				want = []string{"false", "true"}
			}
			optional := f.If != nil || f.Default != nil
			if optional {
				want = append(want, "")
			}
			values := seen[body.Name][f.Name]
			there := len(values) > 1 || !optional && len(values) > 0
			for _, value := range want {
				there = there && values[value]
			}
			if !there {
				missing = append(missing, body.Name+" "+f.Name)
			}
		}
	}
	return missing
}
