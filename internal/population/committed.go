package population

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"amkc/ir"
)

// Programs that amkc has made, and one written by hand in the same shape: fused, tiled, on pages, in loops, with
// flagged exchanges; one is for passes of several tokens. The small ones are for few SMs.
var (
	smallFiles = []string{
		"passes/testdata/exchange/plain.out.amk",
		"passes/testdata/exchange/tiny.out.amk",
		"passes/testdata/exchange/normed.out.amk",
		"passes/testdata/exchange/capped.out.amk",
		"passes/testdata/exchange/wide.out.amk",
		"passes/testdata/exchange/whole.out.amk",
		"passes/testdata/exchange/experts.out.amk",
		"passes/testdata/exchange/scored.out.amk",
		"passes/testdata/exchange/convolutions.out.amk",
		"passes/testdata/exchange/sinks.out.amk",
		"testdata/ir/tiny.amk",
		"passes/testdata/tokens/pagecolor.amk",
	}
	largeFiles = []string{
		"testdata/golden/llama-odd-dims_h200_fp32/schedule.amk",
		"testdata/golden/llama-gqa_t4_fp16_split/schedule.amk",
		"testdata/golden/mistral-window_h200_bf16/schedule.amk",
		"testdata/golden/pycoder-5m_h200_bf16/schedule.amk",
	}
	// For passes of several tokens of a kernel for 132 SMs. Nothing is changed in them: judging one takes seconds.
	passFiles = []string{
		"testdata/golden/mistral-nemo_h200_bf16_sequences/rows2/schedule.amk",
		"testdata/golden/mistral-nemo_h200_bf16_sequences/sequences4/schedule.amk",
	}
)

// Committed returns the committed programs, and every variant of those that mutants are made of, unrolled. They are
// read once; the caller changes none of them. The error says which file is missing or wrong.
var Committed = sync.OnceValues(func() ([]Case, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, name := range slices.Concat(smallFiles, largeFiles, passFiles) {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		p, err := ir.Load(data, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		cases = append(cases, Case{Name: "committed/" + name, Class: "committed", Program: p})
		if slices.Contains(passFiles, name) {
			continue
		}
		for i := range p.Variants {
			f, diags := ir.Unroll(p, &p.Variants[i])
			if f == nil {
				return nil, fmt.Errorf("%s: %w", name, diags.Err())
			}
			cases = append(cases, Case{Name: "committed/" + name + ":" + f.Name, Class: "committed", Flat: f,
				Target: p.Target})
		}
	}
	return cases, nil
})

// moduleRoot is the nearest directory above the working directory, itself included, that holds go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod above the working directory: the committed programs are read from the " +
				"module's own tree")
		}
		dir = up
	}
}
