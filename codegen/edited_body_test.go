package codegen

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
	"amkc/validate/kernel"
)

// Whatever lines of a program's body are taken out, doubled or exchanged, and whatever numbers and counters stand in
// them: codegen emits only programs of which every task waits for the stage before its own, which is what the kernel
// does. AMKC_LONG tries many more edits, and else it is every second one of a wait or a signal.
func TestEditedBodies(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	raw, err := os.ReadFile("../testdata/golden/llama-gqa_t4_fp16_split/schedule.amk")
	require.NoError(t, err)
	flagged := string(raw)
	counted := regexp.MustCompile(`(?m)^(counter L.*) flagged gpu`).ReplaceAllString(flagged, "$1 counter gpu")
	// A stage off the path from vector to vector, after which lm_head may wait for either of two counters.
	for _, edit := range [][2]string{{"buffer best.value",
		"buffer late ACTIVATION F16 [176] GLOBAL_SCRATCH word32x2 page late\nbuffer best.value"},
		{"counter step ", "counter late counter gpu\ncounter step "},
		{"wait L03.x >= 8\n  %n", "wait late >= 40\n  %n"},
		{"stage lm_head", late + "  signal late\n" + "stage lm_head"}} {
		require.Contains(t, counted, edit[0])
		counted = strings.ReplaceAll(counted, edit[0], edit[1])
	}
	emitted, refused := 0, 0
	for _, text := range []string{flagged, ownPages(counted)} {
		for _, edited := range bodyEdits(text) {
			p, err := ir.Parse([]byte(edited), "edited.amk")
			if err != nil || ir.Check(p).Err() != nil || !validate.ProgramFor(kernel.Backend, p).OK {
				continue
			}
			require.NotPanics(t, func() { _, err = CUDA(p) }, edited)
			if err != nil {
				refused++
				continue
			}
			emitted++
			for i := range p.Variants {
				requireInTurn(t, p, &p.Variants[i], edited)
			}
		}
	}
	require.Positive(t, emitted)
	require.Positive(t, refused)
}

// bodyEdits are edits of one line each of a program's pages, buffers and variants.
func bodyEdits(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	var out, counters []string
	for _, l := range lines {
		if f := strings.Fields(l); f[0] == "counter" && !slices.Contains(counters, f[1]) {
			counters = append(counters, f[1])
		}
	}
	replace := func(at, n int, with ...string) {
		out = append(out, strings.Join(slices.Concat(lines[:at], with, lines[at+n:]), "\n"))
	}
	long := os.Getenv("AMKC_LONG") != ""
	number := regexp.MustCompile(`\b\d+\b`)
	for i := slices.IndexFunc(lines, func(l string) bool {
		return strings.HasPrefix(l,
			"page ")
	}); i < len(lines); i++ {
		l := lines[i]
		if long {
			replace(i, 1)
			replace(i, 1, l, l)
			if i+1 < len(lines) {
				replace(i, 2, lines[i+1], l)
			}
		}
		switch f := strings.Fields(l); f[0] {
		case "signal":
			for _, c := range counters {
				replace(i, 1, "  signal "+c)
			}
		case "wait":
			for _, c := range counters {
				for _, n := range []int{8, 40} {
					replace(i, 1, fmt.Sprintf("  wait %s >= %d", c, n))
				}
			}
		case "stage", "variant", "loop":
			for _, at := range number.FindAllStringIndex(l, -1) {
				if !long {
					break
				}
				for _, n := range []string{"0", "1", "3", "16", "40"} {
					replace(i, 1, l[:at[0]]+n+l[at[1]:])
				}
			}
		}
	}
	if !long {
		for i := range len(out) / 2 {
			out[i] = out[2*i]
		}
		out = out[:len(out)/2]
	}
	return out
}

// requireInTurn: every task that waits does so for all tasks of the last stage before its own that publishes a
// vector.
func requireInTurn(t *testing.T, p *ir.Program, v *ir.Variant, text string) {
	f, diags := ir.Unroll(p, v)
	require.NoError(t, diags.Err())
	stageOf := func(task *ir.Task) string { return task.Name[:strings.LastIndex(task.Name, ".")] }
	before, last := -1, -1 // the counters of the two last stages that publish a vector
	stage := ""
	for i := range f.Tasks {
		task := &f.Tasks[i]
		if code := task.Ops[0].Code; code == ir.NOP || code == ir.STOP || code == ir.COPY {
			continue
		}
		if stageOf(task) != stage {
			stage, before = stageOf(task), last
		}
		if task.Signal >= 0 {
			last = task.Signal
		}
		if task.Ops[0].Code == ir.EMBED {
			require.Empty(t, task.Waits, text)
			continue
		}
		require.Len(t, task.Waits, 1, text)
		require.Equal(t, before, task.Waits[0].Counter, "%s waits for another stage in\n%s", task.Name, text)
	}
}
