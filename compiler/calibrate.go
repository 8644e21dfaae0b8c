package compiler

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes/calibration"
	"amkc/refvm"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/progress"
)

// calibrationRows is how many tokens of a text a pass takes while a model is calibrated: each weight is read once for
// them all.
const calibrationRows = 32

// calibrationSMs is how many SMs the program is for that is run meanwhile. It is one number for all machines and
// targets, so that the sums are the same.
const calibrationSMs = 16

// calibrationWindow is how many tokens of a text are read at most as a text of their own.
const calibrationWindow = 512

// A CalibrationText is the text for the calibration of a model, as token ids. Lead are the ids that a tokenizer puts
// before a text.
type CalibrationText struct{ Lead, IDs []int }

// calibrationWindows are the texts that a program is run over: pieces of one, each with its lead.
func (l *Scheduled) calibrationWindows() (windows [][]int) {
	if t := l.options.Calibration; t != nil {
		for part := range slices.Chunk(t.IDs, max(1, min(calibrationWindow, l.Program.Model.MaxSeq)-len(t.Lead))) {
			windows = append(windows, slices.Concat(t.Lead, part))
		}
	}
	return windows
}

// Calibrate runs the unquantised model on the reference VM over the text of Options.Calibration, and passes the
// correlations of the vectors that its matrices multiply to the weights, which are then rounded for them. Without a
// text it does nothing.
func (l *Scheduled) Calibrate(ctx context.Context, report progress.Func) error {
	windows := l.calibrationWindows()
	if len(windows) == 0 {
		return nil
	}
	for _, w := range windows {
		for _, id := range w {
			if vocab := l.Program.Model.Vocab; id < 0 || id >= vocab {
				return diag.Errorf(codeCalibrate, "--calibrate", "the text has the token id %d; want ids from 0 to %d",
					id, vocab-1)
			}
		}
	}
	wanted, err := l.calibratable()
	if err != nil {
		return err
	}
	o := Options{Model: l.options.Model, Adapters: l.options.Adapters, RandomSeed: l.options.RandomSeed,
		DType: l.options.DType, AssumeInert: l.options.AssumeInert, Target: l.options.Target}
	if o.Target != nil {
		target := *o.Target
		target.SMs, o.Target = calibrationSMs, &target
	}
	for _, w := range windows {
		o.MaxSeq = max(o.MaxSeq, len(w))
	}
	o.Pass = ir.PassOf(1, min(calibrationRows, o.MaxSeq))
	plain, err := RunPasses(o)
	if err != nil {
		return err
	}
	defer plain.Close()
	c, err := newCalibrator(plain, wanted)
	if err != nil {
		return err
	}
	if err := c.fits(); err != nil {
		return err
	}
	c.allocate()
	if err := c.run(ctx, windows, report); err != nil {
		return err
	}
	l.Weights.Calibrate(c.byKey)
	return nil
}

// calibratable are the keys of the matrices that sums are wanted for.
func (l *Scheduled) calibratable() (map[string]bool, error) {
	wanted := map[string]bool{}
	places, _ := ir.WeightArena(l.Program)
	for _, pl := range places {
		key, err := l.Weights.Calibratable(&l.Program.Buffers[pl.Buffer], pl.Index)
		if err != nil {
			return nil, err
		}
		if key != "" {
			wanted[key] = true
		}
	}
	if len(wanted) == 0 {
		return nil, diag.Errorf(codeCalibrate, "--calibrate", "nothing is quantised that the checkpoint does not "+
			"quantise already; want --weights with a format for its matrices")
	}
	return wanted, nil
}

// A calibrator runs a program and adds up what its matrices are multiplied with.
type calibrator struct {
	l       *Scheduled
	rows    int
	keys    []string // of each sum, that of the first matrix
	columns []int    // of each sum
	number  []int    // of the sum for a matrix, by its number among the buffers; -1: none

	byKey   map[string]*calibration.Gram
	sums    []*calibration.Gram
	vectors [][]float32 // of each sum, for the tokens of a pass
}

// newCalibrator finds what sums there are to be for the matrices of the keys, and takes no memory for them.
func newCalibrator(l *Scheduled, wanted map[string]bool) (*calibrator, error) {
	c := &calibrator{l: l, rows: l.Program.Pass.NumRows()}
	for _, m := range ir.BufferDirectory(l.Program).Members() {
		b := &l.Program.Buffers[m.Declared]
		c.number = append(c.number, -1)
		if b.Kind != ir.Weight || len(b.Pieces) == 0 || len(b.Shape) != 2 {
			continue
		}
		key, err := ir.ResolveKey(b.Pieces[0].Key, b.Index(m.K))
		if err != nil {
			return nil, err
		}
		if !wanted[key] {
			continue
		}
		c.number[len(c.number)-1] = len(c.keys)
		_, cols := b.Matrix()
		c.keys, c.columns = append(c.keys, key), append(c.columns, cols)
	}
	return c, nil
}

// allocate takes the memory for the sums.
func (c *calibrator) allocate() {
	c.byKey = map[string]*calibration.Gram{}
	for k, cols := range c.columns {
		g := calibration.NewGram(cols)
		c.byKey[c.keys[k]], c.sums, c.vectors = g, append(c.sums, g), append(c.vectors, make([]float32, c.rows*cols))
	}
}

// see keeps what a matrix is multiplied with, or the columns of it that a task takes.
func (c *calibrator) see(matrix, column int, vectors []float32, n int) {
	k := c.number[matrix]
	if k < 0 {
		return
	}
	for row := range len(vectors) / n {
		copy(c.vectors[k][row*c.sums[k].N+column:], vectors[row*n:(row+1)*n])
	}
}

// run decodes texts.
func (c *calibrator) run(ctx context.Context, texts [][]int, report progress.Func) error {
	report.Report(progress.Step{Activity: "reading weights to calibrate with"})
	s, err := refvm.NewSession(c.l.Program, c.l.Weights, refvm.Options{Round: refvm.Device, Products: c.see})
	if err != nil {
		return err
	}
	step := progress.Step{Activity: "calibrating", Unit: "tokens"}
	for _, text := range texts {
		step.Total += int64(len(text))
	}
	tokens := make([]int, c.rows)
	for _, text := range texts {
		for done := 0; done < len(text); {
			report.Report(step)
			if err := ctx.Err(); err != nil {
				return err
			}
			at := max(0, min(done, len(text)-c.rows)) // the last pass begins earlier, with tokens that are done
			clear(tokens)
			n := copy(tokens, text[at:])
			if _, _, err := s.Pass([]int{at}, tokens); err != nil {
				return err
			}
			vectors := make([][]float32, len(c.sums))
			for k, g := range c.sums {
				vectors[k] = c.vectors[k][(done-at)*g.N : n*g.N]
			}
			calibration.Add(c.sums, vectors)
			step.Done += int64(at + n - done)
			done = at + n
		}
	}
	return nil
}

// fits compares what calibrating takes with the memory that is left: while the model is run, and when its weights are
// gone and the matrices of one sum are rounded.
func (c *calibrator) fits() error {
	left, known := availableMemory()
	if !known {
		return nil
	}
	var weights, values, sums, factors uint64
	for _, b := range c.l.Program.Buffers { // the reference VM has all of them in fp32
		bytes := 4 * uint64(b.Numel()) * uint64(max(1, b.Count))
		if b.Kind == ir.Weight || b.Kind == ir.Const {
			weights += bytes
		} else {
			values += bytes
		}
	}
	for _, cols := range c.columns {
		values += 4 * uint64(c.rows) * uint64(cols)
		sums += calibration.Bytes(cols)
		factors = max(factors, 3*calibration.Bytes(cols))
	}
	format := host.FormatBytes
	running, packing := weights+values+sums, factors+sums
	what := fmt.Sprintf("running the model takes %s of memory: %s for weights in fp32, %s for values and caches",
		format(running), format(weights), format(values))
	if packing > running {
		what = fmt.Sprintf("packing takes %s of memory: %s for the factors of a matrix", format(packing),
			format(factors))
	}
	if max(running, packing) <= left {
		return nil
	}
	return diag.Errorf(codeCalibrate, "--calibrate", "%s, %s for sums over the inputs of matrices; %s are available; "+
		"want a machine with more, or fewer matrices that --weights quantises", what, format(sums), format(left))
}

// availableMemory is how many bytes Linux says that a process may still take without swapping. A test replaces it.
var availableMemory = func() (bytes uint64, known bool) {
	text, err := infile.Read("/proc/meminfo", infile.MemInfo)
	if err != nil {
		return 0, false
	}
	return parseMemInfo(text)
}

func parseMemInfo(text []byte) (available uint64, known bool) {
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) == 3 && string(f[0]) == "MemAvailable:" && string(f[2]) == "kB" {
			kib, err := strconv.ParseUint(string(f[1]), 10, 50)
			return kib << 10, err == nil
		}
	}
	return 0, false
}
