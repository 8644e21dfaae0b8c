package amktest

import (
	"compress/bzip2"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/ir"
	"amkc/refvm"
)

// Floats makes a dense model the weights of a program: tensors are found by their keys.
func (d *dense) Floats(b *ir.Buffer, _ int) ([]float32, error) {
	if len(b.Pieces) != 1 {
		return nil, errors.New("has no source")
	}
	t, ok := d.tensors[b.Pieces[0].Key]
	if !ok {
		return nil, fmt.Errorf("no tensor %s", b.Pieces[0].Key)
	}
	return t, nil
}

func readRequest(t testing.TB, dir string) (q request) {
	data, err := os.ReadFile(filepath.Join(dir, "request.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &q))
	return q
}

// orders are legal ones of many kinds; with poisoned activations a task that runs too early computes NaN.
func orders() []refvm.Order {
	list := []refvm.Order{{Kind: refvm.InOrder}, {Kind: refvm.Latest}, {Kind: refvm.Parallel},
		{Kind: refvm.Starve, SM: 0}, {Kind: refvm.Starve, SM: 1}}
	for seed := range uint64(5) {
		list = append(list, refvm.Order{Kind: refvm.Random, Seed: seed})
	}
	return list
}

// prepare writes the inputs of a step: tokens, and caches of which only the rows of earlier steps hold numbers.
func (d *dense) prepare(t testing.TB, vm *refvm.VM) {
	tokens := make([]float32, len(d.tokens))
	for i, id := range d.tokens {
		tokens[i] = float32(id)
	}
	require.NoError(t, vm.Write("token_id", tokens))
	row := d.Shape.NKVHeads * d.Shape.HeadDim
	for i, cache := range d.caches {
		now := append([]float32(nil), cache...)
		for k := range now {
			if k/row%d.Shape.MaxSeq >= d.Pos {
				now[k] = float32(math.NaN())
			}
		}
		require.NoError(t, vm.Write(fmt.Sprintf("L%d.%ccache", i/2, "kv"[i%2]), now))
	}
}

// requireClose compares with a tolerance relative to the largest element.
func requireClose(t testing.TB, want []float64, got []float32, tolerance float64, format string, args ...any) {
	require.Len(t, got, len(want))
	largest, worst := 0.0, 0.0
	for i, w := range want {
		largest = max(largest, math.Abs(w))
		diff := math.Abs(w - float64(got[i]))
		if math.IsNaN(diff) {
			worst = math.Inf(1)
		}
		worst = max(worst, diff)
	}
	require.LessOrEqual(t, worst, tolerance*largest, fmt.Sprintf(format, args...))
}

// requireRuns runs a program in many orders, and compares the logits with the dense model.
func requireRuns(t testing.TB, d *dense, p *interchange.Program) {
	rounded := map[ir.DType]float64{ir.F32: 2e-6, ir.F16: 4e-3, ir.BF16: 3e-2}
	var want []float64
	for i := range d.Batch {
		want = append(want, d.logits(i)...)
	}
	flat, diags := p.Flatten()
	require.Empty(t, diags)
	for round, tolerance := range map[refvm.Rounding]float64{refvm.None: 2e-6, refvm.Device: rounded[d.DType]} {
		vm, err := refvm.New(flat, d, refvm.Options{Round: round, Workers: 2, Record: true})
		require.NoError(t, err)
		var first []float32
		for _, order := range orders() {
			d.prepare(t, vm)
			require.NoError(t, vm.Step(d.Pos, -1, order))
			requireClose(t, want, vm.Logits(), tolerance, "rounding %v, order %v", round, order)
			if first == nil {
				first = append(first, vm.Logits()...)
			}
			require.Equal(t, first, vm.Logits(), "order %v changes bits", order)
		}
	}
}

// The programs that AutoMegaKernel wrote compute what the model is, whatever the order of their tasks.
func TestExamplesRun(t *testing.T) {
	for _, dir := range examples(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) { requireRuns(t, newDense(readRequest(t, dir)), load(t, dir)) })
	}
}

// So do programs that no example covers: other shapes, knobs, positions, quantisations.
func TestRequestsRun(t *testing.T) {
	f, err := os.Open("../../testdata/amk_ir/requests.jsonl.bz2")
	require.NoError(t, err)
	defer f.Close()
	n := 0
	for d := json.NewDecoder(bzip2.NewReader(f)); d.More(); n++ {
		var line struct {
			Name    string
			Request request
			Program json.RawMessage
		}
		require.NoError(t, d.Decode(&line))
		t.Run(line.Name, func(t *testing.T) {
			p, diags := interchange.Parse(line.Program, line.Name)
			require.Empty(t, diags)
			require.Empty(t, verdict(p))
			requireRuns(t, newDense(line.Request), p)
		})
	}
	require.Equal(t, 24, n)
}

// A step at another position is another program: the flat form is for one position.
func TestExamplesHoldOnePosition(t *testing.T) {
	dir := examples(t)[0]
	d := newDense(readRequest(t, dir))
	d.logits(0)
	flat, _ := load(t, dir).Flatten()
	vm, err := refvm.New(flat, d, refvm.Options{})
	require.NoError(t, err)
	require.ErrorContains(t, vm.Step(d.Pos+1, 0, refvm.Order{}), "AMK3808")
}
